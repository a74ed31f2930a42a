package ask

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"infill/infill"
	"infill/internal/check"
	"infill/samplers"
)

// TestChainsAsJSON: chains come back from JSON as they were, and a wrong value is
// an error.
func TestChainsAsJSON(t *testing.T) {
	chains := Chains{Sampler: samplers.DMALA{}, Candidates: 250, WarmUp: 3}
	chains.Steps = 7
	chains.StepSize = 0.5
	text, err := json.Marshal(chains)
	if err != nil {
		t.Fatal(err)
	}
	var read Chains
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, chains) {
		t.Errorf("%s became %+v, %v", text, read, err)
	}
	for text, want := range map[string]string{
		`{"sampler": "dmala", "steps": -1}`:         `steps: "-1" is not`,
		`{"sampler": "dmala", "sampler": "gibbs"}`:  "two keys",
		`{"sampler": "dmala", "stairs": 3}`:         "stairs is no option",
		`{"sampler": "dmala", "budget": "2s"}`:      "budget: it is an option of the chain rule",
		`{"samples": 3}`:                            "the options name no sampler",
		`{"sampler": "dmala", "initial": ["here"]}`: "initial: ",
	} {
		err := json.Unmarshal([]byte(text), &read)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// givens reads options as in "top=5".
func givens(t *testing.T, assignments ...string) []Given {
	t.Helper()
	var list []Given
	for _, a := range assignments {
		name, text, _ := strings.Cut(a, "=")
		g, err := MustFind(name).Given(text)
		if err != nil {
			t.Fatalf("%s: %v", a, err)
		}
		list = append(list, g)
	}
	return list
}

// TestDecide: the options that are given choose the method. An option that the
// method has not is refused, whatever its value, and the order in which options are
// given is all the same.
func TestDecide(t *testing.T) {
	f := newFake(t)
	of := func(assignments ...string) (*infill.Result, error) {
		r, err := NewRequest(twoSlots, givens(t, assignments...))
		if err != nil {
			return nil, err
		}
		return f.Fill(t.Context(), r, nil)
	}
	reasons := map[string]string{
		"chains":        "name one, such as dmala",
		"draws,chains":  "it is an option of draws and chains: give samples or a sampler, too",
		"search,draws":  "it is an option of the chain rule, and samplers have none: leave it out",
		"sampler alone": "",
	}
	methods := map[string][]string{infill.MethodSearch: nil, infill.MethodDraws: {"samples=2"},
		infill.MethodChains: {"sampler=dmala"}}
	for _, option := range Options() {
		if option.Methods == nil || option.Name == "sampler" || option.Name == "samples" {
			continue
		}
		text := cmp.Or(option.Default, option.Values[0])
		for method, assignments := range methods {
			own := option.Name + "=" + text
			one, err := of(append(slices.Clone(assignments), own)...)
			if !slices.Contains(option.Methods, method) {
				want := reasons[strings.Join(option.Methods, ",")]
				if err == nil || err.Error() != option.Name+": "+cmp.Or(want, "?") &&
					!strings.HasSuffix(err.Error(), cmp.Or(want, "?")) {
					t.Errorf("%s and %s: got %v, want %q", method, own, err, want)
				}
				continue
			}
			two, err2 := of(append([]string{own}, assignments...)...)
			three, err3 := of(assignments...)
			if errors.Join(err, err2, err3) != nil {
				t.Fatalf("%s and %s: %v", method, own, errors.Join(err, err2, err3))
			}
			if one.Signature != two.Signature || one.Signature != three.Signature {
				t.Errorf("%s: the default that is given is another than the one that is not", option.Name)
			}
		}
	}
	for want, assignments := range map[string][]string{infill.MethodSearch: {"budget=4000", "top=5", "order=l2r"},
		infill.MethodDraws: {"samples=2", "temperature=1"}, "gibbs": {"sampler=gibbs", "samples=2"}} {
		r, err := of(assignments...)
		if err != nil {
			t.Error(err)
		} else if r.Method != want {
			t.Errorf("%v are answered by %s", assignments, r.Method)
		}
	}
}

// TestTable: an option reads the text that it writes, and its values can be set.
func TestTable(t *testing.T) {
	texts := map[string]string{
		"sampler": "hamming-ball:radius=2", "slot": `1=red,dark blue,"Troy, Ohio" 2=sky`, "pos": "noun,verb 2=adverb",
		"ban": "red,dark blue", "samples": "3", "top": "4", "warm-up": "7", "step-size": "0.25", "balance": "0.75",
		"context": "A dog ran.", "blank": "{}", "initial": "fill:dark blue,sky", "seed": "18446744073709551615",
	}
	seen := map[string]bool{}
	for _, option := range Options() {
		if seen[option.Name] || option.Help == "" {
			t.Errorf("%s: twice, or its help is %q", option.Name, option.Help)
		}
		seen[option.Name] = true
		list := option.Values
		if text, ok := texts[option.Name]; ok {
			list = append(slices.Clone(list), text)
			delete(texts, option.Name)
		}
		for _, text := range list {
			g, err := option.Given(text)
			if err != nil {
				t.Errorf("%s %s: %v", option.Name, text, err)
			} else if got := g.Text(); got != text {
				t.Errorf("%s %s reads %s", option.Name, text, got)
			}
		}
		_, err := option.Given("?")
		if err == nil && !slices.Contains([]string{"ban", "context", "blank", "slot"}, option.Name) {
			t.Errorf("%s takes ?", option.Name)
		}
		if def := option.Default; def != "" {
			_, err := option.Given(def)
			if err != nil {
				t.Errorf("%s: its default %q is not %v", option.Name, def, err)
			}
		}
	}
	if len(texts) > 0 {
		t.Errorf("no options: %v", texts)
	}
}

// TestSigned: every option that changes the numbers is in the signature.
func TestSigned(t *testing.T) {
	f := newFake(t)
	sign := func(assignments ...string) string {
		common := givens(t, "slot=1=cat,dog", "pos=1=noun", "ban=rug", "case=keep", "distinct=true", "context=the cat")
		r := check.Must(NewRequest(twoSlots, common, givens(t, assignments...)))(t)
		return "|" + check.Must(f.Fill(t.Context(), r, nil))(t).Signature
	}
	proven := sign()
	drawn := sign("samples=3")
	moved := sign("sampler=dmala", "samples=3", "step-size=0.5")
	for _, option := range Options() {
		if slices.Contains([]string{"top", "blank"}, option.Name) {
			continue
		}
		key := "|" + option.Name + ":"
		draws := slices.Contains([]string{"samples", "temperature", "rank", "seed"}, option.Name)
		law := slices.Contains([]string{"order", "budget"}, option.Name)
		for name, signature := range map[string]string{"search": proven, "draws": drawn, "chains": moved} {
			ofChains := slices.Equal(option.Methods, []string{infill.MethodChains})
			want := !ofChains && !draws && !law || draws && name != "search" || law && name != "chains" ||
				ofChains && name == "chains"
			if strings.Contains(signature, key) != want {
				t.Errorf("%s, %s: want it %t in %s", name, option.Name, want, signature)
			}
		}
	}
}

// TestSamplerGrammar: a sampler's settings that are options of a fill become those,
// others stay with its name.
func TestSamplerGrammar(t *testing.T) {
	f := newFake(t)
	tests := []struct{ text, err, signature string }{
		{text: "dmala:step-size=0.4,balance=sqrt,steps=6",
			signature: "sampler:dmala|step-size:0.4|balance:sqrt|energy:pll|gradient:local|candidates:250|" +
				"temperature:1|samples:25|steps:6|"},
		{text: "hamming-ball:radius=2,candidates=3",
			signature: "sampler:hamming-ball:radius=2|energy:pll|candidates:3|"},
		{text: "dmala:balance=ratio,temperature=2", signature: "sampler:dmala|balance:ratio|energy:pll|"},
		{text: "mh", err: "one of dmala, gibbs, "},
		{text: "auto", err: "one of dmala, gibbs, "},
		{text: "gwg,dmala", err: "a sampler, as in dmala:step-size=0.4,balance=sqrt"},
		{text: "dmala:step-size=much",
			err: `a sampler with its settings: step-size: "much" is not a number above 0, or auto`},
		{text: "hamming-ball:radius=0",
			err: `a sampler with its settings: hamming-ball: radius "0" is not a whole number of 1 or more`},
		{text: "dmala:speed=3", err: "a sampler with its settings: dmala has no speed: "},
		{text: "dula-ordinal", err: "one of dmala, gibbs, "},
	}
	for _, test := range tests {
		g, err := MustFind("sampler").Given(test.text)
		var r infill.Request
		if err == nil {
			r, err = NewRequest(twoSlots, []Given{g})
		}
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got %v, want %q", test.text, err, test.err)
			}
		case err != nil:
			t.Errorf("%s: %v", test.text, err)
		default:
			result, err := f.Fill(t.Context(), r, nil)
			if err != nil || !strings.HasPrefix(result.Signature, test.signature) {
				t.Errorf("%s: %v, signature %s", test.text, err, result.Signature)
			}
		}
	}
	r, err := NewRequest(twoSlots, givens(t, "sampler=hamming-ball:radius=9"))
	if err != nil {
		t.Fatal(err)
	}
	var option *infill.OptionError
	_, err = f.Fill(t.Context(), r, nil)
	if !errors.As(err, &option) || !option.Misfit || !strings.Contains(err.Error(), "sampler: radius 9: ") {
		t.Errorf("a radius beyond the slots: %v", err)
	}
}

