package eval

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"

	"infill/infill"
	"infill/internal/lmtest"
	"infill/internal/logmath"
)

// newJudge is a model with tokens of its own, which cannot write the word dog.
// It returns log P of each of its words.
func newJudge(t *testing.T) (judge *infill.Filler, logP map[string]float64) {
	t.Helper()
	own := slices.DeleteFunc(words(), func(word string) bool { return word == "dog" })
	slices.Reverse(own)
	vocabulary := append(strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] . , ! < > ( ) ' \" / & 1"), own...)
	tokenizer, err := lmtest.Tokenizer(vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	model := lmtest.New(tokenizer.VocabularySize(), 32)
	model.Bond = 0
	model.Info.Name = "judge"
	law := make([]float64, len(vocabulary))
	for token := range law {
		law[token] = model.Weight(token)
	}
	logmath.Normalise(law)
	logP = map[string]float64{}
	for token, word := range vocabulary {
		logP[word] = law[token]
	}
	return infill.New(model, tokenizer), logP
}

// TestJudge: each sample has the mean log P of its filled words, in the judge's
// tokens, and the table its mean over sentences with an interval.
func TestJudge(t *testing.T) {
	_, alone := reference(t)
	o, _ := small(t)
	var logP map[string]float64
	o.Judge, logP = newJudge(t)
	results := run(t, o)
	if !bytes.Equal(read(t, o.Dir, metricsFile), alone) {
		t.Error("the judge changes metrics.json")
	}
	rows, err := csv.NewReader(bytes.NewReader(read(t, o.Dir, tableFile))).ReadAll()
	if err != nil || len(rows) != 1+6*3*4 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	const column = "log_p_word/judge@0123456789ab"
	if want := append(slices.Clone(ownColumns), column); !slices.Equal(rows[0], want) {
		t.Fatalf("columns %q, want %q", rows[0], want)
	}
	byID := map[string][]string{}
	for _, row := range rows[1:] {
		byID[row[0]] = row
	}
	w := Watch(o.Dir)
	without := 0
	var means []float64 // over the likeliest, of each sentence
	for k := range w.Header.fills {
		record := w.records[k]
		var likeliest []float64
		for i, c := range record.Chains {
			row := byID[fmt.Sprintf("%s/%d/%d", k.method, k.sentence, i)]
			if row == nil || row[5] != c.Text {
				t.Fatalf("sample %d of %v: %q", i, k, row)
			}
			want := 0.0
			for _, fill := range c.Fills {
				p, known := logP[strings.ToLower(fill)]
				if !known {
					p = math.NaN()
				}
				want += p / float64(len(c.Fills))
			}
			if math.IsNaN(want) {
				without++
				if row[7] != "" {
					t.Errorf("%q has %s, and the judge cannot write it", c.Fills, row[7])
				}
				continue
			}
			got, err := strconv.ParseFloat(row[7], 64)
			if err != nil || math.Abs(got-want) > 1e-5 {
				t.Errorf("%q has %s, want %v", c.Fills, row[7], want)
			}
			if slices.Contains(record.likeliest(2), i) {
				likeliest = append(likeliest, want)
			}
		}
		if k.method == "dmala" && likeliest != nil {
			means = append(means, stat.Mean(likeliest, nil))
		}
	}
	if without == 0 {
		t.Error("no sample has a word that the judge cannot write")
	}
	table := results.Table("top")
	cell := table.Methods[1].Numbers[column]
	if want := stat.Mean(means, nil); math.Abs(float64(cell.Value)-want) > 1e-5 || !(cell.Low < cell.Value) {
		t.Errorf("the table has %+v, want %v", cell, want)
	}
	note := fmt.Sprintf("left to right, in its own tokens, nats; %d of 72 samples have a number", 72-without)
	if !strings.Contains(strings.Join(table.Notes, "\n"), note) {
		t.Errorf("no %q in %q", note, table.Notes)
	}
	again, err := ReadResults(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(table.Rows(), again.Table("top").Rows()); diff != "" {
		t.Errorf("read again, the table differs:\n%s", diff)
	}
}

// TestJoin: anybody's numbers become columns; a file that does not belong to the
// run is refused.
func TestJoin(t *testing.T) {
	o, _ := small(t)
	results := run(t, o)
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "numbers.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := "id,text,perplexity\n"
	for sentence := range 6 {
		text += fmt.Sprintf("gibbs/%d/0,left out,%d\ngibbs/%d/1,,\n", sentence, sentence, sentence)
	}
	if err := results.Join(file(text)); err != nil {
		t.Fatal(err)
	}
	table := results.Table("all")
	// Of 0 to 5 the mean is 2.5, and Student's t of 5 degrees of freedom 2.5706.
	reach := 2.5705818366147395 * math.Sqrt(3.5/6)
	got := table.Methods[0].Numbers["perplexity"]
	if got.Value != 2.5 || math.Abs(float64(got.Low)-(2.5-reach)) > 1e-9 ||
		math.Abs(float64(got.High)-(2.5+reach)) > 1e-9 {
		t.Errorf("%+v, want 2.5 ± %v", got, reach)
	}
	if table.Methods[1].Numbers["perplexity"].Value.Defined() {
		t.Error("a method without numbers has a mean")
	}
	if !strings.Contains(strings.Join(table.Notes, "\n"), "perplexity: by the samples' ids; 6 of 72 samples") {
		t.Errorf("notes %q", table.Notes)
	}
	for text, want := range map[string]string{
		"":                                 "no column id",
		"name,x\ngibbs/0/0,1\n":            "no column id: name the samples as samples.csv does",
		"id,x\ngibbs/6/0,1\n":              `row 1: "gibbs/6/0" is no sample of the run`,
		"id,x\ngibbs/0/0,1\ngibbs/0/0,2\n": `row 2: "gibbs/0/0" is no sample of the run, or stands twice`,
		"id,x\ngibbs/0/0,good\n":           `row 1, column x: "good" is not a finite number`,
		"id,x\ngibbs/0/0,NaN\n":            `row 1, column x: "NaN" is not a finite number`,
		"id,x,x\ngibbs/0/0,1,2\n":          `column 3 is called "x", as another`,
		"id,self_bleu\ngibbs/0/0,1\n":      `column 2 is called "self_bleu", as another`,
		"id,perplexity\ngibbs/0/0,1\n":     `column 2 is called "perplexity", as another`,
		"id,x\ngibbs/0/0\n":                "wrong number of fields",
	} {
		err := results.Join(file(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
