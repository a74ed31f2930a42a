package lab

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// pictures are images of one size, [images × pixels], each pixel between 0 and 1.
type pictures struct {
	rows, columns int
	pixels        []float64
}

func (p *pictures) count() int { return len(p.pixels) / (p.rows * p.columns) }

// imageSets lists those that the laboratory carries or makes.
func imageSets() []string { return []string{"digits", "bars-and-stripes"} }

// readPictures makes or reads images: of MNIST's IDX files, perhaps compressed, or of a MATLAB file with a variable of
// side² × n or n × side² numbers, as those of Omniglot (chardata.mat) and of Caltech's silhouettes are.
func readPictures(name string, side int, variables []string) (*pictures, error) {
	switch name {
	case "digits":
		text, err := carried.ReadFile("data/digits.txt")
		if err != nil {
			return nil, err
		}
		return parseDigits(string(text)), nil
	case "bars-and-stripes":
		p := &pictures{rows: side, columns: side}
		for _, x := range barsAndStripes(side) {
			for _, v := range x {
				p.pixels = append(p.pixels, float64(v))
			}
		}
		return p, nil
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w: name a file, or one of %s", err, strings.Join(imageSets(), ", "))
	}
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(name), ".mat") {
		return parseMatlab(text, variables)
	}
	return parseIDX(text)
}

// parseDigits reads lines of 64 levels from 0 to g, which is 16.
func parseDigits(text string) *pictures {
	p := &pictures{rows: 8, columns: 8}
	for line := range strings.Lines(text) {
		for _, letter := range line[:64] {
			p.pixels = append(p.pixels, float64(strings.IndexRune("0123456789abcdefg", letter))/16)
		}
	}
	return p
}

// maxPixels bounds what is read.
const maxPixels = 1 << 28

// parseIDX reads images of bytes (Y. LeCun, C. Cortes, C. Burges, the MNIST
// database): 0, 0, type 8, 3 dimensions, their sizes, the pixels.
func parseIDX(text []byte) (*pictures, error) {
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		if text, err = io.ReadAll(io.LimitReader(z, maxPixels+17)); err != nil {
			return nil, err
		}
	}
	if len(text) < 16 || !bytes.Equal(text[:4], []byte{0, 0, 8, 3}) {
		return nil, errors.New("no IDX file of images: it begins with 0, 0, 8, 3")
	}
	n, rows, columns := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:]),
		binary.BigEndian.Uint32(text[12:])
	if rows == 0 || columns == 0 || n == 0 || rows > 1<<10 || columns > 1<<10 ||
		uint64(n)*uint64(rows)*uint64(columns) > maxPixels {
		return nil, fmt.Errorf("%d images of %d × %d pixels: there can be %d pixels", n, rows, columns, maxPixels)
	}
	p := &pictures{rows: int(rows), columns: int(columns)}
	if want := int(n) * p.rows * p.columns; len(text) != 16+want {
		return nil, fmt.Errorf("%d bytes of pixels, and its header says %d", len(text)-16, want)
	}
	for _, b := range text[16:] {
		p.pixels = append(p.pixels, float64(b)/255)
	}
	return p, nil
}

// Types of elements of MATLAB's level 5 files (MathWorks, MAT-File Format), and of their numbers.
const matMatrix, matCompressed = 14, 15

var matNumbers = map[uint32]func(data []byte) []float64{
	1: numbersOf[int8], 2: numbersOf[uint8], 3: numbersOf[int16], 4: numbersOf[uint16],
	5: numbersOf[int32], 6: numbersOf[uint32], 7: numbersOf[float32], 9: numbersOf[float64],
}

// numbersOf reads numbers of one type, none where they are more than the pixels that are read.
func numbersOf[N int8 | uint8 | int16 | uint16 | int32 | uint32 | float32 | float64](data []byte) []float64 {
	var one N
	n := len(data) / binary.Size(one)
	if n > maxPixels {
		return nil
	}
	list := make([]float64, 0, n)
	for len(list) < cap(list) {
		n, _ := binary.Decode(data, binary.LittleEndian, &one) // there is as much
		list, data = append(list, float64(one)), data[n:]
	}
	return list
}

// parseMatlab reads the first of the variables that the file has.
func parseMatlab(text []byte, variables []string) (*pictures, error) {
	if len(text) < 128 || string(text[126:128]) != "IM" {
		if bytes.HasPrefix(text, []byte("MATLAB 7.3")) {
			return nil, errors.New("a MATLAB 7.3 file, which is HDF5: save it as version 7")
		}
		return nil, errors.New("no MATLAB file of level 5, little-endian")
	}
	arrays, names := map[string]matArray{}, []string(nil)
	for rest := text[128:]; len(rest) > 0; {
		kind, data, after, err := matElement(rest)
		if err != nil {
			return nil, err
		}
		rest = after
		if kind == matCompressed {
			z, err := zlib.NewReader(bytes.NewReader(data))
			if err != nil {
				return nil, err
			}
			plain, err := io.ReadAll(io.LimitReader(z, 8*maxPixels))
			if err != nil {
				return nil, err
			}
			if kind, data, _, err = matElement(plain); err != nil {
				return nil, err
			}
		}
		if kind != matMatrix {
			continue
		}
		array, err := parseMatArray(data)
		if err != nil {
			return nil, err
		}
		arrays[array.name], names = array, append(names, array.name)
	}
	for _, name := range variables {
		if array, found := arrays[name]; found {
			p, err := array.pictures()
			if err != nil {
				return nil, fmt.Errorf("variable %s: %w", name, err)
			}
			return p, nil
		}
	}
	return nil, fmt.Errorf("no variable %s in it; it has %s", strings.Join(variables, " or "),
		strings.Join(names, ", "))
}

