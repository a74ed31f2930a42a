package option

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseNamed(t *testing.T) {
	for text, want := range map[string][]Named{
		"gibbs":               {{Name: "gibbs"}},
		"gibbs, gwg":          {{Name: "gibbs"}, {Name: "gwg"}},
		"dmala:step-size=0.4": {{Name: "dmala", Settings: []Setting{{"step-size", "0.4"}}}},
		"a:paper,b=1,c:d=2,e=f=g,all": {{Name: "a", Settings: []Setting{{"paper", ""}, {"b", "1"}}},
			{Name: "c", Settings: []Setting{{"d", "2"}, {"e", "f=g"}}}, {Name: "all"}},
		"dmala:initial=fill:dark": {{Name: "dmala", Settings: []Setting{{"initial", "fill:dark"}}}},
	} {
		got, err := ParseNamed(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
		var again []string
		for _, n := range got {
			again = append(again, n.String())
		}
		if back := strings.Join(again, ","); back != strings.ReplaceAll(text, " ", "") {
			t.Errorf("%s is written %s", text, back)
		}
	}
	for text, want := range map[string]string{
		"":                "missing between commas",
		"gibbs,,gwg":      "missing between commas",
		"step-size=1":     "belongs to no sampler: write NAME:step-size=1",
		"gwg,balance=min": "belongs to no sampler",
		"gwg:":            "is no setting",
		"gwg:=1":          "is no setting",
		"gwg:balance=":    "is no setting",
		"a:b=1,b=2":       "b: it is given twice",
	} {
		if _, err := ParseNamed(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that says %q", text, err, want)
		}
	}
	n := Named{Name: "a", Settings: []Setting{{"b", "1"}, {"c", ""}}}
	value, ok := n.Take("b")
	if value != "1" || !ok || n.String() != "a:c" || n.Has("b") || !n.Has("c") {
		t.Errorf("took %q, left %s", value, n)
	}
}
