package samplers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseList(t *testing.T) {
	for text, want := range map[string][]Spec{
		"gibbs":               {{Name: "gibbs"}},
		"gibbs, gwg":          {{Name: "gibbs"}, {Name: "gwg"}},
		"dmala:step-size=0.4": {{Name: "dmala", Settings: []Assignment{{"step-size", "0.4"}}}},
		"a:paper,b=1,c:d=2,e=f=g,all": {{Name: "a", Settings: []Assignment{{"paper", ""}, {"b", "1"}}},
			{Name: "c", Settings: []Assignment{{"d", "2"}, {"e", "f=g"}}}, {Name: "all"}},
		"dmala:initial=fill:dark": {{Name: "dmala", Settings: []Assignment{{"initial", "fill:dark"}}}},
	} {
		got, err := ParseList(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
		var again []string
		for _, s := range got {
			again = append(again, s.String())
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
		"a:b=1,b=2":       "b is given twice",
	} {
		if _, err := ParseList(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that says %q", text, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"hmc":                      `unknown sampler "hmc": valid are gibbs, `,
		"gibbs,gwg":                "2 samplers where one is wanted",
		"gibbs:step-size=1":        "gibbs has no step-size: it has no settings",
		"gibbs:balance=min":        "gibbs has no balance",
		"gibbs:terms=1":            "gibbs has no terms",
		"gibbs:paper":              "gibbs has no paper",
		"gwg:preconditioner=1":     "gwg has no preconditioner: its settings are balance, terms",
		"gibbs-x:radius=1":         "gibbs-x has no radius",
		"dmala:step-size=-1":       `dmala: step-size "-1" is not a number above 0`,
		"dmala:step-size=NaN":      `"NaN" is not a number above 0`,
		"dmala:balance=square":     `balance "square" is not one of sqrt, ratio, min, max, or a number from 0.5 to 1`,
		"dmala:balance=0.4":        `balance "0.4" is not`,
		"dmala:terms=0":            `terms "0" is not a whole number of 1 or more`,
		"dmala:preconditioner=1/0": `preconditioner "1/0" is not finite numbers above 0`,
		"pafs:radius=x":            `radius "x" is not a whole number`,
		"r-hmc:leapfrog=-1":        `leapfrog "-1" is not a whole number`,
		"dmala:step-size=1,balance=min,step-size=2": "step-size is given twice",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one that says %q", text, err, want)
		}
	}
}

func TestSpec(t *testing.T) {
	s, err := Parse("dmala:step-size=inf,preconditioner=0.5/2")
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{"step-size": "+Inf", "balance": "sqrt", "terms": "",
		"preconditioner": "0.5/2", "radius": ""} {
		if got := s.Value(setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	text := Spec{Name: "dmala", OnText: true}
	if text.Value("step-size") != "5" || text.Value("balance") != "1" ||
		text.With("balance", "sqrt").Value("balance") != "sqrt" {
		t.Errorf("dmala on text: step size %s, balance %s", text.Value("step-size"), text.Value("balance"))
	}
	b := text.With("step-size", 0.25).With("balance", 0.75).With("step-size", 1e-9)
	if got := b.String(); got != "dmala:balance=0.75,step-size=1e-09" || text.String() != "dmala" {
		t.Errorf("%s, and %s before", got, text)
	}
	if v, ok := b.Take("balance"); !ok || v != "0.75" || b.String() != "dmala:step-size=1e-09" {
		t.Errorf("took %q %v of %s", v, ok, b)
	}
	if _, ok := b.Take("balance"); ok {
		t.Error("took it twice")
	}
	if err := (Spec{Name: "r-mala", OnText: true}).Check(); err == nil ||
		!strings.Contains(err.Error(), "not for text") {
		t.Errorf("r-mala on text: %v", err)
	}
}

// The grammar takes exactly the settings that Describe lists.
func TestDescribe(t *testing.T) {
	for _, name := range Names() {
		d := Describe(name)
		if d.Name != name || d.Title == "" || d.Paper == "" || d.Target == "" || d.Cost == "" {
			t.Errorf("incomplete description %+v", d)
		}
		for _, s := range d.Settings {
			if s.Help == "" || !d.Has(s.Name) {
				t.Errorf("%s: setting %+v", name, s)
			}
			spec := Spec{Name: name}
			if got := spec.Value(s.Name); got != s.Default {
				t.Errorf("%s: %s is %q by default, described as %q", name, s.Name, got, s.Default)
			}
			if s.Default != "" {
				if err := spec.With(s.Name, s.Default).Check(); err != nil {
					t.Errorf("%s does not take its own default: %v", name, err)
				}
			}
		}
		if d.Tunes != "" && !d.Has(d.Tunes) || (d.Tunes == "") != (find(name).adaptation == nil) {
			t.Errorf("%s tunes %q", name, d.Tunes)
		}
		if d.OnText != nil {
			if err := (Spec{Name: name, OnText: true}).Check(); err != nil {
				t.Errorf("on text: %v", err)
			}
		}
	}
	if d := Describe("nuts"); d.Name != "" || d.Has("step-size") {
		t.Errorf("%+v", d)
	}
}
