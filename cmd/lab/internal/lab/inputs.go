package lab

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"infill/internal/regular"
)

// Inputs records what a study reads: files, models and presets, each with its
// SHA-256. The signature names all of them. Studies read files through it alone,
// so that none is forgotten.
type Inputs struct{ list []Label }

// maxInput is the largest size of a file, in bytes.
const maxInput = 1 << 30

// Add records the content of the file, model or preset that an option names.
func (in *Inputs) Add(option, name, sum string) {
	p := Label{option, fmt.Sprintf("%s@%.12s", name, sum)}
	if !slices.Contains(in.list, p) {
		in.list = append(in.list, p)
	}
}

// Read reads the file that an option names: the laboratory's own if known lists
// the name, else the user's.
func (in *Inputs) Read(option, name string, known []string, extension string) ([]byte, error) {
	var text []byte
	var err error
	if slices.Contains(known, name) {
		text, err = carried.ReadFile("data/" + name + extension)
	} else {
		text, err = regular.ReadFile(name, maxInput)
	}
	if errors.Is(err, fs.ErrNotExist) && len(known) > 0 {
		err = fmt.Errorf("%w: name a file, or one of %s", err, strings.Join(known, ", "))
	}
	if err != nil {
		return nil, err
	}
	in.Add(option, name, fmt.Sprintf("%x", sha256.Sum256(text)))
	return text, nil
}

// ReadAs reads the file that an option names, as [Inputs.Read] does, and parses
// it. Errors name the option and the file.
func ReadAs[T any](in *Inputs, option, name string, known []string, extension string,
	parse func(text []byte) (T, error)) (value T, err error) {
	text, err := in.Read(option, name, known, extension)
	if err == nil {
		value, err = parse(text)
	}
	if err != nil {
		return value, Refuse(option, "%s: %w", name, err)
	}
	return value, nil
}
