package commands

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/score"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/tokenize"
)

const dogs = "the dog sat .\tthe sat dog .\nthe sat dog .\tthe dog sat .\n"

// Flags that exclude each other, and texts that are none, are refused before
// anything is printed.
func TestScoreRefuses(t *testing.T) {
	useFormula(t)
	writeFiles(t, map[string]string{"texts.csv": "text,item\nthe dog,1\n", "blank.txt": "\n \n",
		"notes":     "the dog\n",
		"pairs.csv": "good,bad\nthe dog,dog the\n", "words.txt": "a\n"})
	const excluded = "infill: --pairs excludes --words, --tokens and --rank: a pair has one row, in its place\n"
	runCases(t, score.NewCmd, []callCase{
		{Line: "score --pairs --words x", Code: 2, Err: excluded},
		{Line: "score --pairs --tokens x", Code: 2, Err: excluded},
		{Line: "score --pairs --rank sum x", Code: 2, Err: excluded},
		{Line: "score --tokens --words x", Code: 2, Err: "infill: --tokens and --words exclude each other: give one\n"},
		{Line: "score --base e x", Code: 2, Err: "infill: --base: it is that of surprisals: give --words\n"},
		{Line: "score --pairs -m formula -m other x", Code: 2, Err: "infill: --pairs takes one --model\n"},
		{Line: "score -m other -m other x", Code: 2,
			Err: "infill: --model: \"other\" is not another model than those before\n"},
		{Line: "score -m other -m nowhere dog", Code: 1, Err: "infill: model nowhere: not in the cache\n"},
		{Line: "score --target item texts.csv", Code: 2,
			Err: "infill: --target: it is a column of words: give --words\n"},
		{Line: "score --words --format csv --target nothing texts.csv", Code: 2,
			Err: "infill: --target: texts.csv has no column \"nothing\"\n"},
		{Line: "score --words --target item texts.csv", Code: 2,
			Err: "infill: --target: text has no column for it: give --format csv, jsonl or json\n"},
		{Line: "score --words --format csv --target item", Code: 2,
			Err: "infill: --target: a text alone has no columns: give a file, or --input jsonl\n"},
		{Line: "score --base 3 --words x", Code: 2, Err: `infill: --base: "3" is not one of `},
		{Line: "score --column a,b x", Code: 2, Err: "infill: --column: \"a,b\" is not one name\n"},
		{Line: "score --column a --pairs x", Code: 2,
			Err: "infill: --column: \"a\" is not two names with a comma between them\n"},
		{Line: "score --device tpu x", Code: 2, Err: "infill: --device: "},
		{Line: "score --quiet --verbose x", Code: 2,
			Err: "infill: --quiet and --verbose exclude each other: give one\n"},
		{Line: "score --model nowhere dog", Code: 1, Err: "infill: model nowhere: not in the cache\n"},
		{Line: "score --keep nothing texts.csv", Code: 2,
			Err: "infill: --keep: texts.csv has no column \"nothing\"\n"},
		{Line: "score blank.txt", Code: 2, Err: "infill: blank.txt: no text in it\n"},
		{Line: "score notes", Code: 2, Err: "infill: --from: notes: its name does not tell the form of the input"},
		{Line: "score nowhere.csv", Code: 2, Err: "infill: there is no file nowhere.csv\n"},
		{Line: "score --pairs pairs.csv", Code: 2, Err: "infill: --column: pairs.csv has no column \"first\"…" +
			"\nhint: a file of tabs without a head line is read as standard input: infill score --pairs < FILE\n"},
		{Line: "score texts.csv --column none", Code: 2, Err: "has no column \"none\": its columns are \"text\", " +
			"\"item\"\n"},
		{Line: "score --pairs", Texts: []string{"one text"}, Code: 2,
			Err: "infill: a pair is two texts with a tab between them\n"},
		{Line: "score --pairs", Texts: []string{"a\tb\tc"}, Code: 2,
			Err: "infill: a pair is two texts with a tab between them\n"},
		{Line: "score", Texts: []string{"the dog", ""}, Code: 2, Err: "infill: text 2: no text: "},
		{Line: "score", Texts: []string{"the [MASK]"}, Code: 2, Err: "infill: blank in a whole text at byte offset 4"},
		{Line: "score", Code: 2, Err: "infill: no text on standard input\nhint: give one as an argument, or one a " +
			"line\n"},
	})
	r := call(t, score.NewCmd, terminal.Streams{InTerminal: true}, "score")
	if r.Code != 2 || !strings.Contains(r.Err, "\nhint: infill score \"he had never seen the sea .\"") {
		t.Errorf("of a terminal: %+v", r)
	}
}

