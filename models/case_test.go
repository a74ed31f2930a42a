package models_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/models"
	"infill/tokenize"
)

// The case that the user gives for a lone vocab.txt is written into the
// stored model, and a model that would be refused at every fill is refused
// when it comes in.
func TestCase(t *testing.T) {
	for _, c := range []struct {
		name, config string
		keeps        models.Reading
		cased        bool
		says         string
	}{
		{"nobody asked", "", "", false, "give --cased or --uncased to infill models import or pull"},
		{"cased", "", models.Cased, true, ""},
		{"uncased", "", models.Uncased, false, ""},
		{"a configuration that does not say it", `{"strip_accents": false}`, models.Cased, true, ""},
		{"one that says null", `{"do_lower_case": null}`, models.Cased, true, ""},
		{"null", `null`, models.Cased, true, ""},
		{"one that says the same", `{"do_lower_case": false}`, models.Cased, true, ""},
		{"one that says the other", `{"do_lower_case": true}`, models.Cased, false,
			"tokenizer_config.json has do_lower_case true, which --cased contradicts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := t.TempDir()
			check.OK(t, modelstest.Write(source, modelstest.Tiny, modelstest.Options{}))
			check.OK(t, os.Remove(filepath.Join(source, "tokenizer_config.json")))
			s := modelstest.NewHub(t)
			delete(s.Commits[s.First], "tokenizer_config.json")
			if c.config != "" {
				write(t, source, "tokenizer_config.json", []byte(c.config))
				s.Commits[s.First]["tokenizer_config.json"] = []byte(c.config)
			}
			imports, pulls := newStore(t), newStore(t)
			imports.Reading, pulls.Reading = c.keeps, c.keeps
			imported, importErr := imports.Import(t.Context(), source, "org/tiny")
			pulled, pullErr := pulls.Pull(t.Context(), "org/tiny", s.Options())
			for i, err := range []error{importErr, pullErr} {
				if c.says != "" {
					check.Says(t, err, c.says)
					continue
				}
				check.OK(t, err)
				tokenizer := check.Must(tokenize.Load([]*models.Bundle{imported, pulled}[i].FS()))(t)
				if tokenizer.Cased() != c.cased {
					t.Errorf("%d: cased %t", i, tokenizer.Cased())
				}
			}
			if c.says != "" {
				if left, err := imports.List(); err != nil || len(left) != 1 {
					t.Errorf("stored: %v, %v", left, err)
				}
				if len(s.Seen("model.safetensors")) > 0 {
					t.Error("weights were fetched")
				}
				return
			}
			if again, err := imports.Open("org/tiny"); err != nil || again.SHA256 != imported.SHA256 {
				t.Errorf("opened again: %v", err)
			}
		})
	}
}

// A stored model keeps its case, also where a later pull mends it, and a pull
// that asks for the other is refused.
func TestCaseOfAStoredModel(t *testing.T) {
	s := modelstest.NewHub(t)
	delete(s.Commits[s.First], "tokenizer_config.json")
	store := newStore(t)
	store.Reading = models.Uncased
	b := pull(t, store, "org/tiny", s.Options())
	store.Reading = models.Cased
	for _, name := range []string{"org/tiny", "org/tiny@" + s.First} {
		_, err := store.Pull(t.Context(), name, s.Options())
		refused(t, err, "the tokenizer of the stored model contradicts --cased: leave --cased out, or infill models "+
			"remove org/tiny, and pull it again")
	}
	check.OK(t, os.Truncate(filepath.Join(b.Dir, "model.safetensors"), 100))
	for _, same := range []models.Reading{"", models.Uncased} {
		store.Reading = same
		if again := pull(t, store, "org/tiny", s.Options()); again.SHA256 != b.SHA256 {
			t.Errorf("%q: pulled %s, want %s", same, again.SHA256, b.SHA256)
		}
	}
	check.Must(store.Remove(t.Context(), "org/tiny"))(t)
	store.Reading = models.Cased
	pull(t, store, "org/tiny", s.Options())
}

// tokenizerJSON writes a tokenizer.json, with the vocabulary of vocab.txt,
// into a model's folder.
func tokenizerJSON(t testing.TB, dir string, lowercase bool) {
	t.Helper()
	ids := map[string]int{}
	for id, token := range strings.Fields(string(read(t, dir, "vocab.txt"))) {
		ids[token] = id
	}
	type object = map[string]any
	step := func(kind string) object { return object{"type": kind} }
	var added []object
	for _, name := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		added = append(added, object{"id": ids[name], "content": name, "special": true})
	}
	normalizer := step("BertNormalizer")
	normalizer["lowercase"] = lowercase
	around := step("BertProcessing")
	around["cls"] = []any{"[CLS]", ids["[CLS]"]}
	around["sep"] = []any{"[SEP]", ids["[SEP]"]}
	content := check.Must(json.Marshal(object{"added_tokens": added, "normalizer": normalizer,
		"pre_tokenizer": step("BertPreTokenizer"), "post_processor": around,
		"model": object{"type": "WordPiece", "unk_token": "[UNK]", "vocab": ids}}))(t)
	write(t, dir, "tokenizer.json", content)
}

