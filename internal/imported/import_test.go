package imported_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"infill/internal/check"
	"infill/internal/imported"
)

// The longest text and the segments of a graph are those that its family has.
func TestSettingsOfFamilies(t *testing.T) {
	const fixtures = "../../testdata/import"
	for config, want := range map[string][2]int{
		`"bert"`:                            {514, 2},
		`"bert", "pad_token_id": 1`:         {514, 2},
		`"roberta", "pad_token_id": 1`:      {512, 1},
		`"roberta", "pad_token_id": 5`:      {508, 1},
		`"xlm-roberta"`:                     {512, 1},
		`"camembert"`:                       {512, 1},
		`"data2vec-text"`:                   {512, 1},
		`"roberta-prelayernorm"`:            {512, 1}, // which runs as a graph only
		`"camembert", "pad_token_id": null`: {512, 1},
	} {
		dir := t.TempDir()
		settings := `{"max_position_embeddings": 514, "type_vocab_size": 2, "model_type": ` + config + `}`
		check.OK(t, errors.Join(os.CopyFS(dir, os.DirFS(filepath.Join(fixtures, "tokenizer"))),
			os.WriteFile(filepath.Join(dir, "config.json"), []byte(settings), 0o600)))
		c := check.Must(imported.Settings(filepath.Join(fixtures, "eager-11.onnx"), dir, 0))(t)
		if got := [2]int{c.MaxPositions, c.Segments}; got != want {
			t.Errorf("%s: %d positions and segments, want %d", config, got, want)
		}
	}
}
