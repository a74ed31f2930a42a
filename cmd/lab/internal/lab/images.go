package lab

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"math/rand/v2"
	"os"
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

// readPictures makes images, or reads them from an IDX file, perhaps compressed.
func readPictures(name string, side int) (*pictures, error) {
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
		states[i] = bit(x > at || x == 1)
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
