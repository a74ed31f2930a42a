package models_test

import (
	"os"
	"path/filepath"
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
		keeps        models.Case
		cased        bool
		says         string
	}{
		{"nobody asked", "", "", false, "give --cased or --uncased to infill models import or pull"},
		{"cased", "", models.Cased, true, ""},
		{"uncased", "", models.Uncased, false, ""},
		{"a configuration that does not say it", `{"strip_accents": false}`, models.Cased, true, ""},
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
			imports.Case, pulls.Case = c.keeps, c.keeps
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
	store.Case = models.Uncased
	b := pull(t, store, "org/tiny", s.Options())
	store.Case = models.Cased
	for _, name := range []string{"org/tiny", "org/tiny@" + s.First} {
		_, err := store.Pull(t.Context(), name, s.Options())
		refused(t, err, "the tokenizer of the stored model contradicts --cased: leave --cased out, or infill models "+
			"remove org/tiny, and pull it again")
	}
	check.OK(t, os.Truncate(filepath.Join(b.Dir, "model.safetensors"), 100))
	for _, same := range []models.Case{"", models.Uncased} {
		store.Case = same
		if again := pull(t, store, "org/tiny", s.Options()); again.SHA256 != b.SHA256 {
			t.Errorf("%q: pulled %s, want %s", same, again.SHA256, b.SHA256)
		}
	}
	check.Must(store.Remove(t.Context(), "org/tiny"))(t)
	store.Case = models.Cased
	pull(t, store, "org/tiny", s.Options())
}