// Each form has its rows: of texts, words, tokens and pairs.
func TestScoreForms(t *testing.T) {
	useFormula(t)
	writeFiles(t, map[string]string{
		"texts.csv": "id,text,context,item\n7,the dog sat,he came .,x\n8,the old cat,,y\n",
		"pairs.csv": "good,bad\nthe dog sat .,the sat dog .\n"})
	text := []string{"the dog sat ."}
	runCases(t, score.NewCmd, []callCase{
		{Line: "score", Texts: text, Out: "log-likelihood  tokens  pseudo-perplexity  text\n…       4  …  the dog " +
			"sat .\n"},
		{Line: "score --format csv", Texts: text,
			Out: "id,text,sequence_score,tokens,pseudo_perplexity,PLL_metric\n,the dog sat .,-…,4,…,l2r\n"},
		{Line: "score --format csv --method original", Texts: text, Out: ",original\n"},
		{Line: "score --format json", Texts: text, Out: "[\n  {\n    \"text\": \"the dog sat .\",…\n  }\n]\n"},
		{Line: "score --tokens", Texts: text, Out: "the dog sat .\n\n  token …\n  the …\n  dog …\n  sat …\n  . …\n" +
			"  sum …\n\n4 tokens, method l2r, pseudo-perplexity "},
		{Line: "score --tokens --format csv", Texts: text,
			Out: "id,text,position,token,token_id,token_score,sequence_score,PLL_metric\n,the dog sat .,1,the,5,-…\n" +
				",the dog sat .,2,dog,7,-"},
		{Line: "score --words", Texts: text, Out: "the dog sat .\n\n  word …bits  tokens\n  the …  1\n…\n\n4 words, …" +
			" bits together, method l2r\n"},
		{Line: "score --words --base 10", Texts: text, Out: "  word …bans  tokens\n…bans together"},
		{Line: "score --words --format jsonl --base e unseen", Out: `{"text":"unseen","word":"unseen","start":0,"end":6,` +
			`"tokens":2,"surprisal":`},
		{Line: "score --pairs", In: dogs, Out: "  text …log-likelihood\n  the dog sat . …\n  the sat dog . …\n…" +
			"\nthe first text is the likelier in 1 of 2 pairs, 50.0 %, 95 % interval 9.5 to 90.5 %\n"},
		{Line: "score --pairs --format jsonl", In: dogs,
			Out: `{"first":{"text":"the dog sat ."…,"right":…` + "\n" + `{"pairs_right":1,"pairs":2,"interval":[0.09`},
		{Line: "score --pairs --format csv", In: dogs,
			Out: "id,first,second,first_sequence_score,second_sequence_score,right\n,the dog sat .,the sat dog .,-",
			Err: "infill: the first text is the likelier in 1 of 2 pairs, 50.0 %, 95 % interval 9.5 to 90.5 %\n"},
		{Line: "score --pairs --format csv --quiet", In: dogs, Out: "right\n"},
		{Line: "score --pairs --column good,bad pairs.csv", Out: "in 0 of 1 pair, "},
		{Line: "score --format csv texts.csv",
			Out: "id,text,sequence_score,tokens,pseudo_perplexity,PLL_metric,context,item\n" +
				"7,the dog sat,…,he came .,x\n8,the old cat,…,,y\n",
			Err: "infill: columns read as options: context; --keep context copies one instead\n"},
		{Line: "score --format csv --keep context texts.csv", Out: ",context,item\n7,"},
		{Line: "score --format csv --column item texts.csv -q",
			Out: "id,item,sequence_score,tokens,pseudo_perplexity," +
				"PLL_metric,text,context\n7,x,-"},
		{Line: "score -v dog", Out: "  dog\n", Err: "infill: model formula, …\ninfill: signature " +
			"method:l2r|model:formula@"},
		{Line: "score -- - dog", In: "the cat\n", Out: "  -\n…  dog\n"},
		{Line: "score - dog", In: "the cat\n", Out: "  the cat\n…  dog\n"},
	})
}

