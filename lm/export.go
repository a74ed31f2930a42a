package lm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"infill/lm/bert"
	"infill/lm/onnx"
	"infill/models"
)

// ExportWeights is the file that exported graphs read their weights from.
const ExportWeights = "weights.bin"

// exported are the graphs that Export writes.
func exported() []struct {
	file, about string
	build       func(*models.Bundle) (*onnx.Graph, error)
} {
	return []struct {
		file, about string
		build       func(*models.Bundle) (*onnx.Graph, error)
	}{
		{"conditionals.onnx", "log-probabilities of tokens at queried positions", conditionals},
		{"gradient.onnx", "the same, and the gradient of the energy through the context", gradient},
	}
}

// Export writes a model as plain ONNX files into dir, which must not exist or
// be empty: conditionals.onnx and gradient.onnx (see [bert.Conditionals] and
// [bert.Gradient]), their weights in weights.bin, the tokenizer's files, and a
// README.md that documents inputs and outputs. All of dir appears in one step,
// or nothing does.
func Export(ctx context.Context, b *models.Bundle, dir string) (err error) {
	final, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(final); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: name a folder that does not exist yet", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return err
	}
	// Beside the final place: a rename stays on one file system.
	partial, err := os.MkdirTemp(filepath.Dir(final), "."+filepath.Base(final)+".partial-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	if err := exportInto(ctx, b, partial); err != nil {
		return fmt.Errorf("export %s: %w", b.Name, err)
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return err
	}
	if err := os.Remove(final); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(partial, final)
}

func exportInto(ctx context.Context, b *models.Bundle, dir string) error {
	weights, err := os.Create(filepath.Join(dir, ExportWeights))
	if err != nil {
		return err
	}
	defer weights.Close()
	buffer := bufio.NewWriterSize(weights, 1<<20)
	packer := onnx.NewPacker(b.Dir, ExportWeights, buffer)
	var readme strings.Builder
	readme.WriteString(exportHead(b))
	for _, e := range exported() {
		if err := ctx.Err(); err != nil {
			return err
		}
		graph, err := e.build(b)
		if err != nil {
			return err
		}
		if err := packer.Pack(graph); err != nil {
			return err
		}
		encoded, err := graph.Encode()
		if err != nil {
			return err
		}
		if err := writeSynced(filepath.Join(dir, e.file), encoded); err != nil {
			return err
		}
		text, err := exportTables(e.file, e.about, graph)
		if err != nil {
			return err
		}
		readme.WriteString(text)
	}
	if err := errors.Join(buffer.Flush(), weights.Sync(), weights.Close()); err != nil {
		return err
	}
	for _, name := range models.TokenizerFiles() {
		content, err := fs.ReadFile(b.FS(), name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := writeSynced(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return writeSynced(filepath.Join(dir, "README.md"), []byte(readme.String()))
}

func writeSynced(path string, content []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

func exportHead(b *models.Bundle) string {
	var s strings.Builder
	fmt.Fprintf(&s, "# %s as ONNX graphs\n\n", b.Name)
	fmt.Fprintf(&s, "%s. Bundle SHA-256 `%s`. Vocabulary of %d tokens, texts of at most %d tokens, special tokens included.\n\n",
		b.Description, b.SHA256, b.Config.VocabularySize, b.Config.MaxPositions)
	s.WriteString(`Written by infill. The graphs hold no weights: they read them from ` + "`" + ExportWeights + "`" + `, which must lie beside them. Any onnxruntime of version 1.17
or later runs them; the operators are those of the ONNX standard, opset 20. The tokenizer's files are copies of the model's own.

A **row** is the token ids of one text, without padding, all rows of a call equally long. Positions count from 0 within a row; where a table says *flat*,
position p of row r is written r·tokens + p. All probabilities are natural logarithms over the whole vocabulary (nats).

## The energy of a fill

For a text with slots at positions s_1 ... s_m that are filled with tokens θ, the energy is the pseudo-log-likelihood

    U(θ) = Σ_i log f(θ_i | the text with slot i masked and every other slot filled)

Run one row for each slot i, in which s_i holds the mask token and the other slots their θ_j; query s_i in row i, with target θ_i. The sum of
` + "`" + bert.OutputTarget + "`" + ` over the rows is U. The gradient with respect to one-hot θ has two parts:

    ∂U/∂θ_j[v] = log p_j(v) + Σ_{i≠j} ∂ log p_i(θ_i) / ∂(embedding at slot j) · E_v

The first is ` + "`" + bert.OutputVocabulary + "`" + ` of row j, the second is what ` + "`gradient.onnx`" + ` gives with weights 1 for i ≠ j and 0 for i = j.

`)
	return s.String()
}

// exportNotes says what the inputs and outputs of the graphs mean.
func exportNotes() map[string]string {
	return map[string]string{
		bert.InputIDs:              "token ids of each row",
		bert.InputQueries:          "positions whose distribution is wanted, flat; each row has the same number of them",
		bert.InputTargets:          "a token for each query, whose log-probability comes out",
		bert.InputCandidates:       "further tokens for each query; the second dimension may be 0",
		bert.InputChosen:           "indices of queries whose whole distribution is wanted; may be empty",
		bert.InputSlots:            "positions of the slots in each row, flat; the rows of a chain (one text) follow one another",
		bert.InputWeights:          "factor of the derivative of row t of a chain with respect to slot j",
		bert.InputSlotCandidates:   "tokens for each slot whose gradient is wanted; the second dimension may be 0",
		bert.InputChosenSlots:      "chain·slots + slot, for those whose gradient is wanted over the whole vocabulary; may be empty",
		bert.OutputTarget:          "log-probability of each query's target",
		bert.OutputCandidates:      "log-probabilities of each query's candidates",
		bert.OutputVocabulary:      "the whole distribution of each chosen query",
		bert.OutputSlotCandidates:  "the gradient through the context at the slots' candidates",
		bert.OutputSlotsVocabulary: "the gradient through the context at every token, for the chosen slots",
	}
}

func exportTables(file, about string, g *onnx.Graph) (string, error) {
	var s strings.Builder
	fmt.Fprintf(&s, "## %s: %s\n\n", file, about)
	for _, part := range []struct {
		title  string
		values []*onnx.Value
	}{{"Input", g.Inputs}, {"Output", g.Outputs}} {
		fmt.Fprintf(&s, "| %s | Type | Shape | |\n| --- | --- | --- | --- |\n", part.title)
		for _, v := range part.values {
			note, ok := exportNotes()[v.Name]
			if !ok {
				return "", fmt.Errorf("%s %s is not documented", strings.ToLower(part.title), v.Name)
			}
			fmt.Fprintf(&s, "| `%s` | %s | %s | %s |\n", v.Name, v.DType, strings.ReplaceAll(strings.Join(strings.Fields(v.Shape.String()), " × "), "*", "·"), note)
		}
		s.WriteString("\n")
	}
	return s.String(), nil
}

// ExportFiles lists the graphs that Export writes.
func ExportFiles() []string {
	var files []string
	for _, e := range exported() {
		files = append(files, e.file)
	}
	return slices.Clip(files)
}
