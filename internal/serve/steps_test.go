package serve_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"infill/internal/check"
)

var (
	readings     = flag.Int("readings", 1, "how many random texts TestReadingIsLinear gives each door")
	readingsSeed = flag.Uint64("readings-seed", 1, "the seed of these texts")
	stepsOf      = flag.String("steps-of", "", "further packages whose steps TestReadingIsLinear counts")
)

// counted are the packages whose steps count: those that read texts, and those of others
// that they read texts with. .ci/run adds those of Go itself, for which all of Go has to
// be built. What Go has in assembly, such as a search for a byte, is one step; what it
// copies shows in the bytes.
const counted = "infill/infill,infill/internal/batch,infill/internal/serve,infill/internal/serve/testdata/steps," +
	"infill/internal/lines,infill/internal/rawjson,infill/internal/option,infill/tokenize," +
	"golang.org/x/text/unicode/norm,github.com/rivo/uniseg,github.com/sugarme/tokenizer/model/wordpiece"

// doors read texts, see testdata/steps.
const doors = `parts; spans; meant; object; whole; string; gaps; template; template, blank; templates; context; slot;
	slot, list; slot, lists; ban; ban, list; pos; order; sampler; initial; score; scores; score, context;
	gaps, brackets; gaps, words; inputs; inputs, own; targets; body; keys; jsonl; csv; tsv; text;
	wordpiece, template; wordpiece, plain; wordpiece, own mask; wordpiece, filled; roberta, template; roberta, plain;
	roberta, own mask; roberta, encode; modernbert, template; modernbert, plain; xlm-roberta, template;
	xlm-roberta, plain; albert, plain; deberta-v2, template; deberta-v2, encode; gemma, template; gemma, plain`

// reading is a text that a door reads: a part that is repeated, with what stands
// before and behind.
type reading struct{ door, before, part, behind string }

// known are readings that once took time by the square of their length.
var known = []reading{
	{"template", "", "[MASK~", ""},
	{"template", "", "[MASK:", ""},
	{"template", "a [MASK]", `\[MASK~`, ""},
	{"template", "[MASK] a", ")", "."},
	{"template", "[MASK] a", " ", "."},
	{"template", "[MASK] a", ` "a`, "."},
	{"wordpiece, template", "the ", `[MASK]\[MASK]`, ""},
	{"wordpiece, filled", "the ", "[MASK] a ", ""},
	{"spans", "", "[MASK~[", ""},
	{"inputs, own", "[MASK] ", "[MASK~", ""},
	{"score", "", "_", ""},
	{"gaps, brackets", "[the] ", "_", ""},
	{"score, context", "", "_", ""},
	{"context", "", "[MASK~", ""},
	{"slot", "", "[MASK~", ""},
	{"ban", "", "_", ""},
	{"gaps", "", "the cat ", ""},
	{"parts", "a ", "( ", ""},
	{"keys", "", "the cat ", ""},
}

// parts are what random texts are made of.
var parts = strings.Split(`[MASK|[MASK]|[MASK~|[MASK:|[MASK:2]|[MASK=a]|[MASK~a.]|[MASK~[|]|[|_|\|\\| |"|.|a|A|,|'|`+
	"\u0301|\u200d|的|ひ|é|İ|ﷺ|<mask>|<|>|[SEP]|</s>|\n|\t|\r|{|}|:|-|1|~|=|(|)|…|?|!|i|the |“|”|@|##|1=|2=b |"+
	"@a|/|&|;|U.|No. |I. |http://", "|")

// TestReadingIsLinear: ten times the text takes at most fifteen times the steps, which are
// counted and not timed, and memory that grows as a list does.
func TestReadingIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a program has to be built")
	}
	_, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command to build the program with that counts steps")
	}
	counter := newCounter(t)
	for _, r := range known {
		counter.grows(t, r)
	}
	random := rand.New(rand.NewPCG(*readingsSeed, 0))
	pick := func(most int) (text string) {
		for range most {
			text += parts[random.IntN(len(parts))]
		}
		return text
	}
	for door := range strings.SplitSeq(strings.Join(strings.Fields(doors), " "), "; ") {
		for range *readings {
			r := reading{door, pick(random.IntN(3)), pick(1 + random.IntN(3)), pick(random.IntN(3))}
			if random.IntN(3) == 0 {
				r.before = "[MASK] a. " + r.before
			}
			counter.grows(t, r)
		}
	}
}

// counter is the program that counts steps.
type counter struct {
	in  io.Writer
	out *bufio.Reader
}

func newCounter(t *testing.T) counter {
	program := filepath.Join(t.TempDir(), "steps")
	build := exec.Command("go", "build", "-ldflags=-w", "-cover", "-covermode=atomic",
		"-coverpkg="+counted+","+*stepsOf, "-o", program, "./testdata/steps")
	said, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	cmd.Stderr = new(bytes.Buffer)
	in := check.Must(cmd.StdinPipe())(t)
	out := check.Must(cmd.StdoutPipe())(t)
	check.OK(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		err := cmd.Wait()
		if err != nil {
			t.Errorf("%v\n%s", err, cmd.Stderr)
		}
	})
	return counter{in, bufio.NewReader(out)}
}

// cost is what a door takes for a text.
type cost struct{ Steps, Bytes float64 }

// of returns what a door takes for a text with the part repeated.
func (c counter) of(t *testing.T, r reading, times int) (cost cost) {
	text := r.before + strings.Repeat(r.part, times) + r.behind
	check.OK(t, json.NewEncoder(c.in).Encode(map[string]string{"door": r.door, "text": text}))
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%+v, %d times: %v", r, times, err)
	}
	check.OK(t, json.Unmarshal(line, &cost))
	return cost
}

// grows checks that what a text takes does not grow by more than its length does.
// From some length on, a regular expression is matched in another way, which takes more
// steps: if that may be the reason, half as much again takes at most 1.9 times as many.
func (c counter) grows(t *testing.T, r reading) {
	const size = 2000 // bytes
	times := max(1, size/len(r.part))
	once := c.of(t, r, 1)
	short := c.of(t, r, times)
	long := c.of(t, r, 10*times)
	steps := (long.Steps - once.Steps) / max(10_000, short.Steps-once.Steps)
	bytes := (long.Bytes - once.Bytes) / max(1<<20, short.Bytes-once.Bytes)
	further := 1.0
	if steps > 15 {
		longer := c.of(t, r, 15*times)
		further = (longer.Steps - once.Steps) / (long.Steps - once.Steps)
	}
	if further > 1.9 || bytes > 30 {
		t.Errorf("%s: %q, then %q over and over, then %q: ten times as long takes %.1f times the steps and %.1f times "+
			"the memory, and half as much again %.1f times as many steps", r.door, r.before, r.part, r.behind, steps,
			bytes, further)
	}
}
