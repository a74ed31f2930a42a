package infill_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"infill/infill"
)

// TestTogether: of several texts U is the sum of theirs, every probability is that of the
// sum over all fills, whichever way blanks answer to each other, and draws agree.
func TestTogether(t *testing.T) {
	f := open(t)
	const some = "young,old,happy"
	for _, test := range []struct {
		name   string
		texts  []string
		slots  string
		joints []infill.Joint
		// order is, for each text, which fill of the first its blanks hold.
		order [][]int
	}{
		{"one blank", []string{"the [MASK] man .", "he is [MASK] .", "a [MASK] dog ran ."}, "1=" + some,
			[]infill.Joint{infill.JointChain, infill.JointPLL}, [][]int{{0}, {0}, {0}}},
		{"two blanks", []string{"the [MASK] man and the [MASK] one .", "a [MASK] and [MASK] day ."},
			"1=" + some + " 2=new,good", []infill.Joint{infill.JointChain, infill.JointPLL}, [][]int{{0, 1}, {0, 1}}},
		{"names the other way round", []string{"[MASK=a] saw [MASK=b] .", "it was [MASK=b] that [MASK=a] saw ."},
			"1=he,she,they 2=him,her", []infill.Joint{infill.JointChain, infill.JointPLL}, [][]int{{0, 1}, {1, 0}}},
		{"a name twice in one", []string{"the [MASK=a] man .", "the [MASK=a] dog and the [MASK=a] cat ."}, "1=" + some,
			[]infill.Joint{infill.JointChain}, [][]int{{0}, {0, 0}}},
		{"words of two pieces", []string{"the [MASK:2] man .", "he is [MASK:2] ."}, "1=very old,so happy,quite young",
			[]infill.Joint{infill.JointChain}, [][]int{{0}, {0}}},
	} {
		for _, joint := range test.joints {
			t.Run(test.name+" "+string(joint), func(t *testing.T) {
				o := infill.DefaultOptions()
				o.Joint, o.Top, o.Together = joint, 100, test.texts[1:]
				if err := infill.Find("slot").Set(&o, test.slots); err != nil {
					t.Fatal(err)
				}
				got, err := f.Fill(t.Context(), test.texts[0], o, nil)
				if err != nil {
					t.Fatal(err)
				}
				// The sum by hand: each text alone, its blanks pinned to the fill.
				total := 0.0
				var want []float64
				for _, fill := range got.Fills {
					sum := 0.0
					for k, text := range test.texts {
						alone := infill.DefaultOptions()
						alone.Joint = joint
						for blank, of := range test.order[k] {
							if blank > 0 && of == test.order[k][0] {
								continue // the same name
							}
							if alone.Words == nil {
								alone.Words = map[int][]string{}
							}
							// a capital that is written stays
							alone.Words[blank+1] = []string{strings.ToLower(fill.Values[of])}
						}
						one, err := f.Fill(t.Context(), text, alone, nil)
						if err != nil {
							t.Fatal(err)
						}
						sum += one.Fills[0].LogLikelihood
						if k > 0 && fill.Together[k-1] != one.Fills[0].Text {
							t.Errorf("text %d reads %q, alone %q", k+1, fill.Together[k-1], one.Fills[0].Text)
						}
					}
					if math.Abs(sum-fill.LogLikelihood) > 1e-4 {
						t.Errorf("%q: U = %v, the texts' sum is %v", fill.Values, fill.LogLikelihood, sum)
					}
					want = append(want, math.Exp(sum))
					total += math.Exp(sum)
				}
				if lists := strings.Count(test.slots, ",") + strings.Count(test.slots, "="); len(want) < lists {
					t.Errorf("%d fills", len(want))
				}
				if method := map[infill.Joint]string{infill.JointChain: infill.MethodSearch,
					infill.JointPLL: infill.MethodExact}[joint]; got.Method != method ||
					got.Stats.CandidatesProbability != nil {
					t.Errorf("method %s, candidates hold %v", got.Method, got.Stats.CandidatesProbability)
				}
				if joint == infill.JointChain && (!*got.Proven || *got.LeftOutAtMost != 0) {
					t.Errorf("proven %v, left out at most %v of lists that are all gone through", *got.Proven,
						*got.LeftOutAtMost)
				}
				for i, fill := range got.Fills {
					if p := want[i] / total; math.Abs(*fill.Probability-p) > 1e-4 {
						t.Errorf("%q has probability %v, and %v by enumeration", fill.Values, *fill.Probability, p)
					}
				}
				if joint != infill.JointChain {
					return // the pseudo-log-likelihood has modes that few draws do not weigh up
				}
				// Few rows leave the lists to weighted draws; chains are another way still.
				for _, change := range []func(*infill.Options){
					func(o *infill.Options) { o.Budget = infill.Budget{Rows: 1} },
					func(o *infill.Options) { o.Sampler, o.Steps, o.Seed = "dmala", 400, 3 },
				} {
					other := o
					change(&other)
					drawn, err := f.Fill(t.Context(), test.texts[0], other, nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, fill := range drawn.Fills {
						at := slices.IndexFunc(got.Fills,
							func(g infill.Fill) bool { return slices.Equal(g.TokenIDs, fill.TokenIDs) })
						if math.Abs(got.Fills[at].LogLikelihood-fill.LogLikelihood) > 1e-4 {
							t.Errorf("%s: %q has U %v, enumerated %v", drawn.Method, fill.Values, fill.LogLikelihood,
								got.Fills[at].LogLikelihood)
						}
						limit := 0.1
						if drawn.Method == infill.MethodSearch { // draws tell what the lists hold
							limit = max(1e-9, 4**fill.ProbabilityError)
						}
						if p := *got.Fills[at].Probability; math.Abs(*fill.Probability-p) > limit {
							t.Errorf("%s: %q has probability %v ± %v, enumerated %v", drawn.Method, fill.Values,
								*fill.Probability, fill.ProbabilityError, p)
						}
					}
				}
			})
		}
	}
}

// TestTogetherLengths: of blanks of several lengths each is filled in all texts.
func TestTogetherLengths(t *testing.T) {
	f := open(t)
	o := infill.DefaultOptions()
	o.Together, o.Words = []string{"he is [MASK:1-2] ."}, map[int][]string{1: {"old", "very old"}}
	result, err := f.Fill(t.Context(), "the [MASK:1-2] man .", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Fills) != 2 {
		t.Fatalf("%d fills", len(result.Fills))
	}
	for _, fill := range result.Fills {
		if want := "he is " + fill.Values[0] + " ."; fill.Together[0] != want {
			t.Errorf("%q, want %q", fill.Together[0], want)
		}
	}
}

// TestTogetherRefused: what does not go with several texts is reported in a line.
func TestTogetherRefused(t *testing.T) {
	f := open(t)
	for _, test := range []struct {
		together string
		change   func(*infill.Options)
		want     string
	}{
		{"no blank here", nil, "text 2"},
		{"[MASK] and [MASK]", nil, "the blanks of text 2 are others"},
		{"[MASK=a] went", nil, "the blanks of text 2 are others"},
		{"un[MASK] went", nil, "nothing that blank 1 may take in all"},
		{strings.Repeat("word ", 300) + "[MASK]", nil, "more tokens than the window"},
		{"[MASK] went", func(o *infill.Options) { o.Joint = "ag" }, "joint ag"},
		{"[MASK] went", func(o *infill.Options) { o.Sampler = "p-ncg" }, "p-ncg fills one text"},
		{"[MASK] went", func(o *infill.Options) { o.Sampler, o.Gradient = "dmala", "stochastic" }, "stochastic"},
		{"[MASK] went", func(o *infill.Options) { o.Pins = []int{infill.Free} }, "pinned"},
	} {
		o := infill.DefaultOptions()
		o.Together = []string{test.together}
		if test.change != nil {
			test.change(&o)
		}
		_, err := f.Plan(infill.Request{Template: "the [MASK] man .", Options: o})
		var option *infill.OptionError
		if !errors.As(err, &option) || option.Option != "together" || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.together, err, test.want)
		}
	}
}
