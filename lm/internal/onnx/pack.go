package onnx

import (
	"fmt"
	"io"
)

// packAlignment is that of tensors in a packed file: pages, so that a reader may map them.
const packAlignment = 4096

// Precision rewrites graphs for cheaper arithmetic, and gathers their external constants in one file, each once.
type Precision struct {
	dir, file string // the folder that locations are relative to, and the name written into them
	out       io.Writer
	size      int64
	places    map[Location]Location
}

// NewPrecision gathers constants of graphs whose locations are relative to dir.
// What is written to out must become the file of the given name.
func NewPrecision(dir, name string, out io.Writer) *Precision {
	return &Precision{dir: dir, file: name, out: out, places: map[Location]Location{}}
}

// Pack writes the graph's external constants and makes the graph refer to where they lie then.
func (p *Precision) Pack(g *Graph) error {
	_, used := g.live()
	for i, constant := range g.Initializers {
		if constant.Location == nil || !used[constant.Value] {
			continue
		}
		from := *constant.Location
		to, ok := p.places[from]
		if !ok {
			var err error
			if to, err = p.copy(from); err != nil {
				return fmt.Errorf("constant %s: %w", constant.Value.Name, err)
			}
			p.places[from] = to
		}
		g.Initializers[i].Location = &to
	}
	return nil
}

func (p *Precision) copy(from Location) (Location, error) {
	file, err := from.open(p.dir)
	if err != nil {
		return Location{}, err
	}
	defer file.Close()
	if err := p.align(); err != nil {
		return Location{}, err
	}
	to := Location{File: p.file, Offset: p.size, Length: from.Length}
	n, err := io.Copy(p.out, io.NewSectionReader(file, from.Offset, from.Length))
	p.size += n
	if err == nil && n != from.Length {
		err = fmt.Errorf("%s ends %d bytes early", from.File, from.Length-n)
	}
	return to, err
}

func (p *Precision) align() error {
	n, err := p.out.Write(make([]byte, (packAlignment-p.size%packAlignment)%packAlignment))
	p.size += int64(n)
	return err
}
