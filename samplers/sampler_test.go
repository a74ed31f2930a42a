package samplers

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"infill/internal/check"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Sampler{
		"gibbs":               Gibbs{},
		"dmala:step-size=0.4": DMALA{StepSize: 0.4},
		"dmala:balance=sqrt,step-size=inf,preconditioner=0.5/2,terms=3": DMALA{StepSize: math.Inf(1),
			Balance: SqrtBalance, Preconditioner: []float64{0.5, 2}, Terms: 3},
		"acs:cycle=4,smallest=0.5,exponent=0.75": Cyclical{Cycle: 4, Smallest: 0.5, Exponent: 0.75},
		"gibbs-x:block=2":                        BlockGibbs{Block: 2},
		"r-hmc:leapfrog=2":                       RelaxedHMC{Leapfrog: 2},
	} {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s reads as %+v, error %v; want %+v", text, got, err, want)
			continue
		}
		again, err := Parse(Text(got))
		if err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%s is written %s, which reads as %+v, error %v", text, Text(got), again, err)
		}
	}
	for text, want := range map[string]string{
		"hmc":                      `unknown sampler "hmc": valid are gibbs, `,
		"gibbs,gwg":                "2 samplers where one is wanted",
		"gibbs:step-size=1":        "gibbs has no step-size: it has no settings",
		"gibbs:balance=min":        "gibbs has no balance",
		"gibbs:terms=1":            "gibbs has no terms",
		"gibbs:paper":              "gibbs has no paper",
		"dmala:step_size=1":        "dmala has no step_size",
		"gwg:preconditioner=1":     "gwg has no preconditioner: its settings are balance, terms",
		"gibbs-x:radius=1":         "gibbs-x has no radius",
		"dmala:step-size=-1":       `dmala: step-size "-1" is not a number above 0`,
		"dmala:step-size=NaN":      `"NaN" is not a number above 0`,
		"dlmc:step-size=inf":       `"inf" is not a number above 0`,
		"dmala:balance=square":     `balance "square" is not one of auto, sqrt, ratio, min, max, or a number from 0.5 to 1`,
		"dmala:balance=0.4":        `balance "0.4" is not`,
		"dmala:terms=0":            `terms "0" is not a whole number of 1 or more`,
		"dmala:preconditioner=1/0": `preconditioner "1/0" is not finite numbers with / between them, each a number above 0`,
		"dmala:preconditioner=inf": `preconditioner "inf" is not finite numbers`,
		"pafs:radius=x":            `radius "x" is not a whole number`,
		"r-hmc:leapfrog=-1":        `leapfrog "-1" is not a whole number`,
		"dmala:step-size=1,balance=min,step-size=2": "step-size: it is given twice",
	} {
		_, err := Parse(text)
		check.Says(t, err, want)
	}
}

// TestValues: a setting that a Go program gives is checked as one that is read, and a
// default stands for zero.
func TestValues(t *testing.T) {
	target := lattice(t, 2, 2)
	for want, s := range map[string]Sampler{
		`dmala: step-size "-1" is not a number above 0`: DMALA{StepSize: -1},
		`gwg: balance "square" is not one of`:           GWG{Balance: "square"},
		`dula: preconditioner "1/-2" is not`:            DULA{Preconditioner: []float64{1, -2}},
		`dlmc: step-size "+Inf" is not`:                 DLMC{StepSize: math.Inf(1)},
		`hamming-ball: block "-3" is not`:               HammingBall{Block: -3},
	} {
		_, err := s.Kernel(target, nil)
		check.Says(t, err, want)
	}
	for setting, want := range map[string]string{"step-size": "0.2", "balance": "sqrt", "terms": "0",
		"preconditioner": "", "radius": ""} {
		if got := Value(DMALA{}, setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
}

// TestSuited: on text, a setting that is not said is the one that suits text, and a
// start is no setting: a warm-up adapts it.
func TestSuited(t *testing.T) {
	for text, want := range map[string]Sampler{
		"dula": DULA{StepSize: 5, Balance: "1"}, "dmala": DMALA{Balance: "1"}, "gwg": GWG{},
		"dmala:balance=sqrt,step-size=0.4": DMALA{Balance: "sqrt", StepSize: 0.4},
	} {
		got, err := Suited(check.Must(Parse(text))(t))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s on text is %+v, error %v", text, got, err)
		}
	}
	_, err := Suited(RelaxedMALA{})
	check.Says(t, err, "r-mala is not for text")
	target := lattice(t, 3, 3)
	for text, want := range map[string]struct {
		size  float64
		tuned bool
	}{"dmala": {5, true}, "dmala:step-size=5": {5, false}, "dmala:step-size=0.4": {0.4, false}, "dula": {5, false},
		"dmala-adaptive": {0.2, true}} {
		k := check.Must(TextKernel(check.Must(Parse(text))(t), target, nil))(t)
		_, tuned := tunedOf(k)
		if got := stepSizeOf(k); got != want.size || tuned != want.tuned {
			t.Errorf("%s on text starts at %v, tuned %v", text, got, tuned)
		}
	}
}

// TestDescribe: each sampler is described, and its settings are those that Parse reads.
func TestDescribe(t *testing.T) {
	for _, s := range All() {
		d := s.Describe()
		if d.Name == "" || d.Title == "" || d.Paper == "" || d.Target == "" || d.Cost == "" || !BuiltIn(s) {
			t.Errorf("incomplete description %+v", d)
		}
		of := reflect.TypeOf(s)
		settings := Settings(s)
		if len(settings) != of.NumField() {
			t.Errorf("%s has the settings %v, and %d fields", d.Name, settings, of.NumField())
		}
		for _, setting := range settings {
			value := Value(s, setting)
			if value == "" || value == "0" {
				continue
			}
			_, err := With(s, setting, value)
			if err != nil {
				t.Errorf("%s does not take its own default: %v", d.Name, err)
			}
		}
		if d.OnText != nil && d.OnText.Sampler != nil && reflect.TypeOf(d.OnText.Sampler) != of {
			t.Errorf("%s suits text as another sampler", d.Name)
		}
	}
}

// shortKernel is a kernel of another module, which says of so many chains whether they
// moved.
type shortKernel struct {
	own    Kernel
	values int
}

func (k shortKernel) Init(ctx context.Context, positions []int) (*State, error) {
	return k.own.Init(ctx, positions)
}

func (k shortKernel) Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error {
	err := k.own.Step(ctx, state, streams, info)
	info.Accepted = make([]bool, k.values)
	return err
}

// TestForeignInfo: what a kernel of another module says of a step is checked.
func TestForeignInfo(t *testing.T) {
	target := lattice(t, 2, 2)
	own := check.Must(GWG{}.Kernel(target, nil))(t)
	for _, values := range []int{0, 2, 3} {
		streams := Streams(1, "", 2)
		_, err := Sample(t.Context(), shortKernel{own, values}, RandomPositions(target, streams),
			Plan{Streams: streams, Steps: 2}, nil)
		if values == 2 {
			check.OK(t, err)
		} else if err == nil || !strings.Contains(err.Error(), "Info.Accepted, and 2 are wanted") {
			t.Errorf("%d values: error %v", values, err)
		}
	}
}
