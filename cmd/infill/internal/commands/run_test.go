package commands

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/run"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/check"
	"infill/internal/lmtest"
)

// lines has four records: one has no blank, and one is blank.
const lines = `{"id": 1, "template": "the [MASK] sat", "top": 2}

{"id": 2, "template": "no blank"}
{"id": 3, "template": "a big [MASK]"}
`

func runFiles(t *testing.T) {
	useFormula(t)
	writeFiles(t, map[string]string{"in.jsonl": lines, "good.txt": "the [MASK] sat\na big [MASK]\n",
		"in.csv": "id,sentence,top\n1,the [MASK] sat,2\n", "texts.csv": "text,label\nthe old dog sat on the mat " +
			".,good\n",
		"refused.csv": "template,top\nthe [MASK] sat,many\nthe [MASK] ran,lots\n"})
}

// Wrong usage is refused before a model is opened or a file is made.
func TestRunRefuses(t *testing.T) {
	runFiles(t)
	const overwrite = "infill: --resume and --overwrite exclude each other: after a break, --resume alone goes on\n"
	cases := []callCase{
		{Line: "run", Code: 2, Err: "infill: 0 arguments given, one file is read\nhint: see infill run --help\n"},
		{Line: "run a.txt b.txt", Code: 2, Err: "infill: 2 arguments given, one file is read\n"},
		{Line: "run - -o out.jsonl", Code: 2,
			Err: "infill: --from: say which form standard input has, as in --from jsonl\n"},
		{Line: "run in.jsonl", Code: 2, Err: "infill: --out: say which file the result goes to\n"},
		{Line: "run in.jsonl -o -", Code: 2,
			Err: "infill: --out: a run writes a file, to go on with; to standard output writes infill --input jsonl\n"},
		{Line: "run in.jsonl -o out.jsonl --shard 1/2 --overwrite", Code: 2,
			Err: "infill: --shard and --overwrite exclude each other: "},
		{Line: "run in.jsonl -o out.jsonl --resume --overwrite", Code: 2, Err: overwrite},
		{Line: "run in.jsonl -o out.jsonl --shard 3/2", Code: 2, Err: `infill: --shard: "3/2" is not `},
		{Line: "run in.jsonl -o out.jsonl --jobs -1", Code: 2, Err: "infill: --jobs: -1 is not a whole number from " +
			"1 to 4096\n"},
		{Line: "run in.jsonl -o out.jsonl --jobs 4097", Code: 2, Err: "infill: --jobs: 4097 is not a whole number " +
			"from 1"},
		{Line: "run in.jsonl -o out.jsonl --device tpu", Code: 2, Err: "infill: --device: "},
		{Line: "run in.jsonl -o out.jsonl --steps 5", Code: 2, Err: "infill: --steps: "},
		{Line: "run in.jsonl -o out.jsonl --model nowhere", Code: 1, Err: "infill: model nowhere: not in the cache\n"},
		{Line: "run in.jsonl -o out", Code: 2, Err: "infill: --to: out: its name does not tell the form of the output"},
		{Line: "run in.csv -o out.jsonl", Code: 2, Err: "infill: --column: in.csv has no column \"template\""},
		{Line: "run nowhere.csv -o out.jsonl", Code: 2, Err: "nowhere.csv"},
		{Line: "run merge", Code: 2,
			Err: "infill: 0 arguments given, one output is merged\nhint: infill run merge OUTPUT\n"},
		{Line: "run merge out.jsonl", Code: 1, Err: "infill: out.jsonl.parts holds no parts: "},
	}
	runCases(t, run.NewCmd, cases)
	runCases(t, run.NewCmdAugment, []callCase{
		{Line: "augment texts.csv", Code: 2, Err: "infill: --out: say which file the result goes to\n"},
		{Line: "augment texts.csv -o out.csv --rate 0.5 --blanks 1", Code: 2,
			Err: "infill: --rate and --blanks exclude each other: give one\n"},
		{Line: "augment texts.csv -o out.csv --rate 2", Code: 2, Err: "infill: --rate: "},
		{Line: "augment texts.csv -o out.csv --variants 0", Code: 2, Err: "infill: --variants: "},
	})
	for _, name := range []string{"out.jsonl", "out.csv", "out", "out.jsonl.parts"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// A run tells how many texts, blank and wrong lines it met; the exit code tells whether
// all were taken.
func TestRunSummary(t *testing.T) {
	runFiles(t)
	const wrong = "infill: warning: 1 wrong line left out, each with its reason in out.jsonl.rejects.jsonl\n"
	runCases(t, run.NewCmd, []callCase{
		{Line: "run in.jsonl -o out.jsonl", Code: 3,
			Err: "infill: out.jsonl: 2 texts, 1 blank line\ninfill: signature …|model:formula@…\n…" + wrong},
		{Line: "run in.jsonl -o out.jsonl --resume", Code: 3, Err: "infill: out.jsonl is there already, and done\n" +
			wrong},
		{Line: "run in.jsonl -o out.jsonl --resume -q", Code: 3},
		{Line: "run in.jsonl -o out.jsonl", Code: 2,
			Err: "infill: --out: out.jsonl is there already: --resume takes it as done, --overwrite makes it again\n"},
		{Line: "run in.jsonl -o out.jsonl --top 3 --resume", Code: 2,
			Err: "out.jsonl holds a run of another configuration (top: 5 there, 3 now)"},
		{Line: "run in.jsonl -o out.jsonl --overwrite -q", Code: 3},
		{Line: "run good.txt -o good.csv --top 2", Err: "infill: good.csv: 2 texts, 4 lines\ninfill: signature "},
		{Line: "run - --from jsonl -o piped.jsonl", In: lines, Code: 3,
			Err: "infill: piped.jsonl: 2 texts, 1 blank line\n"},
		{Line: "run in.csv --column sentence -o table.csv",
			Err: "table.csv: 1 text, 2 lines\n"},
		{Line: "run in.csv --column sentence -o kept.csv --keep top", Err: "kept.csv: 1 text, 5 lines\n"},
		{Line: "run refused.csv -o refused.jsonl", Code: 3, Err: "infill: refused.jsonl: 0 texts…infill: warning: " +
			"the " +
			"column top is read as an option, and the option refuses some of its values; --keep top copies it\n"},
	})
	// Two runs give the same bytes, as the seed is fixed.
	piped := check.Must(os.ReadFile("piped.jsonl"))(t)
	if out := check.Must(os.ReadFile("out.jsonl"))(t); string(out) != string(piped) || len(out) == 0 {
		t.Errorf("the results differ:\n%s\n%s", out, piped)
	}
}

// A part of which lines are wrong is done: a cluster does not run it again. The merge
// tells of them.
func TestRunShards(t *testing.T) {
	runFiles(t)
	const part = "infill: part 1/2: "
	runCases(t, run.NewCmd, []callCase{
		{Line: "run in.jsonl -o out.jsonl --shard 2/2 -q"},
		{Line: "run merge out.jsonl", Code: 1, Err: "infill: 1 of 2 parts are not finished: run 1/2 again with " +
			"--resume\n"},
		{Line: "run in.jsonl -o out.jsonl --shard 1/2", Err: part},
		{Line: "run merge out.jsonl", Code: 3, Err: "infill: out.jsonl: 2 texts, 1 blank line\n…infill: warning: 1 " +
			"wrong line " +
			"left out, each with its reason in out.jsonl.rejects.jsonl\n"},
		{Line: "run merge out.jsonl --remove-parts -q", Code: 3},
	})
	if _, err := os.Stat("out.jsonl.parts"); err == nil {
		t.Error("the parts are still there")
	}
}

// An interrupted run says where the rest is, and ends with 130.
func TestRunInterrupted(t *testing.T) {
	runFiles(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := callContext(ctx, run.NewCmd, terminal.Streams{}, "run", "in.jsonl", "-o", "out.jsonl")
	want := "infill: what is done stays in out.jsonl.parts; the same command with --resume goes on\ninfill: " +
		"interrupted\n"
	if r.Code != 130 || !strings.HasSuffix(r.Err, want) {
		t.Errorf("%+v", r)
	}
}

// A run that stopped goes on, tells how many texts were done before, and gives the bytes
// of one that did not.
func TestRunResumed(t *testing.T) {
	runFiles(t)
	text := strings.Repeat("the [MASK] sat\n", 12)
	check.OK(t, os.WriteFile("in.txt", []byte(text), 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := cli.OpenModel
	cli.OpenModel = func(o infill.OpenOptions) (*infill.Filler, error) {
		tokenizer := check.Must(open(o))(t).Tokenizer()
		model := lmtest.New(tokenizer.VocabularySize(), 64)
		model.Before = func(own context.Context) error {
			if model.Calls.Load() == 6 {
				cancel()
			}
			return own.Err()
		}
		return infill.New(model, tokenizer), nil
	}
	r := callContext(ctx, run.NewCmd, terminal.Streams{}, "run", "in.txt", "-o", "out.jsonl", "--jobs", "1")
	if r.Code != 130 {
		t.Fatalf("%+v", r)
	}
	runCases(t, run.NewCmd, []callCase{
		{Line: "run in.txt -o out.jsonl --jobs 1 --resume", Err: "infill: out.jsonl: 12 texts, … done " +
			"before\n"},
		{Line: "run in.txt -o whole.jsonl -q"},
	})
	out := check.Must(os.ReadFile("out.jsonl"))(t)
	if whole := check.Must(os.ReadFile("whole.jsonl"))(t); string(whole) != string(out) {
		t.Errorf("%s\nwithout a break\n%s", out, whole)
	}
}

// Variants keep the label, and a word that is masked is filled again.
func TestRunAugment(t *testing.T) {
	runFiles(t)
	r := call(t, run.NewCmdAugment, terminal.Streams{}, "augment", "texts.csv", "-o", "out.csv", "--variants",
		"2",
		"--blanks", "1")
	if r.Code != 0 || !strings.HasPrefix(r.Err, "infill: out.csv: 1 text, 2 lines\n") {
		t.Errorf("%+v", r)
	}
	out := check.Must(os.ReadFile("out.csv"))(t)
	if !regexp.MustCompile(`^text,.*label.*\n(.*good.*\n){2}$`).Match(out) {
		t.Errorf("the variants are\n%s", out)
	}
	// The text has few nouns, and the model knows 9.
	r = call(t, run.NewCmdAugment, terminal.Streams{}, "augment", "texts.csv", "-o", "few.csv", "--variants",
		"30", "--blanks", "1", "--distinct", "--pos", "noun")
	if r.Code != 0 || !regexp.MustCompile(`warning: \d+ variants are missing: the draws for --distinct only`).MatchString(r.Err) {
		t.Errorf("few variants: %+v", r)
	}
}
