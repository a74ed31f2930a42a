package lab

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
)

// carried holds data that are part of the program; data/README.md lists sources
// and licences.
//
//go:embed data/*.csv data/*.tsv data/*.txt
var carried embed.FS

// regressions lists the names of the laboratory's own tables.
func regressions() []string { return []string{"diabetes", "election", "breast-cancer"} }

// regression is a table of examples with a number to predict.
type regression struct {
	inputs int
	x      []float64 // [examples × inputs]
	y      []float64
}

// maxTable is the largest number of entries of a table.
const maxTable = 1 << 24

// readRegression reads one of the laboratory's tables, or a CSV file. The last
// column is the number to predict.
func readRegression(in *inputs, name string) (*regression, error) {
	text, err := in.read("data", name, regressions(), ".csv")
	if err != nil {
		return nil, refuse("data", "%s: %w", name, err)
	}
	t, err := parseRegression(text)
	if err != nil {
		return nil, refuse("data", "%s: %w", name, err)
	}
	return t, nil
}

func parseRegression(text []byte) (*regression, error) {
	table := csv.NewReader(bytes.NewReader(text))
	table.TrimLeadingSpace = true
	rows, err := table.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 6 {
		return nil, fmt.Errorf("%d lines: a header is needed, and 5 examples, a fifth of them to test with", len(rows))
	}
	last := len(rows[0]) - 1
	if last < 1 || len(rows)*last > maxTable {
		return nil, fmt.Errorf("%d columns and %d lines: the last column is predicted from those before it, of at "+
			"most %d numbers", last+1, len(rows), maxTable)
	}
	t := &regression{inputs: last}
	for n, row := range rows[1:] {
		for i, word := range row {
			x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			if err != nil || !logmath.Finite(x) {
				return nil, fmt.Errorf("line %d, column %s: %q is not a finite number", n+2, rows[0][i], word)
			}
			if i < last {
				t.x = append(t.x, x)
			} else {
				t.y = append(t.y, x)
			}
		}
	}
	if slices.Min(t.y) == slices.Max(t.y) {
		return nil, fmt.Errorf("column %s is the same in every line: there is nothing to predict", rows[0][last])
	}
	return t, nil
}

// split is a table in two parts: a fifth to test with, as in the papers, and
// the rest to train with. Outputs are between 0 and 1. Inputs are scaled in one
// of the ways of inputScales.
type split struct {
	trainX, trainY, testX, testY []float64
}

// inputScales lists how inputs are scaled, over the training part: mean 0 and
// standard deviation 1, or from 0 to 1.
func inputScales() []string { return []string{"standard", "unit"} }

func (t *regression) split(r *rand.Rand, scale string) split {
	var s split
	examples := len(t.y)
	low := slices.Min(t.y)
	high := slices.Max(t.y)
	train := examples - examples/5
	for n, i := range r.Perm(examples) {
		x := t.x[i*t.inputs : (i+1)*t.inputs]
		y := (t.y[i] - low) / (high - low)
		if n < train {
			s.trainX = append(s.trainX, x...)
			s.trainY = append(s.trainY, y)
		} else {
			s.testX = append(s.testX, x...)
			s.testY = append(s.testY, y)
		}
	}
	column := make([]float64, train)
	for j := range t.inputs {
		for i := range column {
			column[i] = s.trainX[i*t.inputs+j]
		}
		origin, unit := stat.PopMeanStdDev(column, nil)
		if scale == "unit" {
			origin = slices.Min(column)
			unit = slices.Max(column) - origin
		}
		if unit == 0 {
			unit = 1 // the column is constant
		}
		for _, part := range [][]float64{s.trainX, s.testX} {
			for i := j; i < len(part); i += t.inputs {
				part[i] = (part[i] - origin) / unit
			}
		}
	}
	return s
}

func rootMeanSquare(a, b []float64) float64 {
	return floats.Distance(a, b, 2) / math.Sqrt(float64(len(a)))
}

// imageSet holds images of one size, [images × pixels], each pixel between 0
// and 1.
type imageSet struct {
	rows, columns int
	train         []float64
	test          []float64 // if nil, each repetition draws a fifth of train for tests
	// validation chooses the weights that are tested; nil if the last ones are.
	validation []float64
}

