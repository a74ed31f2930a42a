// Measure writes the tables of the documentation that are measured:
//
//	go run ./cmd/measure defaults -o docs/defaults.md
//	go run ./cmd/measure samplers -o docs/samplers.md
//
// They take minutes, and seconds in them hang on the machine and on what else
// it does.
package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"

	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/cobra"

	"infill/lm"
	"infill/models"
	"infill/tokenize"
)

// options are the flags.
type options struct {
	seeds int
	out   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := &cobra.Command{Use: "measure", Short: "Write the measured tables of the documentation"}
	var o options
	for _, table := range []struct {
		use, short string
		write      func(context.Context, io.Writer, options) error
	}{
		{"defaults", "settings of the samplers on templates: what the defaults were chosen by", writeDefaults},
		{"samplers", "every sampler: target, cost, exactness, effective draws per second", writeSamplers},
	} {
		root.AddCommand(&cobra.Command{Use: table.use, Short: table.short, Args: cobra.NoArgs, SilenceUsage: true,
			RunE: func(cmd *cobra.Command, _ []string) error {
				var b bytes.Buffer
				if err := table.write(cmd.Context(), &b, o); err != nil {
					return err
				}
				if o.out == "" {
					_, err := b.WriteTo(os.Stdout)
					return err
				}
				return maybe.WriteFile(o.out, b.Bytes(), 0o644)
			}})
	}
	root.PersistentFlags().IntVar(&o.seeds, "seeds", 3, "runs of every cell")
	root.PersistentFlags().StringVarP(&o.out, "out", "o", "", "file to write; standard output when empty")
	if root.ExecuteContext(ctx) != nil {
		os.Exit(1)
	}
}

// openModel opens the built-in model on the CPU.
func openModel(ctx context.Context) (*lm.MaskedLM, *tokenize.Tokenizer, error) {
	bundle, err := models.Open("")
	if err != nil {
		return nil, nil, err
	}
	tokenizer, err := tokenize.Load(bundle.FS())
	if err != nil {
		return nil, nil, err
	}
	model, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID()})
	return model, tokenizer, err
}