var errShort = errors.New("the file ends in the middle of a variable")

// matElement is the first element of a text, and what follows it.
func matElement(text []byte) (kind uint32, data, rest []byte, err error) {
	if len(text) < 8 {
		return 0, nil, nil, errShort
	}
	kind = binary.LittleEndian.Uint32(text)
	if small := kind >> 16; small != 0 { // type and size share four bytes
		if small > 4 {
			return 0, nil, nil, errShort
		}
		return kind & 0xffff, text[4 : 4+small], text[8:], nil
	}
	size := uint64(binary.LittleEndian.Uint32(text[4:]))
	if size > uint64(len(text)-8) {
		return 0, nil, nil, errShort
	}
	padded := size
	if kind != matCompressed {
		padded = min((size+7)/8*8, uint64(len(text)-8))
	}
	return kind, text[8 : 8+size], text[8+padded:], nil
}

// matArray is a matrix of numbers, column-major.
type matArray struct {
	name          string
	rows, columns int
	values        []float64
}

// parseMatArray reads flags, sizes, name and numbers. What is no matrix of numbers comes back without values.
func parseMatArray(data []byte) (a matArray, err error) {
	_, _, rest, err := matElement(data) // flags
	if err != nil {
		return a, err
	}
	_, sizes, rest, err := matElement(rest)
	if err != nil {
		return a, err
	}
	_, name, rest, err := matElement(rest)
	if err != nil {
		return a, err
	}
	a.name = string(name)
	if len(sizes) != 8 {
		return a, nil
	}
	a.rows, a.columns = int(binary.LittleEndian.Uint32(sizes)), int(binary.LittleEndian.Uint32(sizes[4:]))
	if len(rest) == 0 {
		return a, nil
	}
	kind, numbers, _, err := matElement(rest)
	if err != nil {
		return a, err
	}
	if read := matNumbers[kind]; read != nil {
		a.values = read(numbers)
	}
	return a, nil
}

// pictures are the rows or the columns that have a square number of pixels, each of
// them stored by columns, as MATLAB does.
func (a matArray) pictures() (*pictures, error) {
	if len(a.values) == 0 || len(a.values) != a.rows*a.columns {
		return nil, errors.New("no matrix of numbers")
	}
	root := func(n int) int { // 0 for what is no square
		if side := int(math.Round(math.Sqrt(float64(n)))); side*side == n && side > 1 {
			return side
		}
		return 0
	}
	pixels, n, side := a.rows, a.columns, root(a.rows)
	other := root(a.columns)
	byRow := other > 0 && (side == 0 || other < side)
	if byRow {
		pixels, n, side = a.columns, a.rows, other
	}
	if side == 0 {
		return nil, fmt.Errorf("%d × %d numbers: neither side is a square, of the pixels of an image", a.rows,
			a.columns)
	}
	p := &pictures{rows: side, columns: side, pixels: make([]float64, len(a.values))}
	for i := range n {
		for k := range pixels {
			at := i*a.rows + k
			if byRow {
				at = k*a.rows + i
			}
			x := a.values[at]
			if !(x >= 0 && x <= 1) {
				return nil, fmt.Errorf("a pixel of %v: they are to be between 0 and 1", x)
			}
			p.pixels[i*pixels+k%side*side+k/side] = x
		}
	}
	return p, nil
}

// dealt are the images, cut out of values of all their pixels, in a random order: the first fifth is to test with.
func dealt[T any](p *pictures, values []T, b *bench) (train, test [][]T) {
	pixels := p.rows * p.columns
	var images [][]T
	for _, i := range b.streams("split", 1)[0].Perm(p.count()) {
		images = append(images, values[i*pixels:(i+1)*pixels])
	}
	return images[p.count()/5:], images[:p.count()/5]
}

// binary draws each pixel by its grey, or, where dynamic is not set, cuts it at a half.
func (p *pictures) binary(pixels []float64, dynamic bool, r *rand.Rand) []int {
	states := make([]int, len(pixels))
	for i, x := range pixels {
		at := 0.5
		if dynamic {
			at = r.Float64()
		}
		if x > at || x == 1 {
			states[i] = 1
		}
	}
	return states
}

// grid shows up to side² images, with a line between, each pixel as a few.
func grid(states []int, rows, columns, side, pixel int) image.Image {
	n := min(side*side, len(states)/(rows*columns))
	w, h := side*(columns*pixel+pixel), (n+side-1)/side*(rows*pixel+pixel)
	m := image.NewGray(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = 128
	}
	for i := range n {
		for y := range rows * pixel {
			for x := range columns * pixel {
				v := states[(i*rows+y/pixel)*columns+x/pixel]
				m.Pix[(i/side*(rows+1)*pixel+y)*m.Stride+i%side*(columns+1)*pixel+x] = uint8(255 * v)
			}
		}
	}
	return m
}
