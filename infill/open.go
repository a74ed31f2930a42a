package infill

import (
	"context"
	"fmt"

	"infill/lm"
	"infill/models"
)

// OpenOptions say which model fills, and where the model runs. The zero value
// means the built-in model on the best device that the machine has.
type OpenOptions struct {
	// Model is the name of a model or the folder of a bundle; "" means the default model.
	Model string
	// Device is "auto" (or ""), "cpu", "cuda" or "cuda:N".
	Device string
	// Threads is the number of threads of one model call on a CPU; 0 means the
	// number of cores.
	Threads int
	// FindLibrary, if not nil, returns the path of the onnxruntime library when
	// the model loads. If FindLibrary is nil, package lm finds the library, or
	// downloads it silently.
	FindLibrary func(ctx context.Context) (path string, err error)
	// Loaded, if not nil, is called with the model as soon as the model is ready to run.
	Loaded func(Model)
}

// Open reads and verifies a bundle and its tokenizer. It does not load
// onnxruntime: the first call that runs the model does, so that an error in a
// template appears at once. The caller closes the filler.
func Open(o OpenOptions) (*Filler, error) {
	err := lm.CheckLimits()
	if err != nil {
		return nil, err
	}
	bundle, err := models.Open(o.Model)
	if err != nil {
		return nil, err
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", bundle.Name, err)
	}
	var f *Filler
	f = newFiller(tokenizer, bundle.Config.MaxPositions, func(ctx context.Context) (LanguageModel, error) {
		options := lm.Options{MaskID: tokenizer.MaskID(), SeparatorID: tokenizer.SeparatorID(), Device: o.Device,
			Threads: o.Threads}
		if o.FindLibrary != nil {
			path, err := o.FindLibrary(ctx)
			if err != nil {
				return nil, err
			}
			options.Library = path
		}
		m, err := lm.Open(ctx, bundle, options)
		if err != nil {
			return nil, err
		}
		f.describe(m.Description())
		if o.Loaded != nil {
			o.Loaded(f.model)
		}
		return m, nil
	})
	f.model.Name = bundle.Name
	f.model.SHA256 = bundle.SHA256
	f.model.Segments = bundle.Config.Segments
	return f, nil
}