// TestListTexts: lists come back from their text as they were, and a text that
// is no list is refused; no word of it is lost.
func TestListTexts(t *testing.T) {
	for _, test := range []struct{ option, text, want, err string }{
		{option: "ban", text: `red, dark blue ,"a,b"`, want: `red,dark blue,"a,b"`},
		{option: "ban", text: " ", want: ""},
		{option: "ban", text: `"@home"`, want: `"@home"`},
		{option: "ban", text: "\"dark\nblue\",red", want: "\"dark\nblue\",red"},
		{option: "ban", text: "\"red\"\n\n", want: "red"},
		{option: "ban", text: "\"red\",blue\ngreen", err: "a list of words, as in red,blue"},
		{option: "ban", text: "red,,blue", err: "a list of words, as in red,blue"},
		{option: "ban", text: "1=red", err: "for every blank: no number stands before it"},
		{option: "ban", text: "@file", err: "only the command line reads files after an @"},
		{option: "ban", text: "red,@file", err: "only the command line reads files after an @"},
		{option: "ban", text: `["red"]`, err: "JSON takes its own lists"},
		{option: "slot", text: `red,"a,b" 2=blue,dark green`, want: `red,"a,b" 2=blue,dark green`},
		{option: "slot", text: "1=red\n2=blue", want: "1=red 2=blue"},
		{option: "slot", text: "1=red 1=blue", err: "a list of all words that each blank"},
		{option: "slot", text: "0=red", err: "a list of all words that each blank"},
		{option: "slot", text: "1=red 2=", err: "a list of all words that each blank"},
		{option: "slot", text: "1=red;2=blue", err: "a list of all words that each blank"},
		{option: "slot", text: "1=red; 2=blue", err: "a list of all words that each blank"},
		{option: "slot", text: "1=\"red\"\nblue", err: "a list of all words that each blank"},
		{option: "slot", text: "@file", err: "only the command line reads files after an @"},
		{option: "slot", text: "1=@file", err: "only the command line reads files after an @"},
		{option: "slot", text: `{"1": ["red"]}`, err: "JSON takes its own lists"},
		{option: "pos", text: "noun 2=verb,adverb", want: "noun 2=verb,adverb"},
		{option: "pos", text: "nouns", err: "a list of noun, verb"},
		{option: "initial", text: `fill:red,"a,b"`, want: `fill:red,"a,b"`},
		{option: "initial", text: "fill:\"red\"\nblue", err: "a fill, as in fill:dark,blue"},
		{option: "initial", text: "here", err: "fill:WORD,..., or one of model, random, shared, mask"},
		{option: "order", text: "both", err: "both went in 0.3"},
		{option: "order", text: "2,1", want: "2,1"},
		{option: "order", text: "2,2", err: "one of l2r, r2l"},
		{option: "budget", text: "2s", want: "2s"},
	} {
		given, err := MustFind(test.option).Given(test.text)
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s %q: %v, want %q", test.option, test.text, err, test.err)
			}
			if !panics(func() { MustGive(test.option, test.text) }) {
				t.Errorf("%s %q: no panic", test.option, test.text)
			}
		case err != nil || given.Text() != test.want:
			t.Errorf("%s %q: %q, error %v, want %q", test.option, test.text, given.Text(), err, test.want)
		default:
			again, err := MustFind(test.option).Given(given.Text())
			if err != nil || !reflect.DeepEqual(again.Value(), given.Value()) {
				t.Errorf("%s: %q becomes %v, error %v", test.option, given.Text(), again.Value(), err)
			}
		}
	}
	if !panics(func() { MustFind("colour") }) {
		t.Error("an option that is none: no panic")
	}
}

