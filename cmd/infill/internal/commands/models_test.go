package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	command "infill/cmd/infill/internal/models"
	"infill/cmd/infill/internal/terminal"
	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/lm"
	"infill/models"
)

// store gives the test a cache of its own, and a working folder with the model tiny.
func store(t *testing.T) (cache string) {
	t.Helper()
	cache = t.TempDir()
	t.Setenv(models.CacheVariable, cache)
	t.Setenv(models.DefaultVariable, "")
	writeFiles(t, map[string]string{"graph.onnx": "no graph", "model.onnx": "no graph", "empty.txt": "\n",
		"own.txt": "a b c\nd e f\ng h i\n", "two.txt": "a b c\nd e f\n"})
	check.OK(t, modelstest.Write("tiny", modelstest.Tiny, modelstest.Options{Seed: 5}))
	check.OK(t, os.Mkdir("tokenizer", 0o755))
	return cache
}

// call calls a command that must succeed, and returns its standard output.
func answer(t *testing.T, line string) string {
	t.Helper()
	r := call(t, command.NewCmd, terminal.Streams{}, strings.Fields(line)...)
	if r.Code != 0 || r.Err != "" {
		t.Fatalf("%s: %+v", line, r)
	}
	return r.Out
}

// What is asked wrongly is refused with exit code 2; what is not there, with 1 and advice.
func TestModelsRefuses(t *testing.T) {
	store(t)
	const absent = "hint: infill models pull my/bert fetches it, infill models list tells what is here\n"
	const few = "of its lines, fewer than three are texts that the model can read\n"
	runCases(t, command.NewCmd, []callCase{
		{Line: "models x", Code: 2, Err: "infill: unexpected argument \"x\"\nhint: see infill models --help\n"},
		{Line: "models pull", Code: 2, Err: "infill: infill models pull: no model is named\nhint: see infill models " +
			"pull --help\n"},
		{Line: "models remove", Code: 2, Err: "infill: infill models remove: no model is named\n"},
		{Line: "models pull org/tiny a/b/c", Code: 2, Err: "infill: \"a/b/c\" is not the name of a model: "},
		{Line: "models list my/bert", Code: 1, Err: "infill: model my/bert: not in the cache\n" + absent},
		{Line: "models verify my/bert", Code: 1, Err: "infill: model my/bert: not in the cache\n" + absent},
		{Line: "models remove my/bert", Code: 1, Err: "infill: model my/bert: not in the cache\n" + absent},
		{Line: "models remove small-uncased", Code: 1,
			Err: "infill: model small-uncased is part of the program and cannot be removed\n"},
		{Line: "models import", Code: 2,
			Err: "infill: 0 arguments given, one model is imported\nhint: infill models import DIR\n"},
		{Line: "models import nowhere", Code: 2, Err: "infill: there is no folder or file \"nowhere\"\n"},
		{Line: "models import graph.onnx", Code: 2, Err: "infill: --tokenizer: no folder is named, and a graph has " +
			"no " +
			"tokenizer of its own\nhint: give one: --tokenizer DIR\n"},
		{Line: "models import tiny --tokenizer tokenizer", Code: 2,
			Err: "infill: --tokenizer and --positions belong to an ONNX graph, and \"tiny\" is a folder"},
		{Line: "models import tiny --positions 24", Code: 2, Err: "infill: --tokenizer and --positions belong to"},
		{Line: "models import graph.onnx --tokenizer tokenizer --positions 3", Code: 2,
			Err: "infill: --positions: 3 is not a whole number from 4 to 1048576\n"},
		{Line: "models import graph.onnx --tokenizer tokenizer --positions 1048577", Code: 2,
			Err: "infill: --positions: 1048577 is not a whole number from 4 to 1048576\n"},
		{Line: "models import graph.onnx --tokenizer tokenizer --positions 4", Code: 1, Err: "infill: graph.onnx: "},
		{Line: "models import tiny --name a/b/c", Code: 2,
			Err: "infill: \"a/b/c\" is not the name of a model: …\nhint: give another with --name\n"},
		{Line: "models import tiny --cased --uncased", Code: 1, Err: "cased"},
		{Line: "models quantize", Code: 2,
			Err: "infill: 0 arguments given, one model is made int8\nhint: infill models quantize small-uncased\n"},
	})
	if lm.CheckInt8() != nil {
		return
	}
	runCases(t, command.NewCmd, []callCase{
		{Line: "models quantize nowhere", Code: 1, Err: "infill: model nowhere: not in the cache"},
		{Line: "models quantize tiny", Code: 2, Err: "infill: infill's own sentences: " + few},
		{Line: "models quantize tiny --text empty.txt", Code: 2, Err: "infill: empty.txt: " + few},
		{Line: "models quantize tiny --text two.txt", Code: 2, Err: "infill: two.txt: " + few},
		{Line: "models quantize tiny --text nowhere.txt", Code: 1, Err: "infill: open nowhere.txt: "},
		{Line: "models quantize tiny --name a/b/c", Code: 2, Err: "\nhint: give another with --name\n"},
	})
}

