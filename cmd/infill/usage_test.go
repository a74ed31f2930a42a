package main

import (
	"os"
	"strings"
	"testing"

	"infill/cmd/infill/internal/cli"
	"infill/internal/ask"
	"infill/lm"
)

// TestUsage: a wrong call has exit code 2, names the flag, prints nothing else,
// and loads nothing.
func TestUsage(t *testing.T) {
	t.Setenv("INFILL_ONNXRUNTIME", "/nonexistent/so-that-a-use-fails")
	ownModels(t)
	t.Chdir(t.TempDir())
	for _, name := range []string{"in.csv", "in.dat"} {
		if err := os.WriteFile(name, []byte("text\nhe had [MASK] me\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ line, want string }{
		{`--slot x=red`, `--slot: "x=red" is not a list of all words that each blank, or that one may take, as in red,dark blue or 1=red,dark blue`},
		{`--slot red --slot blue`, `--slot: "blue" is not the only list of its blank: put all its words into one, as in 1=red,blue`},
		{`--pos 1=noun --pos 1=verb`, `--pos: "1=verb" is not the only list of its blank: put all its words into one, as in 1=red,blue`},
		{`--slot 0=red`, `--slot: "0=red" is not a list of all words that each blank, or that one may take, as in red,dark blue or 1=red,dark blue`},
		{`--slot 1=red,,blue`, `--slot: "1=red,,blue" is not a list of all words that each blank, or that one may take, as in red,dark blue or 1=red,dark blue`},
		{`--slot 1=red --slot 1=blue`, `--slot: "1=blue" is not the only list of its blank: put all its words into one, as in 1=red,blue`},
		{`--ban ,`, `--ban: "," is not a list of words, as in red,blue`},
		{`--sampler mh "a"`, `--sampler: "mh" is not one of ` + strings.Join(ask.Samplers(), ", ")},
		{`--energy x`, `--energy: "x" is not one of pll, filled`},
		{`--gradient x`, `--gradient: "x" is not one of auto, local, full`},
		{`--initial x`, `--initial: "x" is not fill:WORD,..., or one of model, random, shared, mask`},
		{`--rank x`, `--rank: "x" is not one of distinct, final`},
		{`--format yaml`, `--format: "yaml" is not one of text, json, jsonl, csv`},
		{`--input csv`, `--input: "csv" is not one of lines, jsonl`},
		{`--device gpu`, `--device: "gpu" is not one of auto, cpu, cuda, or cuda:N with the number of a GPU`},
		{`--device cuda:`, `--device: "cuda:" is not one of auto, cpu, cuda, or cuda:N with the number of a GPU`},
		{`--device cuda:-1`, `--device: "cuda:-1" is not one of auto, cpu, cuda, or cuda:N with the number of a GPU`},
		{`--balance x`, `--balance: "x" is not one of auto, sqrt, ratio, min, max, or a number from 0.5 to 1`},
		{`--balance 0.4`, `--balance: "0.4" is not one of auto, sqrt, ratio, min, max, or a number from 0.5 to 1`},
		{`-n many`, `--samples: "many" is not a whole number from 1 to 65536`},
		{`-n 0`, `--samples: "0" is not a whole number from 1 to 65536`},
		{`-k 0`, `--top: "0" is not a whole number from 1 to 65536`},
		{`--steps -1`, `--steps: "-1" is not a whole number from 0 to 16777216`},
		{`--sampler gwg --steps 4 --warm-up 5`, `--warm-up: 5 is not a whole number from 0 to the number of steps, 4`},
		{`--warm-up -1`, `--warm-up: "-1" is not a whole number from 0 to 16777216, or half, or none`},
		{`--step-size x`, `--step-size: "x" is not a number above 0, or auto`},
		{`--step-size 0`, `--step-size: "0" is not a number above 0, or auto`},
		{`--step-size -1`, `--step-size: "-1" is not a number above 0, or auto`},
		{`--step-size 1 --sampler gibbs`, `--step-size: gibbs has none: leave it out`},
		{`--candidates -1`, `--candidates: "-1" is not a whole number of 0 or more, or all`},
		{`--candidates 20 "a [MASK]"`, `--candidates: it is an option of samplers: name one, such as dmala`},
		{`--temperature 2 "a [MASK]"`, `--temperature: it is an option of draws and chains: give samples or a sampler, too`},
		{`--temperature hot`, `--temperature: "hot" is not a number from 0.000001 to 1000000`},
		{`--temperature 0`, `--temperature: "0" is not a number from 0.000001 to 1000000`},
		{`--temperature nan`, `--temperature: "nan" is not a number from 0.000001 to 1000000`},
		{`--seed -1`, `--seed: "-1" is not a whole number of 0 or more, below 2^64`},
		{`--threads -1`, `--threads: -1 is not a whole number of 0 (one per core) or more`},
		{`-q -v`, `--quiet and --verbose exclude each other: give one`},
		{`--colour`, `unknown flag: --colour`},
		{`-z`, `unknown shorthand flag: 'z' in -z`},
		{`--samples`, `flag needs an argument: --samples`},

		{`score --pairs --column a "x	y"`, `--column: "a" is not two names with a comma between them`},
		{`score --method salazar`, `--method: "salazar" is not one of l2r, within_word_l2r, original`},
		{`score --format yaml`, `--format: "yaml" is not one of text, json, jsonl, csv`},
		{`score --seed 1`, `unknown flag: --seed`},
		{`version --format csv`, `--format: "csv" is not one of text, json`},
		{`setup now`, `unexpected argument "now"`},
		{`setup --force`, `--force: it goes with --cuda`},
		{`metrics in.csv --ngrams 2,x`, `--ngrams: "2,x" is not a list of whole numbers, such as 2,3`},
		{`metrics in.csv --confidence half`, `--confidence: "half" is not a number`},

		{`run in.csv -o o.csv`, `--column: in.csv has no column "template": its columns are "text"`},
		{`run in.csv -o o.csv --shard ""`, `--shard: "" is not I/N, the number of this part from 1 and that of all (at most 10000); ` +
			`for the whole run leave the flag out`},
		{`run in.csv -o o.csv --shard 3/2`, `--shard: "3/2" is not I/N, the number of this part from 1 and that of all`},
		{`run in.csv -o o.csv --jobs 9223372036854775807`, `--jobs: 9223372036854775807 is not a whole number from 1 to 4096`},
		{`--ban @/dev/zero`, `--ban: "@/dev/zero" is not a list of words: /dev/zero: more than 67108864 bytes`},
		{`run in.csv -o zz --column text`, `--to: zz: its name does not tell the form of the output: end it in `},
		{`run in.dat -o o.csv`, `--from: in.dat: its name does not tell the form of the input: end it in `},
		{`augment in.csv -o o.csv --column tex`, `--column: in.csv has no column "tex": its columns are "text"`},
		{`augment in.csv -o o.csv --rate 0.5 --blanks 2`, `--rate and --blanks exclude each other: give one`},

		{`tui runs/typo`, `"runs/typo" is no folder, and no text with a [MASK]`},
		{`tui ""`, `"" is no folder, and no text with a [MASK]`},
		{`tui he had`, `2 arguments`},
		{`tui --steps 10 x`, `--steps: it is an option of samplers: name one, such as dmala`},
		{`tui --sampler dmala -n 1000 --steps 100000 x`, `--steps: chains × steps is above 2000000`},
		{`tui --theme pink`, `--theme: "pink" is not one of auto, dark, light`},
	} {
		code, stdout, stderr := call(t, strings.NewReader("a [MASK]\nb [MASK]\n"), splitLine(c.line)...)
		if code != cli.ExitUsage || stdout != "" || !strings.HasPrefix(stderr, "infill: "+c.want) {
			t.Errorf("%s: exit code %d, standard output %q, error %q, want %q", c.line, code, stdout, stderr, c.want)
		}
	}
	// A large download for a machine that cannot use it is refused, with the reason.
	if lm.FindGPU() != nil {
		if code, _, stderr := call(t, nil, "setup", "--cuda"); code != cli.ExitFailed ||
			!strings.Contains(stderr, "was not fetched (250 MB)") || !strings.Contains(stderr, "--force") {
			t.Errorf("without a GPU: exit code %d, %q", code, stderr)
		}
	}
}

// splitLine cuts a command line at blanks; quotes keep them.
func splitLine(line string) (args []string) {
	for i, quoted := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, quoted)
		} else {
			args = append(args, strings.Fields(quoted)...)
		}
	}
	return args
}
