package papers

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// trainings are results of a sampler by repetition.
func trainings(sampler string, values ...float64) string {
	text := ""
	for i, x := range values {
		text += fmt.Sprintf("%s,%d,%v\n", sampler, i+1, x)
	}
	return text
}

func parsed(t *testing.T, text string) map[string]Results {
	t.Helper()
	r, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Results{"x": r}
}

// claimed returns the claims of a statement about a number.
func claimed(t *testing.T, number string, texts ...string) []Claim {
	t.Helper()
	list, err := Statement{Number: number, Claims: texts}.claims()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// judged judges claims as one row.
func judged(t *testing.T, all map[string]Results, claims []Claim) *Judgements {
	t.Helper()
	j, err := Judge([]Row{{Claims: claims}}, all)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestVerdict: the verdict follows from the adjusted p. The quantile of
// Student's t with four degrees of freedom is 2.776.
func TestVerdict(t *testing.T) {
	all := parsed(t, "sampler,repeat,u\n"+trainings("a", 1, 2, 3, 4, 5)+trainings("b", 2.1, 3, 3.9, 5, 6)+
		trainings("c", 1.1, 1.9, 3.1, 3.9, 5)+trainings("few", 9, 9.5, 9.2, 9.3))
	u := func(texts ...string) []Claim { return claimed(t, "x u", texts...) }
	one := u("a below b")
	j := judged(t, all, one).Of(one[0])
	// The pairs differ by 1.1, 1, 0.9, 1, 1: t is 1 over 0.0316 = 31.6.
	half := 2.7764451 * math.Sqrt(0.02/4/5)
	if j.Finding != Holds || j.Count != 5 || math.Abs(j.Low+1+half) > 1e-6 || math.Abs(j.High+1-half) > 1e-6 ||
		math.Abs(j.P-5.97e-6) > 1e-7 || j.Adjusted != j.P {
		t.Errorf("a below b: %+v", j)
	}
	for _, c := range []struct {
		want   string
		claims []Claim
	}{
		{"yes", u("a below b")},
		{"yes", u("b above a c")},
		{"no; level: a below c", u("a below c")},
		{"no; reversed: b below a", u("b below a")},
		{"partly; level: a below c", u("a below b c")},
		{"partly; level: c below a; reversed: b below a", u("c below a b", "b below a")},
		{"yes; too few repetitions: a below few", u("a below b few")},
		{"no verdict; too few repetitions: a below few", u("a below few")},
		{"yes", u("a within 0.3 of c")},
		{"no; not shown: a within 0.05 of c, a within 0.3 of b", u("a within 0.05 of c",
			"a within 0.3 of b")},
	} {
		if got := verdictOf(c.claims, judged(t, all, c.claims)).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	same := u("a below a")
	if f := judged(t, all, same).Of(same[0]).Finding; f != Level {
		t.Errorf("a below itself: %v", f)
	}
	_, err := Judge([]Row{{Claims: u("a below z")}}, all)
	if err == nil || !strings.Contains(err.Error(), "no such cell") {
		t.Errorf("a cell that is not there: %v", err)
	}
}

// TestAdjustment: of four claims with p 0.01, 0.02, 0.03 and 0.9, Benjamini and
// Hochberg have 0.04, 0.04, 0.04 and 0.9, and Benjamini and Yekutieli 25/12 as
// much. A claim that stands in two rows counts once.
func TestAdjustment(t *testing.T) {
	const head = "sampler,u,u-error,chains\n"
	text := head
	var claims []Claim
	for i, p := range []float64{0.01, 0.02, 0.03, 0.9} {
		// Two cells of 1,000 chains differ by a normal quantile of their error.
		z := distuv.StudentsT{Sigma: 1, Nu: 1998}.Quantile(1 - p/2)
		text += fmt.Sprintf("a%d,0,1,1000\nb%d,%v,1,1000\n", i, i, z*math.Sqrt2)
		claims = append(claims, claimed(t, "x u", fmt.Sprintf("a%d below b%d", i, i))...)
	}
	all := parsed(t, text)
	j, err := Judge([]Row{{Claims: claims}, {Claims: claims[:2]}}, all)
	if err != nil || j.Tested != 4 || j.Decided != 3 || j.Cautious != 0 {
		t.Fatalf("%+v, %v", j, err)
	}
	for i, want := range []float64{0.04, 0.04, 0.04, 0.9} {
		if got := j.Of(claims[i]); math.Abs(got.Adjusted-want) > 1e-6 {
			t.Errorf("claim %d: %+v, want %v", i, got, want)
		}
	}
	if text := j.Count(); !strings.HasPrefix(text, "4 distinct claims are tested: 3 hold, 0 are reversed, 1 level") {
		t.Error(text)
	}
}

// TestTargets: nine random targets are too few, and ten are enough; trainings
// need five.
func TestTargets(t *testing.T) {
	claims := claimed(t, "fhmm u", "a below b")
	of := map[string]Results{"fhmm": parsed(t, "sampler,u,u-error,chains\na,1,3,100\nb,99,4,100\n")["x"]}
	if f := judged(t, of, claims).Of(claims[0]).Finding; f != Unknown {
		t.Errorf("100 chains of one target: %v", f)
	}
	for n, want := range map[int]Finding{9: Unknown, 10: Holds} {
		low := make([]float64, n)
		high := make([]float64, n)
		for i := range low {
			high[i] = 10 + float64(i%3)
		}
		all := map[string]Results{"fhmm": parsed(t, "sampler,repeat,u\n"+trainings("a", low...)+
			trainings("b", high...))["x"]}
		if f := judged(t, all, claims).Of(claims[0]).Finding; f != want {
			t.Errorf("%d targets: %v", n, f)
		}
	}
}

// TestUnlearnt: nothing is judged at seconds in which one of the trainings has
// made less than a tenth of its updates.
func TestUnlearnt(t *testing.T) {
	text := "sampler,repeat,u-at-seconds,updates-at-seconds,signature\n"
	for i := range 5 {
		text += fmt.Sprintf("a,%d,%d,1000,lab:x|updates:1000\nb,%d,%d,99,lab:x|updates:1000\n"+
			"c,%d,%d,100,lab:x|updates:1000\n", i, i, i, 9+i%2, i, 9+i%2)
	}
	claims := claimed(t, "x u-at-seconds", "a below b c")
	j := judged(t, parsed(t, text), claims)
	if j.Of(claims[0]).Finding != Unlearnt || j.Of(claims[1]).Finding != Holds {
		t.Errorf("%v, %v", j.Of(claims[0]), j.Of(claims[1]))
	}
}

// TestRatio: logarithms make a ratio. All of a are 2.5 times b, but for a few
// percent.
func TestRatio(t *testing.T) {
	all := map[string]Results{"cost": parsed(t, "sampler,repeat,seconds\n"+trainings("a", 2.5, 2.6, 2.4, 2.5, 2.5)+
		trainings("b", 1, 1, 1, 1, 1))["x"]}
	claims := claimed(t, "cost seconds", "a within 1.25 times 2.5 of b", "a within 1.25 times 2 of b")
	j := judged(t, all, claims)
	if j.Of(claims[0]).Finding != Holds || j.Of(claims[1]).Finding != NotShown {
		t.Errorf("%+v, %+v", j.Of(claims[0]), j.Of(claims[1]))
	}
}

// Chains do not come in pairs: the interval is Welch's. With standard errors 3
// and 4 of ten chains each, it has 625/(81/9 + 256/9) = 16.69 degrees of
// freedom.
func TestVerdictOfChains(t *testing.T) {
	const head = "sampler,u,u-error,chains\n"
	claims := claimed(t, "x u", "a below b")
	j := judged(t, parsed(t, head+"a,1,3,10\nb,22,4,10\n"), claims).Of(claims[0])
	if j.Finding != Holds || j.Count != 10 || math.Abs(j.High-j.Mean-5*2.11292) > 1e-3 {
		t.Errorf("%+v", j)
	}
	for text, of := range map[string]string{"a,1,3,4\nb,120,4,4\n": "four chains", "a,1,,10\nb,120,,10\n": "without " +
		"errors"} {
		if f := judged(t, parsed(t, head+text), claims).Of(claims[0]).Finding; f != Unknown {
			t.Errorf("%s: %v", of, f)
		}
	}
}

// TestFill: a page that says otherwise gets the numbers of the results.
func TestFill(t *testing.T) {
	all := parsed(t, "sampler,steps,repeat,u\na,1,1,-2\na,1,2,-4\nb,1,1,1\nb,1,2,1\n")
	page := "Before.\n<!-- table x | rows=steps | columns=sampler | numbers=u:%.1f -->\nold\n<!-- end -->\nBehind.\n"
	got, err := Fill(page, all)
	want := "Before.\n<!-- table x | rows=steps | columns=sampler | numbers=u:%.1f -->\n" +
		"| steps | `a` | `b` |\n| --- | --- | --- |\n| `1` | −3.0 ± 1.0 | 1.0 ± 0.0 |\n<!-- end -->\nBehind.\n"
	if err != nil || got != want {
		t.Errorf("%v:\n%s", err, got)
	}
	// A row without numbers is left out, and so is a number that a cell lacks.
	sparse := parsed(t, "part,sampler,u,v\na,s,1,\na,r,2,3\nb,s,,\nb,r,,\n")
	got, err = Fill("<!-- table x | rows=part | columns=sampler | numbers=u:%.0f,v:%.0f -->\n<!-- end -->\n", sparse)
	want = "<!-- table x | rows=part | columns=sampler | numbers=u:%.0f,v:%.0f -->\n" +
		"| part | `s` | `r` |\n| --- | --- | --- |\n| `a` | 1 | 2, 3 |\n<!-- end -->\n"
	if err != nil || got != want {
		t.Errorf("%v:\n%s", err, got)
	}
	_, err = Fill("<!-- table y | rows=steps | numbers=u -->\n<!-- end -->\n", all)
	if err == nil || !strings.Contains(err.Error(), "no results are stored as y") {
		t.Errorf("results that are not there: %v", err)
	}
}

// TestSeconds: the sum of the cells that know their seconds. At the paper's
// sizes, hidden chains on one target take 100/8 · 5,000/2,000 · 1/2 as many.
func TestSeconds(t *testing.T) {
	ising, _ := RunOf("gwg-ising")
	hidden, _ := RunOf("fhmm")
	all := map[string]Results{"gwg-ising": parsed(t, "sampler,seconds\na,1.5\nb,\nc,3\n")["x"],
		"dlp-figure-1": parsed(t, "sampler,u\na,2\n")["x"]}
	const signature = "lab:fhmm|chains:8|repeats:2|steps:2000"
	all["fhmm"] = parsed(t, "seconds,signature\n1.5,"+signature+"\n3,"+signature+"\n")["x"]
	all["dlp-figure-7"] = parsed(t, "sampler,seconds\na,9\n")["x"]
	got, err := Fill("<!-- seconds -->\nold\n<!-- end -->\n", all)
	want := "<!-- seconds -->\n" +
		"| results | command | cells | seconds | at the paper's sizes | the paper's sizes |\n" +
		"| --- | --- | ---: | ---: | ---: | --- |\n" +
		"| `dlp-figure-1` | `--preset dlp-figure-1` | 1 | 10 s |  |  |\n" +
		"| `dlp-figure-7` | `--preset dlp-figure-7` | 1 | 9 | run | DLP: 50,000 and 125,000 steps |\n" +
		"| `fhmm` | `" + hidden.Command + "` | 2 | 4 | 70 | GWG: one target, 100 chains, 5,000 steps |\n" +
		"| `gwg-ising` | `" + ising.Command + "` | 3 | 4 | run | " + ising.Sizes + " |\n<!-- end -->\n"
	if err != nil || got != want {
		t.Errorf("%v:\n%s", err, got)
	}
	_, err = Fill("<!-- seconds -->\n<!-- end -->\n", parsed(t, "sampler,seconds\na,long\n"))
	if err == nil || !strings.Contains(err.Error(), "x: ") {
		t.Errorf("seconds that are no number: %v", err)
	}
}

// Claims that differ only in their place are listed together.
func TestTogether(t *testing.T) {
	got := together([]string{"a below b (one)", "a below c", "a below b (two)"})
	if got != "a below b (one, two), a below c" {
		t.Errorf("%q", got)
	}
}
