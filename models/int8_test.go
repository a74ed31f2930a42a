package models_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/internal/safetensors"
	"infill/models"
)

const (
	someMatrix = "bert.encoder.layer.1.output.dense.weight"
	headMatrix = "cls.predictions.transform.dense.weight"
)

// int8Dir is the folder of the tiny bundle in int8, without a manifest.
func int8Dir(t *testing.T) string {
	t.Helper()
	whole := check.Must(models.Open(tiny(t, false)))(t)
	b := check.Must(modelstest.Int8(t.Context(), t.TempDir(), whole, modelstest.Largest(whole)))(t)
	dir := t.TempDir()
	for _, name := range []string{"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"} {
		write(t, dir, name, read(t, b.Dir, name))
	}
	return dir
}

// Scales that are no positive numbers, or too few, are refused with their tensor.
func TestHostileScales(t *testing.T) {
	if b := check.Must(models.Open(int8Dir(t)))(t); !b.Int8() {
		t.Error("the model is not in int8")
	}
	scale := models.Scale(someMatrix)
	for name, x := range map[string]float64{"0": 0, "-1": -1, "NaN": math.NaN(), "+Inf": math.Inf(1)} {
		dir := int8Dir(t)
		rewrite(t, dir, func(d *safetensors.Data) bool {
			if d.Name == scale {
				content := check.Must(d.Content())(t)
				binary.LittleEndian.PutUint32(content[4*3:], math.Float32bits(float32(x)))
			}
			return true
		})
		_, err := models.Open(dir)
		check.Says(t, err, filepath.Join(dir, "model.safetensors"),
			fmt.Sprintf("tensor %s: number 3 is %s, not positive", scale, name))
	}
	others := map[string]func(*safetensors.Data){
		"is F32 of shape [15], want F32 of shape [16]": func(d *safetensors.Data) {
			d.Shape = []int{15}
			d.Content = modelstest.Bytes(make([]byte, 4*15))
		},
		"is F32 of shape [4 4], want F32 of shape [16]": func(d *safetensors.Data) { d.Shape = []int{4, 4} },
		"is F16 of shape [16], want F32 of shape [16]": func(d *safetensors.Data) {
			d.DType = safetensors.F16
			d.Content = modelstest.Bytes(make([]byte, 2*16))
		},
		"is missing, a scale for each row of " + someMatrix + " in int8": func(d *safetensors.Data) {
			d.Name = "other"
		},
	}
	for want, change := range others {
		dir := int8Dir(t)
		rewrite(t, dir, func(d *safetensors.Data) bool {
			if d.Name == scale {
				change(d)
			}
			return true
		})
		_, err := models.Open(dir)
		check.Says(t, err, "tensor "+scale+" "+want)
	}
}

// Of a tensor that the graph reads as floats, whole numbers are refused.
func TestInt8Elsewhere(t *testing.T) {
	dir := int8Dir(t)
	rewrite(t, dir, func(d *safetensors.Data) bool {
		if d.Name == headMatrix {
			d.DType = safetensors.Int8
			d.Content = modelstest.Bytes(make([]byte, 16*16))
		}
		return true
	})
	_, err := models.Open(dir)
	check.Says(t, err, "tensor "+headMatrix+" holds I8; floating-point weights are needed")
}

// Rows of zeros, and of numbers too small to divide, stay finite. Numbers that
// are none are refused before anything is stored.
func TestQuantizeRows(t *testing.T) {
	dir := t.TempDir()
	check.OK(t, modelstest.Write(dir, modelstest.Tiny, modelstest.Options{}))
	set := func(row int, x float32) {
		rewrite(t, dir, func(d *safetensors.Data) bool {
			if d.Name == someMatrix {
				content := check.Must(d.Content())(t)
				for i := range 32 {
					binary.LittleEndian.PutUint32(content[4*(32*row+i):], math.Float32bits(x))
				}
			}
			return true
		})
	}
	set(0, 0)
	set(1, 2e-45)
	store := t.TempDir()
	whole := check.Must(models.Open(dir))(t)
	b := check.Must(modelstest.Int8(t.Context(), store, whole, modelstest.Largest(whole)))(t)
	steps, _ := b.Tensor(someMatrix)
	if content := check.Must(steps.Bytes())(t); content[0] != 0 || int8(content[32]) < 0 {
		t.Errorf("steps %d of zeros, %d of tiny numbers", content[0], int8(content[32]))
	}
	set(2, float32(math.NaN()))
	whole = check.Must(models.Open(dir))(t)
	_, err := modelstest.Int8(t.Context(), t.TempDir(), whole, modelstest.Largest(whole))
	check.Says(t, err, "tensor "+someMatrix+": row 2 has the number NaN")
}

