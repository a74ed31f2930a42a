package lab

import (
	"bytes"
	"cmp"
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

// Regressions lists the names of the laboratory's own tables.
func Regressions() []string { return []string{"diabetes", "election", "breast-cancer"} }

// regression is a table of examples with a number to predict.
type regression struct {
	Inputs int
	X      []float64 // [examples × inputs]
	Y      []float64
}

// MaxTable is the largest number of entries of a table.
const MaxTable = 1 << 24

// ReadRegression reads one of the laboratory's tables, or a CSV file. The last
// column is the number to predict.
func ReadRegression(in *Inputs, name string) (*regression, error) {
	return ReadAs(in, "data", name, Regressions(), ".csv", parseRegression)
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
	if last < 1 || len(rows)*last > MaxTable {
		return nil, fmt.Errorf("%d columns and %d lines: the last column is predicted from those before it, of at "+
			"most %d numbers", last+1, len(rows), MaxTable)
	}
	t := &regression{Inputs: last}
	for n, row := range rows[1:] {
		for i, word := range row {
			x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			if err != nil || !logmath.Finite(x) {
				return nil, fmt.Errorf("line %d, column %s: %q is not a finite number", n+2, rows[0][i], word)
			}
			if i < last {
				t.X = append(t.X, x)
			} else {
				t.Y = append(t.Y, x)
			}
		}
	}
	if slices.Min(t.Y) == slices.Max(t.Y) {
		return nil, fmt.Errorf("column %s is the same in every line: there is nothing to predict", rows[0][last])
	}
	return t, nil
}

// Split is a table in two parts: a fifth to test with, as in the papers, and
// the rest to train with. Outputs are between 0 and 1. Over the training part,
// inputs have mean 0 and standard deviation 1 or, if the scale is unit, are from
// 0 to 1.
type Split struct {
	TrainX, TrainY, TestX, TestY []float64
}

func (t *regression) Split(r *rand.Rand, scale string) Split {
	var s Split
	examples := len(t.Y)
	low := slices.Min(t.Y)
	high := slices.Max(t.Y)
	train := examples - examples/5
	scaled := make([]float64, examples)
	for i, y := range t.Y {
		scaled[i] = (y - low) / (high - low)
	}
	order := r.Perm(examples)
	s.TrainX = RowsOf(t.X, t.Inputs, order[:train])
	s.TrainY = RowsOf(scaled, 1, order[:train])
	s.TestX = RowsOf(t.X, t.Inputs, order[train:])
	s.TestY = RowsOf(scaled, 1, order[train:])
	column := make([]float64, train)
	for j := range t.Inputs {
		for i := range column {
			column[i] = s.TrainX[i*t.Inputs+j]
		}
		origin, unit := stat.PopMeanStdDev(column, nil)
		if scale == "unit" {
			origin = slices.Min(column)
			unit = slices.Max(column) - origin
		}
		unit = cmp.Or(unit, 1) // the column may be constant
		for _, part := range [][]float64{s.TrainX, s.TestX} {
			for i := j; i < len(part); i += t.Inputs {
				part[i] = (part[i] - origin) / unit
			}
		}
	}
	return s
}

// RootMeanSquare returns the root of the mean square of a - b.
func RootMeanSquare(a, b []float64) float64 {
	return floats.Distance(a, b, 2) / math.Sqrt(float64(len(a)))
}

// ImageSet holds images of one size, [images × pixels], from 0 to 1.
type ImageSet struct {
	Rows, Columns int
	Train         []float64
	test          []float64 // if nil, each repetition draws a fifth of train for tests
	// Validation chooses the weights that are tested; nil if the last ones are.
	Validation []float64
}

func (s *ImageSet) Pixels() int { return s.Rows * s.Columns }

// ImageSets lists the names of the image sets that the laboratory has or makes.
func ImageSets() []string { return []string{"digits", "bars-and-stripes"} }

// ReadPictures makes images, or reads the digits, an IDX file, perhaps
// compressed, or an .amat file. Errors name the option.
func ReadPictures(in *Inputs, option, name string, side int) (*ImageSet, error) {
	if name == "bars-and-stripes" {
		s := &ImageSet{Rows: side, Columns: side}
		for _, v := range slices.Concat(BarsAndStripes(side)...) {
			s.Train = append(s.Train, float64(v))
		}
		return s, nil
	}
	parse := parseIDX
	if name == "digits" {
		parse = parseDigits
	}
	if strings.HasSuffix(name, ".amat") {
		parse = parseAMAT
	}
	return ReadAs(in, option, name, ImageSets(), ".txt", parse)
}

// parseDigits reads images, one a line, of 64 grey levels. A level is a
// character: 0 to 9, and a to g for 10 to 16.
func parseDigits(text []byte) (*ImageSet, error) {
	p := &ImageSet{Rows: 8, Columns: 8}
	for line := range strings.Lines(string(text)) {
		for _, letter := range line[:64] {
			p.Train = append(p.Train, float64(strings.IndexRune("0123456789abcdefg", letter))/16)
		}
	}
	return p, nil
}

// maxPixels is the largest number of pixels in a file.
const maxPixels = 1 << 28

// parseAMAT reads images as the static binary MNIST has them: a line of numbers
// from 0 to 1 for each, row by row, with spaces between them. Images are
// square.
func parseAMAT(text []byte) (*ImageSet, error) {
	p := &ImageSet{}
	line := 0
	for words := range strings.Lines(string(text)) {
		line++
		numbers := strings.Fields(words)
		if line == 1 {
			p.Rows = int(math.Round(math.Sqrt(float64(len(numbers)))))
			p.Columns = p.Rows
		}
		if len(numbers) != p.Pixels() || p.Rows == 0 {
			return nil, fmt.Errorf("line %d has %d numbers: as many as a square has pixels are wanted, in each line",
				line, len(numbers))
		}
		for _, word := range numbers {
			x, err := strconv.ParseFloat(word, 64)
			if err != nil || !(x >= 0 && x <= 1) {
				return nil, fmt.Errorf("line %d: %q is not a number from 0 to 1", line, word)
			}
			p.Train = append(p.Train, x)
		}
	}
	if line == 0 {
		return nil, errors.New("it has no images")
	}
	return p, nil
}

// parseIDX reads images in MNIST's format: the bytes 0, 0, type 8, 3
// dimensions, then their sizes, then the pixels.
func parseIDX(text []byte) (*ImageSet, error) {
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
	p := &ImageSet{Rows: int(rows), Columns: int(columns)}
	if want := int(n) * p.Rows * p.Columns; len(text) != 16+want {
		return nil, fmt.Errorf("%d bytes of pixels, and its header says %d", len(text)-16, want)
	}
	for _, b := range text[16:] {
		p.Train = append(p.Train, float64(b)/255)
	}
	return p, nil
}

// ImageFlags defines the flags that choose images, and returns their reader.
func ImageFlags(f *pflag.FlagSet) func(*Inputs) (*ImageSet, error) {
	data := f.String("data", "digits",
		"images: "+strings.Join(ImageSets(), ", ")+", or a `FILE` in the form IDX, or .amat")
	test := f.String("test", "",
		"`FILE` of test images; a fifth of the data when not given, and all of bars and stripes")
	side := WholeFlag(f, "side", 4, 2, 8, "pixels of a side of bars and stripes")
	validation := f.String("validation", "",
		"`FILE` of images that choose which weights are tested; the last ones when not given")
	return func(in *Inputs) (*ImageSet, error) {
		s, err := ReadPictures(in, "data", *data, *side)
		switch {
		case err != nil:
			return nil, err
		case *test != "":
			s.test, err = s.alike(in, "test", *test, *side)
			if err != nil {
				return nil, err
			}
		case *data == "bars-and-stripes":
			s.test = s.Train
		case len(s.Train) < 5*s.Pixels():
			return nil, Refuse("data", "%d images: at least 5 are needed", len(s.Train)/s.Pixels())
		}
		if *validation != "" {
			s.Validation, err = s.alike(in, "validation", *validation, *side)
		}
		return s, err
	}
}

// alike reads more images of the same size.
func (s *ImageSet) alike(in *Inputs, option, name string, side int) ([]float64, error) {
	other, err := ReadPictures(in, option, name, side)
	if err != nil {
		return nil, err
	}
	if other.Rows != s.Rows || other.Columns != s.Columns {
		return nil, Refuse(option, "images of %d × %d pixels, and those of the data have %d × %d", other.Rows,
			other.Columns, s.Rows, s.Columns)
	}
	return other.Train, nil
}

type Best struct {
	score   float64
	Weights []float64 // nil before the first
	Update  int
}

// Offer keeps the weights of an update if their score is the largest so far.
func (k *Best) Offer(update int, score float64, weights []float64) {
	if k.Weights == nil || score > k.score {
		*k = Best{score, slices.Clone(weights), update}
	}
}

// Split returns images to train with and images to test with. If the set has no
// test images, split draws a fifth.
func (s *ImageSet) Split(b *Bench) (train, test []float64) {
	if s.test != nil {
		return s.Train, s.test
	}
	count := len(s.Train) / s.Pixels()
	all := RowsOf(s.Train, s.Pixels(), b.Stream("split").Perm(count))
	cut := count / 5 * s.Pixels()
	return all[cut:], all[:cut]
}

// Binarised turns grey pixels into 0 or 1. If dynamic is true, 1 has the
// probability grey. Otherwise, it rounds.
func Binarised(pixels []float64, dynamic bool, r *rand.Rand) []int {
	states := make([]int, len(pixels))
	for i, x := range pixels {
		at := 0.5
		if dynamic {
			at = r.Float64()
		}
		states[i] = logmath.Indicator(x > at || x == 1)
	}
	return states
}

// Quantised gives each pixel the nearest of levels greys.
func Quantised(pixels []float64, levels int) []int {
	states := make([]int, len(pixels))
	for i, x := range pixels {
		states[i] = int(math.Round(x * float64(levels-1)))
	}
	return states
}

// Grid draws up to 100 images in rows of 10, with lines between them. Each
// pixel, one of levels greys, becomes 4 × 4 pixels.
func (s *ImageSet) Grid(states []int, levels int) image.Image {
	const side, pixel = 10, 4
	n := min(side*side, len(states)/(s.Rows*s.Columns))
	w := side * (s.Columns*pixel + pixel)
	h := (n + side - 1) / side * (s.Rows*pixel + pixel)
	m := image.NewGray(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = 128
	}
	for i := range n {
		for y := range s.Rows * pixel {
			for x := range s.Columns * pixel {
				v := states[(i*s.Rows+y/pixel)*s.Columns+x/pixel]
				m.Pix[(i/side*(s.Rows+1)*pixel+y)*m.Stride+i%side*(s.Columns+1)*pixel+x] = uint8(255 * v / (levels - 1))
			}
		}
	}
	return m
}

// BarsAndStripes lists the images in which each row, or each column, is all on
// or all off: 2^(side+1) - 2 of them.
func BarsAndStripes(side int) [][]int {
	var data [][]int
	for choice := range 1 << side {
		rows := make([]int, side*side)
		columns := make([]int, side*side)
		for i := range rows {
			rows[i] = choice >> (i / side) & 1
			columns[i] = choice >> (i % side) & 1
		}
		data = append(data, rows)
		// All on and all off are the same by rows and by columns: list them once.
		if choice != 0 && choice != 1<<side-1 {
			data = append(data, columns)
		}
	}
	return data
}
