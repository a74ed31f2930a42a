package ask

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"infill/infill"
	"infill/internal/check"
	"infill/samplers"
)

// TestTwice: a setting that stands in the text of a sampler and beside it, on one level,
// is an error that names both. Levels override each other.
func TestTwice(t *testing.T) {
	for _, given := range [][]string{{"sampler=dmala:step-size=0.4", "step-size=0.2"},
		{"step-size=0.2", "sampler=dmala:step-size=0.4"}} {
		_, err := NewRequest(twoSlots, givens(t, given...))
		check.Says(t, err, "step-size: it is given twice, by itself and in the sampler dmala:step-size=0.4")
	}
	for name, c := range map[string]struct {
		levels [][]Given
		want   infill.Chains
	}{
		"a record above the flags": {[][]Given{givens(t, "sampler=dmala:step-size=0.4"), givens(t, "step-size=0.2")},
			infill.Chains{Sampler: samplers.DMALA{}, StepSize: 0.2}},
		"its sampler above the flags": {[][]Given{givens(t, "sampler=gibbs", "steps=9"),
			givens(t, "sampler=dmala:step-size=0.4,steps=7")},
			infill.Chains{Sampler: samplers.DMALA{}, StepSize: 0.4, Steps: 7}},
		"another sampler, without the settings of the first": {[][]Given{givens(t, "sampler=dmala:step-size=0.4"),
			givens(t, "sampler=gwg")}, infill.Chains{Sampler: samplers.GWG{}}},
		"the papers' below their own level": {
			[][]Given{givens(t, "sampler=dmala:paper,step-size=0.1", "candidates=20")},
			infill.Chains{Sampler: samplers.DMALA{}, StepSize: 0.1, Balance: "sqrt", Gradient: "full",
				WarmUp:     infill.None,
				Candidates: 20}},
		"the papers' above the flags": {[][]Given{givens(t, "candidates=20"), givens(t, "sampler=gibbs:paper")},
			infill.Chains{Sampler: samplers.Gibbs{}, WarmUp: infill.None, Candidates: infill.None}},
	} {
		r, err := NewRequest(twoSlots, c.levels...)
		if err != nil || !reflect.DeepEqual(r.Method, infill.Method(c.want)) {
			t.Errorf("%s: %+v, error %v; want %+v", name, r.Method, err, c.want)
		}
	}
	_, err := MustFind("sampler").Given("gibbs-x:paper")
	check.Says(t, err, "a sampler that the papers run on text, which gibbs-x is not")
	for name, chains := range map[string]infill.Chains{
		"step-size: it is given twice, as 5 and by the sampler as 0.4": {StepSize: 5,
			Sampler: samplers.DMALA{StepSize: 0.4}},
		"balance: it is given twice, as 1 and by the sampler as ratio": {Balance: "1",
			Sampler: samplers.DMALA{Balance: samplers.RatioBalance}},
	} {
		check.Says(t, infill.Request{Method: chains}.Check(), name)
	}
}

// TestTypedSampler: a sampler as a value is that of its text.
func TestTypedSampler(t *testing.T) {
	for text, s := range map[string]samplers.Sampler{
		"dmala:step-size=0.4,balance=ratio": samplers.DMALA{StepSize: 0.4, Balance: samplers.RatioBalance},
		"acs:cycle=4":                       samplers.Cyclical{Cycle: 4},
		"mlm-mh:block=2":                    samplers.MLMMetropolis{Block: 2},
	} {
		read, err := NewRequest(twoSlots, givens(t, "sampler="+text))
		if err != nil {
			t.Fatal(err)
		}
		typed := infill.Request{Template: twoSlots, Method: infill.Chains{Sampler: s}}
		if !reflect.DeepEqual(Facts(read), Facts(typed)) || typed.Check() != nil {
			t.Errorf("%s: %v, and as a value %v, %v", text, Facts(read), Facts(typed), typed.Check())
		}
		stored := check.Must(json.Marshal(Chains(typed.Method.(infill.Chains))))(t)
		var back Chains
		check.OK(t, json.Unmarshal(stored, &back))
		if !reflect.DeepEqual(Facts(infill.Request{Method: infill.Chains(back)}), Facts(typed)) {
			t.Errorf("%s is stored as %s, which reads as %+v", text, stored, back)
		}
	}
	for want, s := range map[string]samplers.Sampler{
		`"dmala:step-size=-1" is not`: samplers.DMALA{StepSize: -1}, "r-mala is not for text": samplers.RelaxedMALA{},
		`"gwg:balance=square" is not`: samplers.GWG{Balance: "square"},
	} {
		err := infill.Request{Method: infill.Chains{Sampler: s}}.Check()
		if err == nil || !strings.Contains(err.Error(), "is not") {
			t.Errorf("%+v: error %v, want one that says %q", s, err, want)
		}
	}
}

// visitor is a sampler of another module.
type visitor struct{ samplers.Gibbs }

func (visitor) Describe() samplers.Description { return samplers.Description{Name: "mine"} }

// TestForeignSampler: no text names a sampler of another module.
func TestForeignSampler(t *testing.T) {
	_, err := json.Marshal(Chains{Sampler: visitor{}})
	check.Says(t, err, "the sampler mine is of another module: JSON cannot name it")
}
