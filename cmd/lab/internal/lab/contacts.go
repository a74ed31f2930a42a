package lab

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// protein is the Potts model of a protein family with its contacts, the pairs of sites that touch.
type protein struct {
	sites, states int
	field         []float64 // h, [sites × states]
	couplings     []float64 // J, [(sites × states)²]
	contacts      []bool    // [sites × sites]
}

func newProtein(sites, states int) *protein {
	n := sites * states
	return &protein{sites, states, make([]float64, n), make([]float64, n*n), make([]bool, sites*sites)}
}

func (p *protein) touch(i, j int) { p.contacts[i*p.sites+j], p.contacts[j*p.sites+i] = true, true }

// couple sets one coupling, both ways.
func (p *protein) couple(i, v, j, w int, value float64) {
	n, a, b := p.sites*p.states, i*p.states+v, j*p.states+w
	p.couplings[a*n+b], p.couplings[b*n+a] = value, value
}

// folded is a made-up protein: a chain laid in a snake over a lattice. Sites that are neighbours there, and not along
// the chain, touch; J of those is N(0, strength²), h is N(0, 0.25²), and all else is 0.
func folded(rows, columns, states int, strength float64, r *rand.Rand) *protein {
	p := newProtein(rows*columns, states)
	place := func(row, column int) int {
		if row%2 == 1 {
			column = columns - 1 - column
		}
		return row*columns + column
	}
	for row := range rows - 1 {
		for column := range columns {
			if i, j := place(row, column), place(row+1, column); j-i > 1 {
				p.touch(i, j)
			}
		}
	}
	for i := range p.sites {
		for j := range i {
			if p.contacts[i*p.sites+j] {
				for v := range states {
					for w := range states {
						p.couple(i, v, j, w, strength*r.NormFloat64())
					}
				}
			}
		}
	}
	copy(p.field, targets.Normals(r, len(p.field), 0.25))
	return p
}

// readModel reads h and J from a CSV file: h,SITE,STATE,VALUE and J,SITE,STATE,SITE,STATE,VALUE, where sites and states
// count from 1. What it does not name is 0. Sites that a coupling joins touch.
func readModel(r io.Reader) (*protein, error) {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = -1
	type entry struct {
		at    []int // site, state, site, state
		value float64
	}
	var entries []entry
	most, seen := [2]int{maxSequence, maxStates}, [2]int{} // of sites and states
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(0)
		if !(row[0] == "h" && len(row) == 4 || row[0] == "J" && len(row) == 6) {
			return nil, fmt.Errorf("line %d: it is neither h,SITE,STATE,VALUE nor J,SITE,STATE,SITE,STATE,VALUE", line)
		}
		e, last := entry{}, row[len(row)-1]
		for i, word := range row[1 : len(row)-1] {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 || n > most[i%2] {
				return nil, fmt.Errorf("line %d: %q is not a whole number from 1 to %d", line, word, most[i%2])
			}
			e.at, seen[i%2] = append(e.at, n-1), max(seen[i%2], n)
		}
		if e.value, err = strconv.ParseFloat(last, 64); err != nil || !logmath.Finite(e.value) {
			return nil, fmt.Errorf("line %d: %q is not a finite number", line, last)
		}
		if len(e.at) == 4 && e.at[0] == e.at[2] {
			return nil, fmt.Errorf("line %d: a coupling of site %d with itself", line, e.at[0]+1)
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, errors.New("no line in it")
	}
	p := newProtein(seen[0], seen[1])
	for _, e := range entries {
		if len(e.at) == 2 {
			p.field[e.at[0]*p.states+e.at[1]] = e.value
		} else {
			p.couple(e.at[0], e.at[1], e.at[2], e.at[3], e.value)
			p.touch(e.at[0], e.at[2])
		}
	}
	return p, nil
}

// Bounds of proteins: J has the square of their product.
const (
	maxSequence = 512
	maxStates   = 32
)

// contactsOptions set the Potts model of a protein, made up or from a file.
type contactsOptions struct {
	rows, columns, states int
	strength              float64
	model                 string
	seed                  uint64
	truth                 truthOptions
}

func defaultContacts() contactsOptions {
	return contactsOptions{rows: 4, columns: 5, states: 5, strength: 0.5, seed: 1}
}

func (o *contactsOptions) register(f *flag.FlagSet) {
	sizeVar(f, &o.rows, &o.columns, "rows and columns of the lattice that a made-up protein is folded on")
	WholeVar(f, &o.states, "states", 2, maxStates, "states of each of its sites")
	numberVar(f, &o.strength, "strength", " of 0 or more", "standard deviation of the couplings of its contacts")
	f.StringVar(&o.model, "model", "",
		"a `FILE` of h and J instead: lines h,SITE,STATE,VALUE and J,SITE,STATE,SITE,STATE,VALUE")
	seedVar(f, &o.seed, "seed of the made-up protein")
}