// Two matrices in int8 can have the same steps and other scales: both count.
func TestUntiedInt8(t *testing.T) {
	const words, decoder = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
	dir := tiny(t, false)
	file := check.Must(safetensors.Open(filepath.Join(dir, "model.safetensors")))(t)
	tensor, _ := file.Tensor(words)
	twice := check.Must(tensor.Bytes())(t)
	for i := 1; i < len(twice); i += 2 {
		twice[i] += 4 // the exponent of float16: × 2
	}
	rewrite(t, dir, func(*safetensors.Data) bool { return true },
		safetensors.Data{Name: decoder, DType: safetensors.DType(tensor.DType), Shape: tensor.Shape,
			Content: modelstest.Bytes(twice)})
	whole := check.Must(models.Open(dir))(t)
	b := check.Must(modelstest.Int8(t.Context(), t.TempDir(), whole, modelstest.Largest(whole)))(t)
	if b.Config.TieWordEmbeddings {
		t.Error("the output matrix is taken for the word embeddings")
	}
	if t8, _ := b.Tensor(decoder); t8.DType != "I8" {
		t.Errorf("the output matrix holds %s", t8.DType)
	}
	if _, ok := b.Tensor(models.Scale(decoder)); !ok {
		t.Error("the output matrix has no scales")
	}
}

// Factors are powers of two that bring the channels of an input nearer to each
// other. Largest values that are no numbers, or too few, are refused.
func TestSpreads(t *testing.T) {
	whole := check.Must(models.Open(tiny(t, false)))(t)
	spread := whole.Config.Spreads()[1]
	largest := modelstest.Largest(whole)
	largest[spread.Name] = make([]float32, spread.Width)
	largest[spread.Name][3] = 1000
	b := check.Must(modelstest.Int8(t.Context(), t.TempDir(), whole, largest))(t)
	factors := check.Must(b.Weights().Float32s(spread.Name))(t)
	for i, factor := range factors {
		fraction, _ := math.Frexp(float64(factor))
		// 1,000 to the power of 0.7 is 126.
		if fraction != 0.5 || i != 3 && (factor < 32*factors[3] || factor > 512*factors[3]) {
			t.Errorf("factor %d is %g, that of the largest channel %g", i, factor, factors[3])
		}
	}
	dir := int8Dir(t)
	rewrite(t, dir, func(d *safetensors.Data) bool {
		if d.Name == spread.Name {
			content := check.Must(d.Content())(t)
			binary.LittleEndian.PutUint32(content[4*3:], math.Float32bits(0.75))
		}
		return true
	})
	_, err := models.Open(dir)
	check.Says(t, err, "tensor "+spread.Name+": number 3 is 0.75, not a power of two")
	for want, list := range map[string][]float32{
		"15 largest values of the input of " + spread.Matrices[0] + ", want 16": make([]float32, 15),
		"channel 0 of the input of " + spread.Matrices[0] + " has the largest value NaN": slices.Repeat(
			[]float32{float32(math.NaN())}, 16),
	} {
		largest[spread.Name] = list
		store := t.TempDir()
		_, err := modelstest.Int8(t.Context(), store, whole, largest)
		check.Says(t, err, want)
		if files := check.Must(os.ReadDir(store))(t); len(files) > 0 {
			t.Errorf("the store has %v", files)
		}
	}
}

// A model has all its matrices in int8, or none.
func TestInt8Partly(t *testing.T) {
	dir := int8Dir(t)
	rewrite(t, dir, func(d *safetensors.Data) bool {
		if d.Name == someMatrix {
			d.DType = safetensors.F32
			d.Content = modelstest.Bytes(make([]byte, 4*16*32))
		}
		return true
	})
	_, err := models.Open(dir)
	check.Says(t, err, "tensor "+someMatrix+" holds F32, and others I8")
}

// A copy in int8 names its model as -m takes it: by its name in the store, or by
// its folder.
func TestInFloat(t *testing.T) {
	store := newStore(t)
	stored := check.Must(store.Import(t.Context(), tiny(t, false), "org/tiny"))(t)
	folder := check.Must(models.Open(tiny(t, false)))(t)
	for want, whole := range map[string]*models.Bundle{"org/tiny": stored, folder.Dir: folder} {
		b := check.Must(modelstest.Int8(t.Context(), t.TempDir(), whole, modelstest.Largest(whole)))(t)
		if got := b.InFloat(); got != "the model in float "+want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
