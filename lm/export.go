package lm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"infill/lm/internal/graphs"
	"infill/lm/internal/onnx"
	"infill/models"
)

// Export writes a model as plain ONNX files into dir, which must not exist or be empty: conditionals.onnx, energy.onnx
// and gradient.onnx (see package graphs), the model's own files, of which the graphs read their weights, and a
// README.md that documents inputs and outputs. So dir is a bundle too, and can be opened and imported as the model that
// it is. mask and separator are the token ids of [MASK] and [SEP]. All of dir appears in one step, or nothing does. For
// an imported model that cannot be differentiated, everything but gradient.onnx is written, and the note says why.
func Export(ctx context.Context, b *models.Bundle, mask, separator int, dir string) (note string, err error) {
	if mask <= 0 || mask >= b.Config.VocabularySize {
		return "", fmt.Errorf("export %s: [MASK] has id %d, outside the model's vocabulary of %d", b.Name, mask,
			b.Config.VocabularySize)
	}
	final, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if entries, err := os.ReadDir(final); err == nil && len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty: name a folder that does not exist yet", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return "", err
	}
	// Beside the final place: a rename stays on one file system.
	partial, err := os.MkdirTemp(filepath.Dir(final), "."+filepath.Base(final)+".partial-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	if note, err = exportInto(ctx, b, mask, separator, partial); err != nil {
		return "", fmt.Errorf("export %s: %w", b.Name, err)
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return "", err
	}
	if err := os.Remove(final); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return note, os.Rename(partial, final)
}

// exportInto writes the files, and tells why there is no gradient.
func exportInto(ctx context.Context, b *models.Bundle, mask, separator int, dir string) (note string, err error) {
	var readme strings.Builder
	readme.WriteString(exportHead(b, mask, separator))
	masked := func(w func(string, graphs.Model, int) (*onnx.Graph, error)) writer {
		return func(name string, m graphs.Model) (*onnx.Graph, error) { return w(name, m, mask) }
	}
	for _, e := range []struct {
		file, about string
		of          func(*models.Bundle, int, writer) (*onnx.Graph, error)
		write       writer
	}{
		{"conditionals.onnx", "log-probabilities of tokens at queried positions", graphOf, graphs.Conditionals},
		{"energy.onnx", "the energy of fills", graphOf, masked(graphs.Energy)},
		{"gradient.onnx", "the energy of fills and its gradient", gradientOf, masked(graphs.EnergyGradient)},
	} {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		graph, err := e.of(b, separator, e.write)
		var none *noGradientError
		if errors.As(err, &none) {
			note = fmt.Sprintf("there is no %s: %v", e.file, none.reason)
			readme.WriteString("T" + note[1:] + ".\n\n")
			continue
		}
		if err != nil {
			return "", err
		}
		encoded, err := graph.Encode()
		if err != nil {
			return "", err
		}
		if err := writeSynced(filepath.Join(dir, e.file), encoded); err != nil {
			return "", err
		}
		text, err := exportTables(e.file, e.about, graph)
		if err != nil {
			return "", err
		}
		readme.WriteString(text)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := b.CopyTo(dir); err != nil {
		return "", err
	}
	return note, writeSynced(filepath.Join(dir, "README.md"), []byte(readme.String()))
}

func writeSynced(path string, content []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

func exportHead(b *models.Bundle, mask, separator int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "# %s as ONNX graphs\n\n", b.Name)
	fmt.Fprintf(&s, "%s. Bundle SHA-256 `%s`. Vocabulary of %d tokens, texts of at most %d tokens, special tokens "+
		"included.\n\n",
		b.Description, b.SHA256, b.Config.VocabularySize, b.Config.MaxPositions)
	s.WriteString(`Written by infill. The graphs hold no weights: they read them from the model's own files, which must lie beside them. Any onnxruntime of version 1.17
or later runs them; the operators are those of the ONNX standard, opset 20. All other files are copies of the model's own: the folder
is a model for infill too (infill -m DIR, infill models import DIR).

All texts of a call are equally long, token ids without padding; positions count from 0. Logarithms are natural (nats), probabilities
over the whole vocabulary. The mask token has the id ` + strconv.Itoa(mask) + `.
`)
	if b.Config.Segments > 1 {
		fmt.Fprintf(&s, "Tokens behind the first separator, %d, are of the second segment.\n", separator)
	}
	s.WriteString(`
For a text with slots at positions s_1 ... s_m that are filled with tokens θ, the energy is the pseudo-log-likelihood, larger for likelier fills:

    U(θ) = Σ_i log f(θ_i | the text with slot i masked and every other slot filled)

The gradient is that over one-hot θ, of which the i-th term sees slot j ≠ i as the embedding Σ_v θ_j[v] E_v:

    ∂U/∂θ_j[v] = log f(v | the text with slot j masked) + Σ_{i≠j} ∂ log f(θ_i | ...) / ∂(embedding at slot j) · E_v

In the shapes below, *flat* means that position p of text r is written r·tokens + p.

`)
	return s.String()
}

// exportNotes says what the inputs and outputs of the graphs mean.
func exportNotes() map[string]string {
	return map[string]string{
		graphs.InputIDs:         "token ids of the texts",
		graphs.InputQueries:     "positions whose distribution is wanted, flat; each text has the same number of them",
		graphs.InputTargets:     "a token for each query, whose log-probability comes out",
		graphs.InputCandidates:  "further tokens for each query; the second dimension may be 0",
		graphs.InputChosen:      "indices of queries whose whole distribution is wanted; may be empty",
		graphs.InputSlots:       "positions of the slots, the same in every text; the texts have their fills there",
		graphs.OutputTarget:     "log-probability of each query's target",
		graphs.OutputCandidates: "log-probabilities of each query's candidates",
		graphs.OutputVocabulary: "the whole distribution of each chosen query",
		graphs.OutputEnergy:     "U of each text's fills",
		graphs.OutputGradient:   "∂U/∂θ_j[v]",
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
			fmt.Fprintf(&s, "| `%s` | %s | %s | %s |\n", v.Name, v.DType,
				strings.ReplaceAll(strings.Join(strings.Fields(v.Shape.String()), " × "), "*", "·"), note)
		}
		s.WriteString("\n")
	}
	return s.String(), nil
}