// A folder becomes a stored model under its own name or another, is listed with its
// facts, verified and removed.
func TestModelsStore(t *testing.T) {
	store(t)
	placed := regexp.MustCompile(`^my/bert@[0-9a-f]{12}: bert, 2 layers, .*, [0-9.]+ kB in .*my--bert.*\n$`)
	if out := answer(t, "models import tiny --name my/bert"); !placed.MatchString(out) {
		t.Errorf("imported: %q", out)
	}
	if out := answer(t, "models import tiny -q"); out != "" {
		t.Errorf("quietly imported: %q", out)
	}
	list := answer(t, "models list")
	for _, want := range []string{`(?m)^NAME +REVISION +FAMILY +SIZE +LICENCE$`,
		`(?m)^small-uncased +\w* +bert +[0-9.]+ MB +Apache-2.0 +built in, the default$`,
		`(?m)^my/bert +[0-9a-f]{12} +bert +[0-9.]+ kB$`, `(?m)^tiny +`} {
		if !regexp.MustCompile(want).MatchString(list) {
			t.Errorf("%s is not in\n%s", want, list)
		}
	}
	t.Setenv(models.DefaultVariable, "my/bert")
	var facts []map[string]any
	check.OK(t, json.Unmarshal([]byte(answer(t, "models list my/bert --format json")), &facts))
	if len(facts) != 1 || facts[0]["name"] != "my/bert" || facts[0]["default"] != true ||
		facts[0]["built_in"] != false ||
		facts[0]["size"].(float64) < 1000 || facts[0]["config"].(map[string]any)["model_type"] != "bert" {
		t.Errorf("facts %v", facts)
	}
	if out := answer(t, "models verify my/bert"); !regexp.MustCompile(
		`^my/bert@[0-9a-f]{12}: whole, [34] files, [0-9.]+ kB\n$`).MatchString(out) {
		t.Errorf("verified: %q", out)
	}
	if out := answer(t, "models remove my/bert tiny"); strings.Count(out, "removed ") != 2 ||
		!regexp.MustCompile(`^removed my/bert@[0-9a-f]{12} \([0-9.]+ kB\)\n`).MatchString(out) {
		t.Errorf("removed: %q", out)
	}
	if out := answer(t, "models list"); strings.Contains(out, "my/bert") {
		t.Errorf("after its removal\n%s", out)
	}
}

// Each damaged file has a line, the last of a model a hint, and the whole models are
// still told.
func TestModelsDamage(t *testing.T) {
	cache := store(t)
	answer(t, "models import tiny --name my/bert")
	answer(t, "models import tiny --name my/other")
	folders := check.Must(filepath.Glob(filepath.Join(cache, "models", "my--bert", "*", "vocab.txt")))(t)
	if len(folders) != 1 {
		t.Fatal(folders)
	}
	folder := filepath.Dir(folders[0])
	check.OK(t, os.Remove(filepath.Join(folder, "vocab.txt")))
	check.OK(t, os.WriteFile(filepath.Join(folder, "config.json"), []byte("{}"), 0o644))
	r := call(t, command.NewCmd, terminal.Streams{}, "models", "verify", "my/bert", "my/other")
	if r.Code != 1 || !strings.HasPrefix(r.Out, "my/other@") || strings.Count(r.Err, "infill: model my/bert@") != 2 ||
		strings.Count(r.Err, "\nhint: ") != 1 || !strings.Contains(r.Err, "\nhint: infill models remove my/bert@") {
		t.Errorf("%+v", r)
	}
	check.OK(t, os.WriteFile(filepath.Join(folder, "manifest.json"), []byte("{"), 0o644))
	r = call(t, command.NewCmd, terminal.Streams{}, "models", "list")
	if r.Code != 0 || !strings.Contains(r.Out, "damaged: ") {
		t.Errorf("without a manifest: %+v", r)
	}
}

// A vocabulary does not say whether the model keeps capitals; the flags do.
func TestModelsReading(t *testing.T) {
	store(t)
	check.OK(t, os.Remove(filepath.Join("tiny", "tokenizer_config.json")))
	r := call(t, command.NewCmd, terminal.Streams{}, "models", "import", "tiny")
	if r.Code != 1 || !strings.Contains(r.Err, "give --cased or --uncased to infill models import or pull") {
		t.Errorf("without a flag: %+v", r)
	}
	for flag, want := range map[string]bool{"--cased": true, "--uncased": false} {
		answer(t, "models import tiny --name my/"+flag[2:]+" "+flag)
		bundle := check.Must(models.Open("my/" + flag[2:]))(t)
		if tokenizer := check.Must(bundle.Tokenizer())(t); tokenizer.Cased() != want {
			t.Errorf("%s: keeps capitals: %t", flag, tokenizer.Cased())
		}
	}
}

// A copy in int8 has the model's name with -int8, and the command prints its distance.
func TestModelsQuantize(t *testing.T) {
	if err := lm.CheckInt8(); err != nil {
		t.Skip(err)
	}
	store(t)
	out := answer(t, "models quantize tiny --text own.txt")
	for _, want := range []string{`^tiny-int8@[0-9a-f]{12}: bert, 2 layers.*, in int8`,
		`(?m)^6 tokens in 2 texts of own\.txt, each token masked alone:$`,
		`(?m)^  difference +-?0\.\d+ ± 0\.\d+$`, `(?m)^  likeliest the same +\d+\.\d ± \d+\.\d %$`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
	card := check.Must(os.ReadFile(filepath.Join(check.Must(models.Open("tiny-int8"))(t).Dir, "README.md")))(t)
	if !strings.Contains(string(card), "6 tokens in 2 texts of own.txt") {
		t.Errorf("the card is\n%s", card)
	}
	if out := answer(t, "models quantize tiny --text own.txt --name my/fast -q"); out != "" {
		t.Errorf("quietly: %q", out)
	}
	check.Must(models.Open("my/fast"))(t)
}