// Where tokenizer.json and tokenizer_config.json contradict each other, an
// option says which of them is taken, and the stored model says it to
// transformers, too.
func TestReading(t *testing.T) {
	for _, c := range []struct {
		name      string
		lowercase bool   // what tokenizer.json says
		config    string // what tokenizer_config.json says
		reading   models.Reading
		cased     bool
		warns     string
		says      string
	}{
		{"nobody asked", false, `{}`, "", false, "takes lowercase false", ""},
		{"cased, and the configuration is silent", false, `{}`, models.Cased, true, "", ""},
		{"cased, and the configuration says otherwise", false, `{"do_lower_case": true}`, models.Cased, true, "", ""},
		{"uncased", true, `{"do_lower_case": false}`, models.Uncased, false, "", ""},
		{"what no file says", true, `{"do_lower_case": true}`, models.Cased, false, "",
			"tokenizer.json says that the model is not cased: leave --cased out"},
		{"as the file says", false, `{"mask_token": {"content": "[MASK]", "lstrip": true}, "strip_accents": true}`,
			models.AsFile, true, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := t.TempDir()
			check.OK(t, modelstest.Write(source, modelstest.Tiny, modelstest.Options{}))
			tokenizerJSON(t, source, c.lowercase)
			write(t, source, "tokenizer_config.json", []byte(c.config))
			store := newStore(t)
			store.Reading = c.reading
			b, err := store.Import(t.Context(), source, "org/tiny")
			if c.says != "" {
				check.Says(t, err, c.says)
				return
			}
			check.OK(t, err)
			tokenizer := check.Must(b.Tokenizer())(t)
			warning := tokenizer.Warning()
			told := (warning == "") == (c.warns == "") && strings.Contains(warning, c.warns)
			if tokenizer.Cased() != c.cased || !told {
				t.Errorf("cased %t, warning %q", tokenizer.Cased(), warning)
			}
			if again, err := store.Open("org/tiny"); err != nil || again.SHA256 != b.SHA256 {
				t.Errorf("opened again: %v", err)
			}
		})
	}
	source := t.TempDir()
	check.OK(t, modelstest.Write(source, modelstest.Tiny, modelstest.Options{}))
	store := newStore(t)
	store.Reading = models.AsFile
	_, err := store.Import(t.Context(), source, "org/tiny")
	check.Says(t, err, "there is no tokenizer.json: leave --tokenizer-json out")
}

// Offline, a pull names what a client of the hub has, also where that client
// does not say which revision is main.
func TestPullOfflineNamesSnapshots(t *testing.T) {
	s := modelstest.NewHub(t)
	o := s.Options()
	o.Offline = true
	o.Cache = t.TempDir()
	snapshots := filepath.Join(o.Cache, "models--org--tiny", "snapshots")
	for _, commit := range []string{"aaaa", "bbbb", "empty"} {
		check.OK(t, os.MkdirAll(filepath.Join(snapshots, commit), 0o755))
	}
	for _, commit := range []string{"aaaa", "bbbb"} {
		write(t, filepath.Join(snapshots, commit), "config.json", []byte(modelstest.Tiny))
	}
	_, err := newStore(t).Pull(t.Context(), "org/tiny", o)
	refused(t, err, "the hub's own client does not say which is main, of "+filepath.Join(snapshots, "aaaa")+" and "+
		filepath.Join(snapshots, "bbbb")+": infill models import FOLDER --name org/tiny")
	_, err = newStore(t).Pull(t.Context(), "org/tiny@bbbb", o)
	refused(t, err, "the hub's own client has it: infill models import "+filepath.Join(snapshots, "bbbb")+
		" --name org/tiny")
	refs := filepath.Join(o.Cache, "models--org--tiny", "refs")
	check.OK(t, os.MkdirAll(refs, 0o755))
	write(t, refs, "main", []byte("aaaa\n"))
	_, err = newStore(t).Pull(t.Context(), "org/tiny", o)
	refused(t, err, "the hub's own client has it: infill models import "+filepath.Join(snapshots, "aaaa"))
}
