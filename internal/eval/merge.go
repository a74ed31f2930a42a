package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"infill/internal/eval/corpus"
	"infill/internal/journal"
)

// ReadResults reads the results of a run that is done.
func ReadResults(dir string) (*Results, error) {
	w, err := readRun(dir)
	if err != nil {
		return nil, err
	}
	if w.Results == nil {
		if w.Note != "" {
			return nil, fmt.Errorf("%s: start the run again, which writes it again", w.Note)
		}
		return nil, w.unfinished()
	}
	return w.Results, w.timed()
}

// timed adds to the results the seconds, which metrics.json has not, since they depend on the machine.
func (w *Watched) timed() error {
	for i, m := range w.Results.Methods {
		of, err := w.Header.ofMethod(w.records, m.Model, m.Method)
		if err != nil {
			return fmt.Errorf("%s is not that of %s: %w", filepath.Join(w.dir, samplesFile), metricsFile, err)
		}
		w.Results.Methods[i].SecondsPerSample = summarise(modelVersion{}, variant{}, w.Header.Configuration,
			of).SecondsPerSample
	}
	return nil
}

// unfinished says why there are no results.
func (w *Watched) unfinished() error {
	if w.Header.Shard.Count > 0 {
		return fmt.Errorf("%s holds part %s of a run: infill eval merge puts the parts together", w.dir, w.Header.Shard)
	}
	if w.Done() >= w.Total() {
		return fmt.Errorf("the run in %s has all its samples, but no scores yet: start it again, and it goes on", w.dir)
	}
	return fmt.Errorf("the run in %s is not done: %d of %d fills; start it again, and it goes on", w.dir, w.Done(),
		w.Total())
}

// openCorpora opens the texts of a run again: from paths, by name, or from where
// the run found them.
func openCorpora(h *header, paths map[string]string) ([]*corpus.Corpus, error) {
	for name := range paths {
		if !slices.ContainsFunc(h.Corpora, func(c corpusInfo) bool { return c.Name == name }) {
			return nil, fmt.Errorf("the run has no corpus %q", name)
		}
	}
	var corpora []*corpus.Corpus
	for _, info := range h.Corpora {
		path, given := paths[info.Name]
		if !given {
			path = h.Paths[info.Name]
		}
		c, err := corpus.Read(info.Name, path, nil, info.Form, info.Encoding)
		if err != nil {
			return nil, fmt.Errorf("%w: name the file with --corpus %s=FILE", err, info.Name)
		}
		if c.SHA256 != info.SHA256 {
			return nil, fmt.Errorf("corpus %s (%s) is not that of the run: its SHA-256 is %s, not %s", info.Name, path,
				c.SHA256, info.SHA256)
		}
		c.Reference = info.Masked == 0
		corpora = append(corpora, c)
	}
	return corpora, nil
}

// Merge puts the parts of a run together in the folder out, which is that of no
// other run, and evaluates it. The corpora are opened with paths, see
// openCorpora.
func Merge(ctx context.Context, out string, dirs []string, paths map[string]string) (*Results, error) {
	if len(dirs) == 0 {
		return nil, errors.New("no folder to merge")
	}
	var whole *header
	records := map[key]*Record{}
	from := map[key]string{}
	for _, dir := range dirs {
		first, _ := os.Stat(dir)
		if second, err := os.Stat(out); err == nil && os.SameFile(first, second) {
			return nil, fmt.Errorf("%s is one of the parts: choose another folder for the whole", out)
		}
		w, err := readRun(dir)
		if err == nil {
			err = journal.Check(dir, samplesFile)
		}
		if err != nil {
			return nil, err
		}
		h := w.Header
		if whole == nil {
			whole = h
		}
		list, err := differences(whole, h)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			return nil, fmt.Errorf("%s and %s are not of one run: %s", dirs[0], dir,
				strings.Join(list[:min(3, len(list))], "; "))
		}
		for k, r := range w.records {
			if other := records[k]; other != nil && !slices.EqualFunc(other.Chains, r.Chains, func(a, b chain) bool {
				return a.Text == b.Text && a.LogLikelihood == b.LogLikelihood
			}) {
				return nil, fmt.Errorf("%s and %s disagree on sentence %d by %s with model %s", from[k], dir,
					k.sentence+1, k.method, k.model)
			}
			records[k], from[k] = r, dir
		}
	}
	all := slices.Collect(whole.fills)
	if i := slices.IndexFunc(all, func(k key) bool { return records[k] == nil }); i >= 0 {
		return nil, fmt.Errorf("%d of %d fills are missing, the first of them sentence %d by %s with model %s: "+
			"finish the parts, and name them all",
			len(all)-len(records), len(all), all[i].sentence+1, all[i].method, all[i].model)
	}
	corpora, err := openCorpora(whole, paths)
	if err != nil {
		return nil, err
	}
	whole.Shard = journal.Shard{}
	for _, c := range corpora {
		whole.Paths[c.Name] = c.Path
	}
	f, err := openFolder(out)
	if err != nil {
		return nil, err
	}
	results, err := f.merge(ctx, whole, records, corpora)
	return results, errors.Join(err, f.Close())
}

// merge writes the whole. Each file comes into its place at once; a merge that
// was killed in between is done again.
func (f *folder) merge(ctx context.Context, h *header, records map[key]*Record,
	corpora []*corpus.Corpus) (*Results, error) {
	if f.header != nil {
		if err := f.check(h); err != nil {
			return nil, err
		}
	}
	var lines bytes.Buffer
	for k := range h.fills {
		line, err := journal.Line(records[k])
		if err != nil {
			return nil, err
		}
		lines.Write(line)
	}
	if err := f.writeHeader(h); err != nil {
		return nil, err
	}
	if err := f.write(samplesFile, lines.Bytes()); err != nil {
		return nil, err
	}
	if err := f.load(); err != nil {
		return nil, err
	}
	if err := f.Finish(f.End()); err != nil {
		return nil, err
	}
	return f.evaluate(ctx, corpora)
}
