package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"infill/infill/eval/corpus"
)

// Read reads the folder of a run, also while another process is at work in it.
// The records are in the order of the run, not of the file.
func Read(dir string) (*Header, []*Record, error) {
	h, records, err := readRun(dir)
	if err != nil {
		return nil, nil, err
	}
	return h, h.ordered(records), nil
}

func readRun(dir string) (*Header, map[key]*Record, error) {
	h, err := readHeader(dir)
	if err != nil {
		return nil, nil, err
	}
	if h == nil {
		return nil, nil, fmt.Errorf("%s holds no run: there is no %s in it", dir, RunFile)
	}
	records := map[key]*Record{}
	file, err := os.Open(filepath.Join(dir, SamplesFile))
	if errors.Is(err, os.ErrNotExist) {
		return h, records, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	_, err = readRecords(file, h, func(r *Record) error {
		records[r.key()] = r
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return h, records, nil
}

// ReadResults reads the results of a run that is done.
func ReadResults(dir string) (*Header, *Results, error) {
	h, records, err := readRun(dir)
	if err != nil {
		return nil, nil, err
	}
	content, err := os.ReadFile(filepath.Join(dir, MetricsFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, unfinished(dir, h, records)
	}
	if err != nil {
		return nil, nil, err
	}
	var r Results
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, nil, fmt.Errorf("%s is damaged: %w: start the run again, which writes it anew", filepath.Join(dir, MetricsFile), err)
	}
	for i, m := range r.Methods {
		var seconds []float64
		for sentence := range h.Prompts() {
			if record := records[key{m.Model, m.Method, sentence}]; record != nil {
				seconds = append(seconds, record.Seconds/float64(m.Samples))
			}
		}
		if len(seconds) == 0 {
			return nil, nil, fmt.Errorf("%s holds no sample of %s: it is not that of %s", filepath.Join(dir, SamplesFile), m.Method, MetricsFile)
		}
		r.Methods[i].SecondsPerSample = estimate(seconds)
	}
	return h, &r, nil
}

func unfinished(dir string, h *Header, records map[key]*Record) error {
	total := len(h.Prompts()) * len(h.Models) * len(h.Configuration.Samplers)
	if h.Shard.Count > 0 {
		return fmt.Errorf("%s holds part %s of a run: infill eval merge puts the parts together", dir, h.Shard)
	}
	if len(records) >= total {
		return fmt.Errorf("the run in %s has all its samples, but no scores yet: start it again, and it goes on", dir)
	}
	return fmt.Errorf("the run in %s is not done: %d of %d fills; start it again, and it goes on", dir, len(records), total)
}

// OpenCorpora opens the texts of a run again: from paths, by name, or from where
// the run found them.
func OpenCorpora(h *Header, paths map[string]string) ([]Corpus, error) {
	for name := range paths {
		if !slices.ContainsFunc(h.Corpora, func(c CorpusInfo) bool { return c.Name == name }) {
			return nil, fmt.Errorf("the run has no corpus %q", name)
		}
	}
	var corpora []Corpus
	for _, info := range h.Corpora {
		path, given := paths[info.Name]
		if !given {
			path = h.Paths[info.Name]
		}
		c, err := corpus.Open(info.Name, path, corpus.ReadOptions{Form: info.Form, Encoding: info.Encoding, Markers: info.Markers})
		if err != nil {
			return nil, fmt.Errorf("%w: name the file with --corpus %s=FILE", err, info.Name)
		}
		if c.SHA256 != info.SHA256 {
			return nil, fmt.Errorf("corpus %s (%s) is not that of the run: its SHA-256 is %s, not %s", info.Name, path, c.SHA256, info.SHA256)
		}
		corpora = append(corpora, Corpus{Corpus: c, Path: path, Reference: info.Masked == 0})
	}
	return corpora, nil
}

// Merge puts the parts of a run together in the folder out, which is that of no
// other run, and evaluates it. The corpora are opened with paths, see
// OpenCorpora.
func Merge(ctx context.Context, out string, dirs []string, paths map[string]string) (*Results, error) {
	if len(dirs) == 0 {
		return nil, errors.New("no folder to merge")
	}
	var whole *Header
	records := map[key]*Record{}
	from := map[key]string{}
	for _, dir := range dirs {
		if same, err := sameFolder(dir, out); err != nil || same {
			return nil, errors.Join(err, fmt.Errorf("%s is one of the parts: choose another folder for the whole", out))
		}
		h, part, err := readRun(dir)
		if err != nil {
			return nil, err
		}
		if whole == nil {
			whole = h
		}
		list, err := differences(whole, h)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			return nil, fmt.Errorf("%s and %s are not of one run: %s", dirs[0], dir, strings.Join(list[:min(3, len(list))], "; "))
		}
		for k, r := range part {
			if other := records[k]; other != nil && !slices.EqualFunc(other.Chains, r.Chains, func(a, b Chain) bool {
				return a.Text == b.Text && a.LogLikelihood == b.LogLikelihood
			}) {
				return nil, fmt.Errorf("%s and %s disagree on sentence %d by %s with model %s", from[k], dir, k.sentence+1, k.method, k.model)
			}
			records[k], from[k] = r, dir
		}
	}
	for _, m := range whole.Models {
		for sentence := range whole.Prompts() {
			for _, v := range whole.Configuration.Samplers {
				if records[key{m.Name, v.Name, sentence}] == nil {
					return nil, fmt.Errorf("%d of %d fills are missing, the first of them sentence %d by %s with model %s: finish the parts, and name them all",
						len(whole.Models)*len(whole.Prompts())*len(whole.Configuration.Samplers)-len(records),
						len(whole.Models)*len(whole.Prompts())*len(whole.Configuration.Samplers), sentence+1, v.Name, m.Name)
				}
			}
		}
	}
	corpora, err := OpenCorpora(whole, paths)
	if err != nil {
		return nil, err
	}
	whole.Shard = Shard{}
	for _, c := range corpora {
		whole.Paths[c.Name] = c.Path
	}
	f, err := openFolder(out)
	if err != nil {
		return nil, err
	}
	results, err := f.merge(ctx, whole, records, corpora)
	return results, errors.Join(err, f.close())
}

func sameFolder(a, b string) (bool, error) {
	first, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	second, err := os.Stat(b)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(first, second), err
}

// merge writes the whole. Each file comes into its place at once; a merge that
// was killed in between is done again.
func (f *folder) merge(ctx context.Context, h *Header, records map[key]*Record, corpora []Corpus) (*Results, error) {
	if f.header != nil {
		if err := f.check(h); err != nil {
			return nil, err
		}
	}
	var lines []byte
	for _, r := range h.ordered(records) {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := f.writeHeader(h); err != nil {
		return nil, err
	}
	if err := f.write(SamplesFile, lines); err != nil {
		return nil, err
	}
	f.records = records
	return f.evaluate(ctx, corpora)
}
