package papers

import (
	"fmt"
	"math"
	"strings"
	"testing"
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

// TestVerdict: the verdict follows from the intervals. The quantile of
// Student's t with four degrees of freedom is 2.776.
func TestVerdict(t *testing.T) {
	all := parsed(t, "sampler,repeat,u\n"+trainings("a", 1, 2, 3, 4, 5)+trainings("b", 2.1, 3, 3.9, 5, 6)+
		trainings("c", 1.1, 1.9, 3.1, 3.9, 5)+trainings("few", 9, 9.5, 9.2, 9.3))
	u := family{"x", "u", "sampler"}
	d, finding, err := u.below("", "a", "b")[0].Check(all)
	// The pairs differ by 1.1, 1, 0.9, 1, 1.
	half := 2.7764451 * math.Sqrt(0.02/4/5)
	if err != nil || finding != Holds || d.Count != 5 || math.Abs(d.Low+1+half) > 1e-6 ||
		math.Abs(d.High+1-half) > 1e-6 {
		t.Errorf("a below b: %+v, %v, %v", d, finding, err)
	}
	for _, c := range []struct {
		want   string
		claims []Claim
	}{
		{"yes", u.below("", "a", "b")},
		{"yes", u.above("", "b", "a", "c")},
		{"no; level: a below c", u.below("", "a", "c")},
		{"no; reversed: b below a", u.below("", "b", "a")},
		{"partly; level: a below c", u.below("", "a", "b", "c")},
		{"partly; level: c below a; reversed: b below a", join(u.below("", "c", "a", "b"), u.below("", "b", "a"))},
		{"no verdict: fewer than five repetitions", u.below("", "a", "b", "few")},
	} {
		got, err := Verdict(c.claims, all)
		if err != nil || got != c.want {
			t.Errorf("%q, %v, want %q", got, err, c.want)
		}
	}
	_, finding, err = u.below("", "a", "a")[0].Check(all)
	if err != nil || finding != Level {
		t.Errorf("a below itself: %v, %v", finding, err)
	}
	_, err = Verdict(u.below("", "a", "z"), all)
	if err == nil || !strings.Contains(err.Error(), "no such cell") {
		t.Errorf("a cell that is not there: %v", err)
	}
}

// Chains do not come in pairs: the interval is Welch's. With standard errors 3
// and 4 of ten chains each, it has 625/(81/9 + 256/9) = 16.69 degrees of
// freedom.
func TestVerdictOfChains(t *testing.T) {
	const head = "sampler,u,u-error,chains\n"
	u := family{"x", "u", "sampler"}
	d, finding, err := u.below("", "a", "b")[0].Check(parsed(t, head+"a,1,3,10\nb,12,4,10\n"))
	if err != nil || finding != Holds || d.Count != 10 || math.Abs(d.High-d.Mean-5*2.11292) > 1e-3 {
		t.Errorf("%+v, %v, %v", d, finding, err)
	}
	_, finding, err = u.below("", "a", "b")[0].Check(parsed(t, head+"a,1,3,4\nb,120,4,4\n"))
	if err != nil || finding != Unknown {
		t.Errorf("four chains: %v, %v", finding, err)
	}
	_, finding, err = u.below("", "a", "b")[0].Check(parsed(t, head+"a,1,,10\nb,120,,10\n"))
	if err != nil || finding != Unknown {
		t.Errorf("without errors: %v, %v", finding, err)
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
// sizes, hidden chains take 100/8 · 5,000/2,000 as many.
func TestSeconds(t *testing.T) {
	all := parsed(t, "sampler,seconds\na,1.5\nb,\nc,3\n")
	all["y"] = parsed(t, "sampler,u\na,2\n")["x"]
	all["fhmm"] = parsed(t, "seconds,signature\n1.5,lab:fhmm|chains:8|steps:2000\n3,lab:fhmm|chains:8|steps:2000\n")["x"]
	all["dlp-figure-7"] = parsed(t, "sampler,seconds\na,9\n")["x"]
	got, err := Fill("<!-- seconds -->\nold\n<!-- end -->\n", all)
	want := "<!-- seconds -->\n" +
		"| results | cells | seconds | at the paper's sizes | the paper's sizes |\n" +
		"| --- | ---: | ---: | ---: | --- |\n" +
		"| `dlp-figure-7` | 1 | 9 | run | DLP: 50,000 and 125,000 steps |\n" +
		"| `fhmm` | 2 | 4 | 140 | GWG: 100 chains, 5,000 steps |\n" +
		"| `x` | 3 | 4 |  |  |\n<!-- end -->\n"
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
