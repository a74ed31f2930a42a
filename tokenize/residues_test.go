package tokenize_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"infill/tokenize"
)

// proteinFiles are those of a bundle of ../lm, with keys of tokenizer_config.json set again.
func proteinFiles(t testing.TB, family string, change map[string]any) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"vocab.txt", "tokenizer.json", "tokenizer_config.json"} {
		content, err := os.ReadFile(filepath.Join("..", "lm", "internal", "bert", "testdata", family, name))
		if err == nil {
			files[name] = &fstest.MapFile{Data: content}
		}
	}
	var configuration map[string]any
	if err := json.Unmarshal(files["tokenizer_config.json"].Data, &configuration); err != nil {
		t.Fatal(err)
	}
	maps.Copy(configuration, change)
	content, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	files["tokenizer_config.json"].Data = content
	return files
}

func loadProteins(t testing.TB, family string) *tokenize.Tokenizer {
	t.Helper()
	tokenizer, err := tokenize.Load(proteinFiles(t, family, nil))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// Ids and decoded texts are those of the reference's classes.
func TestProteinsAgainstReference(t *testing.T) {
	var stored struct {
		Texts     [][]byte
		ESM, ESMC struct {
			IDs     [][]int
			Decoded []string
		}
	}
	if err := json.Unmarshal(familyFile(t, "proteins.json"), &stored); err != nil {
		t.Fatal(err)
	}
	texts := familyTexts(t)
	for _, text := range stored.Texts {
		texts = append(texts, string(text))
	}
	for family, want := range map[string]struct {
		IDs     [][]int
		Decoded []string
	}{"esm": stored.ESM, "esmc": stored.ESMC} {
		tokenizer := loadProteins(t, family)
		for i, text := range texts {
			got, err := tokenizer.Encode(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.IDs[i], got.IDs); diff != "" {
				t.Errorf("%s, %q: tokens %q (-want +got):\n%s", family, text, got.Tokens, diff)
			}
			if decoded := tokenizer.Decode(want.IDs[i]); decoded != want.Decoded[i] {
				t.Errorf("%s, %v decoded is %q, want %q", family, want.IDs[i], decoded, want.Decoded[i])
			}
		}
	}
}

// A blank is written as in any text or as the model's mask, stands between letters without joining them, and takes
// residues.
func TestProteinTemplates(t *testing.T) {
	for _, family := range []string{"esm", "esmc"} {
		tokenizer := loadProteins(t, family)
		residue := func(letter string) int { id, _ := tokenizer.ID(letter); return id }
		for _, c := range []struct{ text, want string }{
			{"MKT<mask>LLV[MASK]", "MKTALLVG"},
			{"[MASK]MKT<mask>", "AMKTG"},
			{"MKT<mask><mask>", "MKTAG"},
			{"MKT[MASK:2]LL", "MKTAGLL"},
		} {
			template, err := tokenizer.Template(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if len(template.Slots) != 2 || template.Blanks[0].TouchesLeft || template.Blanks[0].TouchesRight {
				t.Errorf("%s, %q: slots %v, blank %+v", family, c.text, template.Slots, template.Blanks[0])
			}
			if got := template.Fill([]int{residue("A"), residue("G")}).Text; got != c.want {
				t.Errorf("%s: %q filled is %q, want %q", family, c.text, got, c.want)
			}
		}
		var words []string
		for _, id := range tokenizer.Fillable() {
			if tokenizer.Continues(id) {
				t.Errorf("%s: %q goes on with a word", family, tokenizer.Token(id))
			}
			if tokenizer.Word(id) {
				words = append(words, tokenizer.Token(id))
			}
		}
		slices.Sort(words)
		if got := strings.Join(words, ""); got != "ACDEFGHIKLMNPQRSTVWY" {
			t.Errorf("%s: residues %s", family, got)
		}
	}
}

func TestProteinRefuses(t *testing.T) {
	tokenizer := loadProteins(t, "esm")
	for text, says := range map[string]string{
		"MKt[MASK]":         `at byte offset 2: "t" is no residue; write capital letters`,
		"MK T<mask> JJ":     `at byte offset 11: "JJ" is no residue`,
		"<cls>MKT[MASK]":    "<cls> is added by the program",
		"[MASK]":            "add at least one word",
		"MKT":               "write [MASK]",
		"MKT<null_1><mask>": "<null_1> is added by the program",
	} {
		if _, err := tokenizer.Template(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v does not say %q", text, err, says)
		}
	}
	if _, err := tokenizer.Plain("MKT<mask>"); !errors.Is(err, tokenize.ErrUnwantedBlank) {
		t.Errorf("error %v for a text to score with a blank", err)
	}
	for _, c := range []struct {
		change map[string]any
		says   string
	}{
		{map[string]any{"eos_token": nil}, "tokenizer_config.json: unsupported tokenizer: eos_token null"},
		{map[string]any{"mask_token": "<MASK>"},
			`vocab.txt: missing special token: mask_token "<MASK>" is not in the vocabulary`},
		{map[string]any{"cls_token": 3}, "cannot unmarshal number"},
	} {
		if _, err := tokenize.Load(proteinFiles(t, "esm", c.change)); err == nil ||
			!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: error %v does not say %q in one line", c.change, err, c.says)
		}
	}
	files := proteinFiles(t, "esm", nil)
	files["vocab.txt"].Data = append(files["vocab.txt"].Data, "\nL"...)
	if _, err := tokenize.Load(files); err == nil || !strings.Contains(err.Error(), `"L" has id 4 and id`) {
		t.Errorf("error %v of a token that stands twice", err)
	}
}
