package lm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"infill/internal/bert"
	"infill/internal/graphs"
	"infill/internal/onnx"
	"infill/internal/ort"
	"infill/models"
)

// CheckDevice returns an error if the model in b, of the kind that it is, cannot
// run on the device: see Options.Device.
func CheckDevice(b *models.Bundle, device string) error {
	if !b.Int8() {
		return nil
	}
	if strings.HasPrefix(device, "cuda") {
		return fmt.Errorf("model %s is in int8, which is for processors: use --device cpu, or %s", b.Name,
			b.InFloat())
	}
	if err := CheckInt8(); err != nil {
		return fmt.Errorf("model %s is in int8: %w; use %s", b.Name, err, b.InFloat())
	}
	if !hasVNNI() && b.Config.SharesMatrices() { // onnxruntime makes no session
		return fmt.Errorf("model %s is in int8, and its layers share matrices: it needs a processor with VNNI "+
			"(AVX-512 or AVX); use %s", b.Name, b.InFloat())
	}
	return nil
}

// LargestInputs returns what Store.Quantize takes: for the name of each of the
// model's spreads, the largest absolute value of each channel of the input in
// the texts, [width]. A text is token ids, [CLS] and [SEP] included.
func LargestInputs(ctx context.Context, b *models.Bundle, o Options, texts [][]int) (map[string][]float32, error) {
	if err := b.Quantizable(); err != nil {
		return nil, err
	}
	m, err := Open(ctx, b, o)
	if err != nil {
		return nil, err
	}
	largest, err := m.largestInputs(ctx, o, texts)
	return largest, errors.Join(err, m.Close())
}

func (m *MaskedLM) largestInputs(ctx context.Context, o Options, texts [][]int) (largest map[string][]float32,
	err error) {
	var session lazySession
	session.build = func(b *models.Bundle) (*onnx.Graph, error) { return bert.LargestInputs(b, o.SeparatorID) }
	session.inputs = []string{graphs.InputIDs, graphs.InputQueries}
	largest = map[string][]float32{}
	var outputs []ort.Tensor
	var found [][]float32
	spreads := m.bundle.Config.Spreads()
	for _, s := range spreads {
		session.outputs = append(session.outputs, s.Name)
		largest[s.Name] = make([]float32, s.Width)
		list := make([]float32, s.Width)
		found = append(found, list)
		outputs = append(outputs, ort.Float32([]int64{int64(s.Width)}, list))
	}
	run, err := session.get(ctx, m)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.close()) }()
	for _, ids := range texts {
		if err := m.check(ids); err != nil {
			return nil, err
		}
		shape := []int64{1, int64(len(ids))}
		tokens := make([]int64, len(ids))
		places := make([]int64, len(ids))
		for i, id := range ids {
			tokens[i] = int64(id)
			places[i] = int64(i)
		}
		inputs := []ort.Tensor{ort.Int64(shape, tokens), ort.Int64(shape, places)}
		if err := run.Run(ctx, inputs, outputs); err != nil {
			return nil, err
		}
		for n, s := range spreads {
			for i, x := range found[n] {
				largest[s.Name][i] = max(largest[s.Name][i], x)
			}
		}
	}
	return largest, nil
}
