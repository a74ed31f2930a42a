package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"infill/internal/logmath"
	"infill/samplers"
)

// cellResult is what a cell found.
type cellResult struct {
	Signature string              `json:"signature"`
	Labels    labels              `json:"labels"`
	Numbers   map[string]float64  `json:"numbers"` // those that are not finite are left out
	Errors    map[string]float64  `json:"standard_errors,omitempty"`
	Curves    map[string][]sample `json:"curves,omitempty"`
	Pictures  []string            `json:"pictures,omitempty"` // files in the folder
	Warnings  []string            `json:"warnings,omitempty"`
}

// sample is a point of a curve.
type sample struct {
	X       float64 `json:"x"`
	Seconds float64 `json:"seconds,omitempty"` // of the cell so far
	Y       float64 `json:"y"`
	Error   float64 `json:"error,omitempty"` // standard error, where it is known
}

// put makes the map when it gets its first entry.
func put[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = v
}

// bench is what a cell works on.
type bench struct {
	seed    uint64
	repeat  string
	result  *cellResult
	folder  string // empty: nothing is kept
	slug    string
	observe func(done, of int)
	start   time.Time     // of the clock
	before  time.Duration // spent before the cell was stopped
	saved   time.Time
}

// streams are random streams of the repetition: cells that differ in another
// label share them, so that samplers learn from the same data.
func (b *bench) streams(label string, n int) []*rand.Rand {
	return samplers.Streams(b.seed, b.repeat+" "+label, n)
}

func (b *bench) stream(label string) *rand.Rand { return b.streams(label, 1)[0] }

func (b *bench) number(name string, value float64) {
	if logmath.Finite(value) {
		put(&b.result.Numbers, name, value)
	}
}

// estimate takes a number with its standard error, which may be NaN.
func (b *bench) estimate(name string) func(value, standardError float64) {
	return func(value, standardError float64) {
		b.number(name, value)
		if logmath.Finite(value) && logmath.Finite(standardError) {
			put(&b.result.Errors, name, standardError)
		}
	}
}

func (b *bench) point(curve string, x, y float64) {
	b.pointAt(curve, sample{X: x, Seconds: b.seconds(), Y: y})
}

func (b *bench) pointAt(curve string, s sample) {
	if !logmath.Finite(s.Error) {
		s.Error = 0
	}
	if logmath.Finite(s.Y) {
		put(&b.result.Curves, curve, append(b.result.Curves[curve], s))
	}
}

func (b *bench) warn(format string, args ...any) {
	b.result.Warnings = append(b.result.Warnings, fmt.Sprintf(format, args...))
}

// spent is the processor time that the cell has used.
func (b *bench) spent() time.Duration { return b.before + clock().Sub(b.start) }

func (b *bench) seconds() float64 { return b.spent().Seconds() }

// picture keeps an image in the folder.
func (b *bench) picture(name string, m image.Image) error {
	if b.folder == "" {
		return nil
	}
	var text bytes.Buffer
	if err := png.Encode(&text, m); err != nil {
		return err
	}
	name += "-" + b.slug + ".png"
	b.result.Pictures = append(b.result.Pictures, name)
	return maybe.WriteFile(filepath.Join(b.folder, name), text.Bytes(), 0o666)
}

func (b *bench) checkpoint() string {
	return filepath.Join(b.folder, "cells", b.slug+".checkpoint")
}

// kept begins a checkpoint, before the state of the training: what was found so far.
type kept struct {
	Signature string
	Result    cellResult
	Spent     time.Duration
}

// resume reads the state of a training that was stopped, and tells whether there was one.
func (b *bench) resume(state any) (bool, error) {
	if b.folder == "" {
		return false, nil
	}
	text, err := os.ReadFile(b.checkpoint())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var k kept
	from := gob.NewDecoder(bytes.NewReader(text))
	if err == nil {
		err = from.Decode(&k)
	}
	if err == nil && k.Signature != b.result.Signature {
		return false, nil
	}
	if err == nil {
		err = from.Decode(state)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w: delete it to begin the training again", b.checkpoint(), err)
	}
	*b.result, b.before = k.Result, k.Spent
	return true, nil
}

// keepEvery is how much of a training is lost at most when the machine stops.
const keepEvery = 15 * time.Second

// tick tells how far a training is, and keeps its state now and then, and when the
// context ends, whose error it returns.
func (b *bench) tick(ctx context.Context, done, of int, state any) error {
	b.observe(done, of)
	stopped := ctx.Err()
	if b.folder == "" || state == nil || stopped == nil && time.Since(b.saved) < keepEvery {
		return stopped
	}
	var text bytes.Buffer
	to := gob.NewEncoder(&text)
	err := to.Encode(kept{b.result.Signature, *b.result, b.spent()})
	if err == nil {
		err = to.Encode(state)
	}
	if err == nil {
		err = maybe.WriteFile(b.checkpoint(), text.Bytes(), 0o666)
	}
	b.saved = time.Now()
	return errors.Join(stopped, err)
}

var notPlain = regexp.MustCompile(`[^a-zA-Z0-9.=-]`)

// slug names a cell's files: what of its labels suits a file's name, and a few
// digits that tell apart what that leaves out.
func slug(l labels) string {
	text := l.join("-")
	plain := notPlain.ReplaceAllString(text, "-")
	if plain == strings.ReplaceAll(text, " ", "-") {
		return plain
	}
	hash := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%.60s-%x", plain, hash[:3])
}
