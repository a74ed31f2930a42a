package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"infill/infill"
	"infill/internal/lines"
	"infill/internal/logmath"
	"infill/internal/regular"
)

// joined are numbers of samples, by their ids, that are no scores of the run's
// own: the judge's, or those of a file.
type joined struct {
	name    string
	numbers map[string]float64
}

// ownColumns are the columns of samples.csv without a judge.
var ownColumns = []string{"id", "model", "method", "sentence", "chain", "text", "u"}

// id returns the name of a sample, METHOD/SENTENCE/CHAIN, with the model before
// it if there are several. Sentences and chains count from 0, as in samples.jsonl.
func (h *header) id(k key, chain int) string {
	id := fmt.Sprintf("%s/%d/%d", k.method, k.sentence, chain)
	if len(h.Models) > 1 {
		id = k.model + "/" + id
	}
	return id
}

// writeSamples writes samples.csv, each sample with the joined numbers.
func (r *Results) writeSamples(dir string) error {
	rows := [][]string{slices.Clone(ownColumns)}
	for _, j := range r.joined {
		rows[0] = append(rows[0], j.name)
	}
	for k := range r.header.fills {
		for i, c := range r.records[k].Chains {
			id := r.header.id(k, i)
			row := []string{id, k.model, k.method, strconv.Itoa(k.sentence), strconv.Itoa(i), c.Text,
				strconv.FormatFloat(c.LogLikelihood, 'g', -1, 64)}
			for _, j := range r.joined {
				text := ""
				if x, found := j.numbers[id]; found {
					text = strconv.FormatFloat(x, 'g', -1, 64)
				}
				row = append(row, text)
			}
			rows = append(rows, row)
		}
	}
	var text bytes.Buffer
	err := csv.NewWriter(&text).WriteAll(rows)
	if err != nil {
		return err
	}
	return maybe.WriteFile(filepath.Join(dir, tableFile), text.Bytes(), 0o666)
}

// maxJoined is the largest size of a file to join, in bytes.
const maxJoined = 1 << 30

// Join adds the numbers in a CSV file to the table. Its column id names samples
// as samples.csv does, and each column that samples.csv has not is one of the
// table. Empty fields are left out.
func (r *Results) Join(path string) error {
	text, err := regular.ReadFile(path, maxJoined)
	if err != nil {
		return err
	}
	text = bytes.TrimPrefix(text, []byte(lines.ByteOrderMark))
	rows, err := csv.NewReader(lines.NewCSV(bufio.NewReader(bytes.NewReader(text)))).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	columns, err := r.read(rows)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r.joined = append(r.joined, columns...)
	return nil
}

// joinOwn joins what samples.csv has more; older programs write none.
func (r *Results) joinOwn(dir string) error {
	err := r.Join(filepath.Join(dir, tableFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (r *Results) read(rows [][]string) (list []joined, err error) {
	if len(rows) == 0 || !slices.Contains(rows[0], "id") {
		return nil, errors.New("no column id: name the samples as samples.csv does")
	}
	ids := slices.Index(rows[0], "id")
	known := map[string]bool{}
	for k := range r.header.fills {
		for i := range r.records[k].Chains {
			known[r.header.id(k, i)] = true
		}
	}
	for n, row := range rows[1:] {
		if !known[row[ids]] {
			return nil, fmt.Errorf("row %d: %q is no sample of the run, or stands twice", n+1, row[ids])
		}
		known[row[ids]] = false
	}
	taken := slices.Concat(ownColumns, r.Table(Sets()[0]).Rows()[0])
	for column, name := range rows[0] {
		if slices.Contains(ownColumns, name) {
			continue
		}
		if name == "" || slices.Contains(taken, name) {
			return nil, fmt.Errorf("column %d is called %q, as another: give it a name of its own", column+1, name)
		}
		taken = append(taken, name)
		j := joined{name, map[string]float64{}}
		for n, row := range rows[1:] {
			if row[column] == "" {
				continue
			}
			x, err := strconv.ParseFloat(row[column], 64)
			if err != nil || !logmath.Finite(x) {
				return nil, fmt.Errorf("row %d, column %s: %q is not a finite number", n+1, name, row[column])
			}
			j.numbers[row[ids]] = x
		}
		list = append(list, j)
	}
	return list, nil
}

// of returns the mean over sentences of the numbers of a method's samples, of
// the likeliest of each sentence, number at most.
func (j joined) of(h *header, records []*Record, number int) *Estimate {
	return estimate(records, func(r *Record) *float64 {
		sum, count := 0.0, 0
		for _, chain := range r.likeliest(number) {
			if x, found := j.numbers[h.id(r.key(), chain)]; found {
				sum += x
				count++
			}
		}
		if count == 0 {
			return nil
		}
		return new(sum / float64(count))
	})
}

// judge returns the mean log P of a filled word of each sample: of its fill by
// the chain rule, left to right, under the judge and in the judge's own tokens.
// A sample with a word that the judge cannot write has no number.
func (r *runner) judge(ctx context.Context) (j joined, err error) {
	judge := r.options.Judge
	m := judge.Model()
	j = joined{fmt.Sprintf("%s%s@%.12s", judged, m.Name, m.SHA256), map[string]float64{}}
	known := map[string]float64{} // by template and fills
	p := Progress{Scoring: true, Sentences: r.options.Config.Sentences, Done: r.total, Total: r.total,
		Chains: r.options.Config.Chains, Steps: r.total}
	for k := range r.folder.header.fills {
		r.options.Observe(p)
		p.Step++
		record := r.folder.records[k]
		for i, c := range record.Chains {
			text := strings.Join(append([]string{record.Template}, c.Fills...), "\n")
			if _, done := known[text]; !done {
				known[text], err = wordLogP(ctx, judge, record.Template, c.Fills)
			}
			if err != nil {
				return j, fmt.Errorf("judge %s: %q: %w", m.Name, c.Text, err)
			}
			if x := known[text]; !math.IsNaN(x) {
				j.numbers[r.folder.header.id(k, i)] = x
			}
		}
	}
	return j, nil
}

// judged begins the name of the judge's column.
const judged = "log_p_word/"

// wordLogP returns the mean log P of the words in the blanks of a template, or
// NaN if the model cannot write them.
func wordLogP(ctx context.Context, f *infill.Filler, template string, fills []string) (float64, error) {
	words := infill.Lists{}
	for i, fill := range fills {
		words[i+1] = []string{fill}
	}
	result, err := f.Fill(ctx, infill.Request{Template: template, Fit: infill.Fit{Slots: words}}, nil)
	var option *infill.OptionError
	if errors.As(err, &option) && option.Misfit {
		return math.NaN(), nil
	}
	if err != nil {
		return 0, err
	}
	return result.Fills[0].LogLikelihood / float64(len(fills)), nil
}
