package product

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
)

// TestNearest: compatible conditionals give back their joint, with a minimum of
// 0. Of others, the minimum is above 0, and no law beside it is nearer.
func TestNearest(t *testing.T) {
	const rows, columns = 4, 6
	r := rand.New(rand.NewPCG(1, 2))
	conditionals := func(joint []float64) (first, second []float64) {
		first, second = make([]float64, len(joint)), make([]float64, len(joint))
		for at, p := range joint {
			row, column := 0.0, 0.0
			for b := range columns {
				row += joint[at/columns*columns+b]
			}
			for a := range rows {
				column += joint[a*columns+at%columns]
			}
			first[at], second[at] = p/column, p/row
		}
		return first, second
	}
	law := func() []float64 {
		joint := make([]float64, rows*columns)
		for at := range joint {
			joint[at] = math.Exp(2 * r.NormFloat64())
		}
		floats.Scale(1/floats.Sum(joint), joint)
		return joint
	}
	one, other := law(), law()
	first, second := conditionals(one)
	joint, least, steps := nearest(first, second, columns)
	if d := floats.Distance(joint, one, 1) / 2; d > 1e-4 || least > 1e-6 || steps < 2 {
		t.Errorf("a compatible pair: total variation %v, minimum %v, %d steps", d, least, steps)
	}
	_, second = conditionals(other) // of another law, so that they do not fit
	joint, least, _ = nearest(first, second, columns)
	distance := func(joint []float64) (sum float64) {
		own, also := conditionals(joint)
		for at := range joint {
			sum += divergence(first[at], own[at]) + divergence(second[at], also[at])
		}
		return sum
	}
	if math.Abs(distance(joint)-least) > 1e-9 || least < 0.1 {
		t.Errorf("the minimum is %v, and of the joint %v", least, distance(joint))
	}
	for range 100 {
		near := make([]float64, len(joint))
		for at, p := range joint {
			near[at] = p * math.Exp(0.1*r.NormFloat64())
		}
		floats.Scale(1/floats.Sum(near), near)
		if d := distance(near); d < least-1e-6 {
			t.Fatalf("a law beside it has %v, less than %v", d, least)
		}
	}
}

// TestLaws: where the model's conditionals are those of one joint, and so are
// its answers with both masked, the joints from left to right and from right to
// left are that one, exp U is not, and the nearest law is.
func TestLaws(t *testing.T) {
	joint := []float64{0.4, 0.1, 0.2, 0.3} // [a × b]
	table := &pairTable{rows: 2, columns: 2}
	table.alone = [2][]float64{{math.Log(0.5), math.Log(0.5)}, {math.Log(0.6), math.Log(0.4)}}
	for at, p := range joint {
		table.given[0] = append(table.given[0], math.Log(p)-table.alone[1][at%2])
		table.given[1] = append(table.given[1], math.Log(p)-table.alone[0][at/2])
	}
	var f foundJoints
	f.compare(table, [2]int{0, 1})
	for _, name := range jointNames {
		want := -math.Log(0.1)
		if name == expU { // 0.1 of the sum over p²/(p(a) p(b)), which is 0.1²/0.2 of 1.1667
			want = -math.Log(0.05 / (0.16/0.3 + 0.05 + 0.04/0.3 + 0.09/0.2))
		}
		if math.Abs(f.nats[name]-want) > 1e-4 {
			t.Errorf("%s: %v nats, want %v", name, f.nats[name], want)
		}
	}
	if f.tv[[2]string{leftToRight, rightToLeft}] > 1e-12 || f.tv[[2]string{leftToRight, compatible}] > 1e-4 ||
		f.tv[[2]string{leftToRight, expU}] < 0.05 || f.kl[[2]string{leftToRight, expU}] < 0.01 {
		t.Errorf("total variations %v, divergences %v", f.tv, f.kl)
	}
	if math.Abs(f.mass-1) > 1e-12 || f.incompatibility > 1e-9 {
		t.Errorf("mass %v, incompatibility %v", f.mass, f.incompatibility)
	}
}

// TestJoints: neighbours stand side by side, the table's rows and columns are
// the two blanks, and a run is the same for the same seed.
func TestJoints(t *testing.T) {
	settings := []string{"texts", "testdata/sentences.txt", "sentences", "4", "tokens", "3"}
	report := labtest.Studied(t, study(t, "joints", settings...), lab.StudyOptions{Seed: 1})
	if again := labtest.Studied(t, study(t, "joints", settings...),
		lab.StudyOptions{Seed: 1}); again.Text() != report.Text() {
		t.Error("two runs of a seed differ")
	}
	for _, c := range report.Cells {
		if c.Labels.Value("joint") != "all" {
			if c.Numbers["nats"] <= 0 {
				t.Errorf("%v: %v nats", c.Labels, c.Numbers["nats"])
			}
			continue
		}
		want := map[string]float64{together: 4, neighbours: 2, atRandom: 2}[c.Labels.Value("blanks")]
		if m := c.Numbers["mass"]; c.Numbers["sentences"] != want || m <= 0 || m >= 1 {
			t.Errorf("%v: %v", c.Labels, c.Numbers)
		}
	}
	model := labtest.Must(openLanguage(t.Context(), "", &lab.Inputs{}))(t)
	defer model.Close()
	texts := labtest.Must(readTexts(&lab.Inputs{}, []string{"testdata/sentences.txt"}))(t)
	for _, p := range labtest.Must(drawPairs(model, texts, 6, 3))(t) {
		if d := p.slots[1] - p.slots[0]; d < 1 || p.kind == neighbours && d != 1 {
			t.Errorf("%s: %v", p.kind, p.slots)
		}
	}
	// f(a|b) of the table is what the model says with b filled in.
	p := labtest.Must(drawPairs(model, texts, 4, 1))(t)[0]
	lists := [2][]int{{1037, 2001, 2002}, {2003, 2004}}
	for k := range lists {
		table := labtest.Must(p.given(t.Context(), model, k, lists))(t)
		ids := append([]int{}, p.ids...)
		ids[p.slots[1-k]] = lists[1-k][1]
		row := labtest.Must(chains.Expected(t.Context(), model.MaskedLM, ids, p.slots[k:k+1]))(t)[0]
		at := 0*2 + 1 // a is the first, b the second
		if k == 1 {
			at = 1*2 + 0
		}
		if math.Abs(table[at]-float64(row[lists[k][0]])) > 1e-4 {
			t.Errorf("blank %d: %v, want %v", k, table[at], row[lists[k][0]])
		}
	}
	many := study(t, "joints", "texts", "testdata/sentences.txt", "sentences", "1000")
	_, err := many.Run(t.Context(), lab.StudyOptions{})
	if err == nil || !strings.HasPrefix(err.Error(), "sentences: ") {
		t.Errorf("too many sentences: %v", err)
	}
}