func (s *imageSet) pixels() int { return s.rows * s.columns }

// imageSets lists the names of the image sets that the laboratory has or makes.
func imageSets() []string { return []string{"digits", "bars-and-stripes"} }

// readPictures makes images, or reads the digits, an IDX file, perhaps
// compressed, or an .amat file. Errors name the option.
func readPictures(in *inputs, option, name string, side int) (*imageSet, error) {
	if name == "bars-and-stripes" {
		s := &imageSet{rows: side, columns: side}
		for _, v := range slices.Concat(barsAndStripes(side)...) {
			s.train = append(s.train, float64(v))
		}
		return s, nil
	}
	text, err := in.read(option, name, imageSets(), ".txt")
	if err != nil {
		return nil, refuse(option, "%s: %w", name, err)
	}
	if name == "digits" {
		return parseDigits(string(text)), nil
	}
	parse := parseIDX
	if strings.HasSuffix(name, ".amat") {
		parse = parseAMAT
	}
	s, err := parse(text)
	if err != nil {
		return nil, refuse(option, "%s: %w", name, err)
	}
	return s, nil
}

// parseDigits reads images, one a line, of 64 grey levels. A level is a
// character: 0 to 9, and a to g for 10 to 16.
func parseDigits(text string) *imageSet {
	p := &imageSet{rows: 8, columns: 8}
	for line := range strings.Lines(text) {
		for _, letter := range line[:64] {
			p.train = append(p.train, float64(strings.IndexRune("0123456789abcdefg", letter))/16)
		}
	}
	return p
}

// maxPixels is the largest number of pixels in a file.
const maxPixels = 1 << 28

// parseAMAT reads images as the static binary MNIST has them: a line of numbers
// from 0 to 1 for each, row by row, with spaces between them. Images are
// square.
func parseAMAT(text []byte) (*imageSet, error) {
	p := &imageSet{}
	line := 0
	for words := range strings.Lines(string(text)) {
		line++
		numbers := strings.Fields(words)
		if line == 1 {
			p.rows = int(math.Round(math.Sqrt(float64(len(numbers)))))
			p.columns = p.rows
		}
		if len(numbers) != p.pixels() || p.rows == 0 {
			return nil, fmt.Errorf("line %d has %d numbers: as many as a square has pixels are wanted, in each line",
				line, len(numbers))
		}
		for _, word := range numbers {
			x, err := strconv.ParseFloat(word, 64)
			if err != nil || !(x >= 0 && x <= 1) {
				return nil, fmt.Errorf("line %d: %q is not a number from 0 to 1", line, word)
			}
			p.train = append(p.train, x)
		}
	}
	if line == 0 {
		return nil, errors.New("it has no images")
	}
	return p, nil
}

// parseIDX reads images in MNIST's format: the bytes 0, 0, type 8, 3
// dimensions, then their sizes, then the pixels.
func parseIDX(text []byte) (*imageSet, error) {
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		text, err = io.ReadAll(io.LimitReader(z, maxPixels+17))
		if err != nil {
			return nil, err
		}
	}
	if len(text) < 16 || !bytes.Equal(text[:4], []byte{0, 0, 8, 3}) {
		return nil, errors.New("no IDX file of images: it begins with 0, 0, 8, 3")
	}
	n := binary.BigEndian.Uint32(text[4:])
	rows := binary.BigEndian.Uint32(text[8:])
	columns := binary.BigEndian.Uint32(text[12:])
	if rows == 0 || columns == 0 || n == 0 || rows > 1<<10 || columns > 1<<10 ||
		uint64(n)*uint64(rows)*uint64(columns) > maxPixels {
		return nil, fmt.Errorf("%d images of %d × %d pixels: there can be %d pixels", n, rows, columns, maxPixels)
	}
	p := &imageSet{rows: int(rows), columns: int(columns)}
	if want := int(n) * p.rows * p.columns; len(text) != 16+want {
		return nil, fmt.Errorf("%d bytes of pixels, and its header says %d", len(text)-16, want)
	}
	for _, b := range text[16:] {
		p.train = append(p.train, float64(b)/255)
	}
	return p, nil
}