// panics reports whether a function panics.
func panics(do func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	do()
	return false
}

// TestSamplerSettings: a setting of a sampler that is an option has two spellings of one
// value, and what is no setting of a sampler is refused.
func TestSamplerSettings(t *testing.T) {
	plain, err := NewRequest(twoSlots, givens(t, "sampler=dmala", "step-size=0.4", "balance=sqrt"))
	if err != nil {
		t.Fatal(err)
	}
	inside, err := NewRequest(twoSlots, givens(t, "sampler=dmala:step-size=0.4,balance=sqrt"))
	if err != nil || !reflect.DeepEqual(plain, inside) || !reflect.DeepEqual(Facts(plain), Facts(inside)) {
		t.Errorf("%+v, and %+v, error %v", plain, inside, err)
	}
	for _, text := range []string{"dmala:samples=3", "dmala:rank=final", "dmala:top=3", "dmala:nonsense=1"} {
		_, err := MustFind("sampler").Given(text)
		if err == nil || !strings.Contains(err.Error(), "a sampler with its settings") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestZeroChains: chains of which only the sampler is given are those of a user who
// gives nothing else.
func TestZeroChains(t *testing.T) {
	named, err := NewRequest(twoSlots, givens(t, "sampler=dmala"))
	if err != nil {
		t.Fatal(err)
	}
	zero := infill.Request{Template: twoSlots, Method: infill.Chains{Sampler: samplers.DMALA{}}}
	c, _ := zero.Chains()
	if !reflect.DeepEqual(named.Settled(), zero.Settled()) || c.Steps != 50 || c.WarmUp != 25 || c.Candidates != 250 ||
		c.Samples != 25 {
		t.Errorf("%+v", c)
	}
	none := infill.Request{Method: infill.Chains{Sampler: samplers.DMALA{}, Steps: 1, WarmUp: 0}}
	if c, _ = none.Chains(); c.WarmUp != infill.None {
		t.Errorf("half of one step is %d steps", c.WarmUp)
	}
	f := newFake(t)
	if r, err := f.Fill(t.Context(), zero, nil); err != nil || r.Stats.Chains.Steps != 50 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFactsOfWords: a signature has the user's own words, also those that are values of
// other options.
func TestFactsOfWords(t *testing.T) {
	r, err := NewRequest(twoSlots, givens(t, "ban=auto", "slot=1=false", "context=auto", "distinct=false"))
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{}
	for _, f := range Facts(r) {
		facts[f.Name] = f.Text
	}
	_, off := facts["distinct"]
	if facts["ban"] != "auto" || facts["slot"] != "1=false" || facts["context"] != "auto" || off {
		t.Errorf("%v", facts)
	}
}

// TestLastSampler: of two samplers the last counts, with its own settings alone.
func TestLastSampler(t *testing.T) {
	r, err := NewRequest(twoSlots, givens(t, "sampler=dmala:step-size=0.4", "sampler=gibbs"))
	c, ok := r.Chains()
	if err != nil || !ok || c.Sampler != samplers.Sampler(samplers.Gibbs{}) || c.StepSize != 0 || r.Check() != nil {
		t.Errorf("%+v, %v, %v", c, err, r.Check())
	}
}

// TestListsInQuotes: what stands in quotes is no number of a list, and a list prints as it
// is read.
func TestListsInQuotes(t *testing.T) {
	for text, want := range map[string]infill.Lists{
		`1="x 2=y",z`:        {1: {"x 2=y", "z"}},
		`1="a, b" 2="c 3=d"`: {1: {"a, b"}, 2: {"c 3=d"}},
	} {
		g, err := MustFind("slot").Given(text)
		if err != nil || !reflect.DeepEqual(g.Value(), want) {
			t.Errorf("%s: %v, %v", text, g, err)
			continue
		}
		again, err := MustFind("slot").Given(g.Text())
		if err != nil || !reflect.DeepEqual(again.Value(), want) {
			t.Errorf("%s prints %s, which is %v, %v", text, g.Text(), again, err)
		}
	}
	for _, text := range []string{"red; 1=blue", "1=red; 2=blue"} {
		if _, err := MustFind("slot").Given(text); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