// jsonOf returns the objects that the command prints as JSON lines.
func jsonOf(t *testing.T, in string, args ...string) (list []map[string]any) {
	t.Helper()
	r := call(t, score.NewCmd, terminal.Streams{In: strings.NewReader(in)},
		append([]string{"score", "--format", "jsonl"}, args...)...)
	for line := range strings.Lines(r.Out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	if r.Code != 0 {
		t.Fatalf("%v: %+v", args, r)
	}
	return list
}

// --rank puts the likeliest first, by the sum or by the pseudo-perplexity; texts that
// are equal stay in their order.
func TestScoreRank(t *testing.T) {
	useFormula(t)
	texts := []string{"the dog sat on the mat .", "dog", "cat", "the old cat slept"}
	for rank, better := range map[string]func(a, b map[string]any) bool{
		"sum": func(a, b map[string]any) bool { return a["log_likelihood"].(float64) >= b["log_likelihood"].(float64) },
		"perplexity": func(a, b map[string]any) bool {
			return a["pseudo_perplexity"].(float64) <= b["pseudo_perplexity"].(float64)
		},
	} {
		list := jsonOf(t, "", append([]string{"--rank", rank}, texts...)...)
		for i := 1; i < len(list); i++ {
			if !better(list[i-1], list[i]) {
				t.Errorf("%s: %v stands before %v", rank, list[i-1]["text"], list[i]["text"])
			}
		}
		if len(list) != len(texts) {
			t.Errorf("%s: %d rows", rank, len(list))
		}
	}
	same := jsonOf(t, "{\"id\":1,\"text\":\"dog\"}\n{\"id\":2,\"text\":\"dog\"}\n", "--rank", "sum", "--input", "jsonl")
	if same[0]["id"] != 1.0 || same[1]["id"] != 2.0 {
		t.Errorf("equal texts: %v", same)
	}
}

// A context is scored with, and not itself: that of the record goes before that of the
// flag, and an empty cell takes the flag's.
func TestScoreContext(t *testing.T) {
	useFormula(t)
	in := `{"text":"the dog","context":"he came ."}` + "\n" + `{"text":"the dog","context":" "}` + "\n" +
		`{"text":"the dog"}` + "\n"
	list := jsonOf(t, in, "--input", "jsonl", "--context", "she ran .")
	for i, want := range []string{"he came .", "she ran .", "she ran ."} {
		if list[i]["context"] != want {
			t.Errorf("line %d has the context %v, want %s", i+1, list[i]["context"], want)
		}
	}
	kept := jsonOf(t, in, "--input", "jsonl", "--keep", "context")
	if kept[0]["log_likelihood"] != kept[2]["log_likelihood"] {
		t.Error("a context that is only copied changes the score")
	}
	wrong := call(t, score.NewCmd, terminal.Streams{In: strings.NewReader(`{"text":"a","context":3}`)}, "score",
		"--input", "jsonl")
	if wrong.Code != 1 || !strings.HasPrefix(wrong.Err, "infill: line 1: \"context\" is not a string: ") ||
		!strings.HasSuffix(wrong.Err, ", or copy it by --keep context\n") {
		t.Errorf("of a number: %+v", wrong)
	}
}

// gemma returns a tokenizer whose pieces are other than the words of [useFormula].
func gemma(t *testing.T) *tokenize.Tokenizer {
	t.Helper()
	file, err := os.ReadFile(filepath.FromSlash("../../../../tokenize/testdata/families/gemma.tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "tokenizer.json"), file, 0o644); err != nil {
		t.Fatal(err)
	}
	tokenizer, err := tokenize.Load(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// A token that is a line break does not break the row of its table.
func TestScoreTokenOfALine(t *testing.T) {
	useModel(t, gemma(t))
	r := call(t, score.NewCmd, terminal.Streams{}, "score", "--tokens", "he\nme")
	_, table, _ := strings.Cut(r.Out, "log-probability\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		if !strings.Contains(line, ".") {
			t.Errorf("a row without a number: %q in\n%s", line, r.Out)
		}
	}
	if r.Code != 0 || strings.Count(table, "\n") != 3 {
		t.Errorf("%+v", r)
	}
}

// --target counts positions from a word, and a text without it is refused alone.
func TestScoreTarget(t *testing.T) {
	useFormula(t)
	var lines strings.Builder
	for _, target := range []string{`"sat"`, `""`, `null`} {
		fmt.Fprintf(&lines, `{"text":"the dog sat (on the mat).","target":%s}`+"\n", target)
	}
	list := jsonOf(t, lines.String(), "--input", "jsonl", "--words", "--target", "target")
	words := map[string]float64{"the": -2, "dog": -1, "sat": 0, "(": 1, "on": 1, "mat": 3, ")": 3, ".": 3}
	for i, row := range list {
		want, ok := words[row["word"].(string)]
		if row["start"] == 16.0 { // the second "the"
			want = 2
		}
		got := row["from_target"]
		if i >= 9 {
			if got != nil {
				t.Errorf("%v without a target", row)
			}
			continue
		}
		if !ok || got != want {
			t.Errorf("target %v: %v has from_target %v, want %g", row["target"], row["word"], got, want)
		}
	}
	if len(list) != 3*9 {
		t.Errorf("%d rows", len(list))
	}
	writeFiles(t, map[string]string{"wrong.csv": "text,at\nthe dog sat,dog\nthe dog sat,cat\n" +
		"the dog and the cat,the\n"})
	runCases(t, score.NewCmd, []callCase{{Line: "score --words --target at --format csv wrong.csv", Code: 1,
		Out: "id,text,word,start,end,tokens,surprisal,log_likelihood,position,after,from_target,at\n" +
			",the dog sat,the,…,1,,-1,dog\n,the dog sat,dog,…,2,,0,dog\n,the dog sat,sat,…,3,,1,dog\n",
		Err: "infill: wrong.csv, line 3: --target: the text has no word \"cat\"\n" +
			"infill: wrong.csv, line 4: --target: the text has the word \"the\" twice: leave its cell empty, and " +
			"count from position\n"}})
}

// Several models give one long table, and words are compared by their places, whatever
// the tokens are.
func TestScoreModels(t *testing.T) {
	useModel(t, gemma(t))
	pieces := cli.OpenModel
	useFormula(t)
	whole := cli.OpenModel
	cli.OpenModel = func(o infill.OpenOptions) (*infill.Filler, error) {
		if o.Model == "pieces" {
			return pieces(o)
		}
		return whole(o)
	}
	texts := []string{"the dog sat .", "the old cat slept", "he ran", "she came ."}
	for _, c := range []struct{ line, column, noun string }{
		{"score -q --words -m formula -m pieces", "surprisal", "13 words of 4 texts"},
		{"score -q --words --base e -m formula -m other", "surprisal", "13 words of 4 texts"},
		{"score -q -m other -m pieces", "log_likelihood", "4 texts"},
	} {
		arguments := strings.Fields(c.line)
		names := []string{arguments[len(arguments)-3], arguments[len(arguments)-1]}
		rows := jsonOf(t, strings.Join(texts, "\n"), arguments[1:]...)
		half := len(rows) / 2
		var x, y []float64
		byText := map[any][]int{}
		for i, row := range rows[:half] {
			further := rows[half+i]
			same := row["text"] == further["text"] && row["start"] == further["start"] && row["end"] == further["end"]
			if !same || c.column == "surprisal" && (row["model"] != names[0] || further["model"] != names[1]) {
				t.Errorf("%s: %v beside %v", c.line, row, further)
			}
			x = append(x, row[c.column].(float64))
			y = append(y, further[c.column].(float64))
			byText[row["text"]] = append(byText[row["text"]], i)
		}
		estimates := func(left []int) (difference, z float64) {
			var a, b []float64
			for i := range x {
				if !slices.Contains(left, i) {
					a = append(a, x[i])
					b = append(b, y[i])
				}
			}
			return stat.Mean(b, nil) - stat.Mean(a, nil), math.Atanh(stat.Correlation(a, b, nil))
		}
		var differences, zs []float64
		for _, left := range byText {
			difference, z := estimates(left)
			differences = append(differences, difference)
			zs = append(zs, z)
		}
		n := float64(len(byText))
		spread := func(values []float64) float64 { return stat.StdDev(values, nil) * (n - 1) / math.Sqrt(n) }
		difference, z := estimates(nil)
		reach := 3.182446305284263 * spread(zs) // the 97.5 % quantile of Student's t, 3 degrees of freedom
		unit := map[bool]string{true: "bits", false: "nats"}[c.line == "score -q --words -m formula -m pieces"]
		want := fmt.Sprintf("infill: %s less %s: %s, mean difference %+.3g ± %.2g %s, r %.3f, 95 %% interval %.3f to "+
			"%.3f\n", names[1], names[0], c.noun, difference, spread(differences), unit, math.Tanh(z),
			math.Tanh(z-reach), math.Tanh(z+reach))
		told := call(t, score.NewCmd, terminal.Streams{In: strings.NewReader(strings.Join(texts, "\n"))},
			slices.DeleteFunc(arguments, func(a string) bool { return a == "-q" })...)
		if lines := strings.SplitAfter(told.Err, "\n"); lines[len(lines)-2] != want {
			t.Errorf("%s: %q, want %q", c.line, told.Err, want)
		}
	}
	runCases(t, score.NewCmd, []callCase{
		{Line: "score --words --format csv -m formula -m other dog", Out: "id,text,word,start,end,tokens,surprisal," +
			"log_likelihood,position,after,model\n,dog,dog,…,formula\n,dog,dog,…,other\n",
			Err: "infill: other less formula: 1 word of 1 text, mean difference …bits\n"},
		{Line: "score -m formula -m other dog", Out: "…  formula: dog\n…  other: dog\n",
			Err: "infill: other less formula: 1 text, mean difference …nats\n"},
		{Line: "score --tokens -m formula -m other dog", Out: ", model formula\n…, model other\n"},
		{Line: "score -m formula -m other", In: "[MASK]\n", Code: 1,
			Err: "infill: other less formula: no text has a value by both\n"},
		{Line: "score --words -m formula -m other", In: "dog\n[MASK]\n", Code: 1,
			Out: "method l2r, model formula\n…method l2r, model other\n", Err: "line 2: …\n…1 word of 1 text"},
	})
}

// Colours tell the surprisal of words where the terminal has them.
func TestScoreColours(t *testing.T) {
	useFormula(t)
	for variable, want := range map[string]bool{"CLICOLOR_FORCE=1": true, "NO_COLOR=1": false} {
		r := call(t, score.NewCmd, terminal.Streams{Environment: []string{"TERM=xterm-256color", variable}},
			"score",
			"--words", "the dog sat")
		if got := strings.Contains(r.Out, "surprisal in bits:"); got != want || r.Code != 0 {
			t.Errorf("%s: %+v", variable, r)
		}
	}
}