// readFile reads the file that an option names.
func readFile(option, path string, read func(io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return refuse(option, "%w", err)
	}
	defer file.Close()
	if err := read(file); err != nil {
		return refuse(option, "%s: %w", path, err)
	}
	return nil
}

// protein makes or reads it.
func (o *contactsOptions) protein() (*protein, error) {
	if o.model != "" {
		var p *protein
		err := readFile("model", o.model, func(r io.Reader) (err error) {
			p, err = readModel(r)
			return err
		})
		return p, err
	}
	if n := o.rows * o.columns; n > maxSequence || n < 2 {
		return nil, refuse("size", "%d sites: there can be 2 to %d", n, maxSequence)
	}
	return folded(o.rows, o.columns, o.states, o.strength, samplers.Streams(o.seed, "protein", 1)[0]), nil
}

// sampledContacts is the protein as a target to sample from, with exact means where its states can be listed.
type sampledContacts struct{ contactsOptions }

func (o *sampledContacts) register(f *flag.FlagSet) {
	o.contactsOptions.register(f)
	o.truth.register(f)
}

func (o sampledContacts) problem(ctx context.Context, seed uint64) (*Problem, error) {
	protein, err := o.protein()
	if err != nil {
		return nil, err
	}
	target := newCoupled(protein.sites, protein.states, protein.field, protein.couplings)
	p := &Problem{
		Kind: "contacts", Target: target, consistent: true,
		Parameters:  parameters(&o, "size", "states", "strength", "target-seed"),
		observables: indicators(target.Categories()),
	}
	if o.model != "" {
		p.Parameters = parameters(&o, "model")
	}
	for i := range protein.sites { // every site by its own field
		p.independent = append(p.independent, softmax(protein.field[i*protein.states:(i+1)*protein.states]))
	}
	return p, p.settle(ctx, o.truth, seed, func() (string, []float64, error) {
		states := math.Pow(float64(protein.states), float64(protein.sites))
		if states > targets.MaxStates {
			return "", nil, fmt.Errorf("%w: %.2g states", errTooLarge, states)
		}
		law, err := marginals(ctx, target)
		return fmt.Sprintf("enumeration of %.0f states", states), p.means(law), err
	}, "gibbs", protein.sites, false)
}

// residues are the letters of an alignment's states: a gap and the amino acids.
const residues = "-ACDEFGHIKLMNPQRSTVWY"

// readAlignment reads sequences of one length in FASTA. Lower case, points and
// letters of no amino acid become gaps, as aligners mean them.
func readAlignment(r io.Reader) (sequences []int, sites int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	var row []int
	finish := func() error {
		if row == nil {
			return nil
		}
		if sites == 0 {
			sites = len(row)
		}
		if len(row) != sites {
			return fmt.Errorf("sequence %d has %d letters, and the first %d: an alignment is wanted",
				len(sequences)/sites+1, len(row), sites)
		}
		sequences, row = append(sequences, row...), nil
		return nil
	}
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(text, ">") {
			if err := finish(); err != nil {
				return nil, 0, err
			}
			continue
		}
		for _, letter := range text {
			row = append(row, max(0, strings.IndexRune(residues, letter)))
		}
	}
	if err := errors.Join(lines.Err(), finish()); err != nil {
		return nil, 0, err
	}
	if sites < 2 || sites > maxSequence {
		return nil, 0, fmt.Errorf("sequences of %d letters: there can be 2 to %d", sites, maxSequence)
	}
	return sequences, sites, nil
}

// readContacts reads pairs of sites, counted from 1, a line each.
func readContacts(r io.Reader, p *protein) error {
	lines := bufio.NewScanner(r)
	n := 0
	for line := 1; lines.Scan(); line++ {
		words := strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
		if len(words) == 0 {
			continue
		}
		var i, j int
		if len(words) == 2 {
			i, _ = strconv.Atoi(words[0])
			j, _ = strconv.Atoi(words[1])
		}
		if min(i, j) < 1 || max(i, j) > p.sites {
			return fmt.Errorf("line %d: %q is no pair of sites from 1 to %d", line, lines.Text(), p.sites)
		}
		p.touch(i-1, j-1)
		n++
	}
	if n == 0 {
		return errors.New("no contact in it")
	}
	return lines.Err()
}