// imageFlags defines the flags that choose images, and returns a function that
// reads them.
func imageFlags(f *pflag.FlagSet) func(*inputs) (*imageSet, error) {
	data := f.String("data", "digits",
		"images: "+strings.Join(imageSets(), ", ")+", or a `FILE` in the form IDX, or .amat")
	test := f.String("test", "",
		"`FILE` of test images; a fifth of the data when not given, and all of bars and stripes")
	side := wholeFlag(f, "side", 4, 2, 8, "pixels of a side of bars and stripes")
	return func(in *inputs) (*imageSet, error) {
		s, err := readPictures(in, "data", *data, *side)
		switch {
		case err != nil:
			return nil, err
		case *test != "":
			s.test, err = s.alike(in, "test", *test, *side)
			if err != nil {
				return nil, err
			}
		case *data == "bars-and-stripes":
			s.test = s.train
		case len(s.train) < 5*s.pixels():
			return nil, refuse("data", "%d images: at least 5 are needed", len(s.train)/s.pixels())
		}
		return s, nil
	}
}

// alike reads more images of the same size.
func (s *imageSet) alike(in *inputs, option, name string, side int) ([]float64, error) {
	other, err := readPictures(in, option, name, side)
	if err != nil {
		return nil, err
	}
	if other.rows != s.rows || other.columns != s.columns {
		return nil, refuse(option, "images of %d × %d pixels, and those of the data have %d × %d", other.rows,
			other.columns, s.rows, s.columns)
	}
	return other.train, nil
}

// validated makes a set that images reads also have the images of --validation.
func validated(f *pflag.FlagSet, images func(*inputs) (*imageSet, error)) func(*inputs) (*imageSet, error) {
	name := f.String("validation", "", "`FILE` of images that choose which weights are tested; the last ones when not "+
		"given")
	return func(in *inputs) (*imageSet, error) {
		s, err := images(in)
		if err != nil || *name == "" {
			return s, err
		}
		s.validation, err = s.alike(in, "validation", *name, s.rows)
		return s, err
	}
}

// best keeps the weights that validate best.
type best struct {
	score   float64
	weights []float64 // nil before the first
	update  int
}

// offer keeps the weights of an update if their score is the largest so far.
func (k *best) offer(update int, score float64, weights []float64) {
	if k.weights == nil || score > k.score {
		*k = best{score, slices.Clone(weights), update}
	}
}

// split returns images to train with and images to test with. If the set has no
// test images, split draws a fifth.
func (s *imageSet) split(b *bench) (train, test []float64) {
	if s.test != nil {
		return s.train, s.test
	}
	count := len(s.train) / s.pixels()
	all := rows(s.train, s.pixels(), b.stream("split").Perm(count))
	cut := count / 5 * s.pixels()
	return all[cut:], all[:cut]
}

// binarised turns grey pixels into 0 or 1. If dynamic is true, 1 has the
// probability grey. Otherwise, it rounds.
func binarised(pixels []float64, dynamic bool, r *rand.Rand) []int {
	states := make([]int, len(pixels))
	for i, x := range pixels {
		at := 0.5
		if dynamic {
			at = r.Float64()
		}
		states[i] = bit(x > at || x == 1)
	}
	return states
}

// quantised gives each pixel the nearest of levels greys.
func quantised(pixels []float64, levels int) []int {
	states := make([]int, len(pixels))
	for i, x := range pixels {
		states[i] = int(math.Round(x * float64(levels-1)))
	}
	return states
}

// grid draws up to 100 images in rows of 10, with lines between them. Each
// pixel, one of levels greys, becomes 4 × 4 pixels.
func (s *imageSet) grid(states []int, levels int) image.Image {
	const side, pixel = 10, 4
	n := min(side*side, len(states)/(s.rows*s.columns))
	w := side * (s.columns*pixel + pixel)
	h := (n + side - 1) / side * (s.rows*pixel + pixel)
	m := image.NewGray(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = 128
	}
	for i := range n {
		for y := range s.rows * pixel {
			for x := range s.columns * pixel {
				v := states[(i*s.rows+y/pixel)*s.columns+x/pixel]
				m.Pix[(i/side*(s.rows+1)*pixel+y)*m.Stride+i%side*(s.columns+1)*pixel+x] = uint8(255 * v / (levels - 1))
			}
		}
	}
	return m
}
