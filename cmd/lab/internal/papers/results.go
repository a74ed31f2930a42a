// Package papers compares the papers' claims with stored results of the
// laboratory. Each claim is that one number is below another. A verdict follows
// from the claims of a row by one rule, and the pages of the documentation show
// nothing else.
package papers

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"infill/cmd/lab/internal/lab"
	"infill/samplers"
)

// Results are the stored results of an experiment, the rows of its results.csv:
// fields by the names of their columns.
type Results []map[string]string

// Read reads the results in a folder, by the names of their files, NAME.csv, or
// of their folders, NAME/results.csv as lab -o writes it.
func Read(folder string) (map[string]Results, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.csv"))
	if err != nil {
		return nil, err
	}
	folders, err := filepath.Glob(filepath.Join(folder, "*", "results.csv"))
	if err != nil {
		return nil, err
	}
	if len(files)+len(folders) == 0 {
		return nil, fmt.Errorf("%s has no results: name a folder with files as learn-ising.csv or "+
			"learn-ising/results.csv",
			folder)
	}
	all := map[string]Results{}
	for _, path := range append(files, folders...) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".csv")
		if name == "results" {
			name = filepath.Base(filepath.Dir(path))
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("%s has two results of the name %s", folder, name)
		}
		all[name], err = parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return all, nil
}

func parse(text []byte) (Results, error) {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 2 {
		return nil, fmt.Errorf("%d lines: a header and results are wanted", len(rows))
	}
	var list Results
	for _, row := range rows[1:] {
		fields := map[string]string{}
		for i, name := range rows[0] {
			fields[name] = row[i]
		}
		list = append(list, fields)
	}
	return list, nil
}

func (r Results) where(labels map[string]string) Results {
	return slices.DeleteFunc(slices.Clone(r), func(row map[string]string) bool {
		for name, value := range labels {
			if row[name] != value {
				return true
			}
		}
		return false
	})
}

// An Estimate is a number of a cell, over its repetitions: chains, or
// trainings with other random numbers.
type Estimate struct {
	Mean  float64
	Error float64 // standard error; NaN if it is not known
	Count int     // repetitions behind the error
	// byRepeat has the value of each repetition that shares its data or its
	// target with the repetition of the same name in other cells.
	byRepeat map[string]float64
	exact    bool // whether it is known without repetitions
}

// log returns the logarithm of a positive estimate, by the delta method.
func (e Estimate) log() (Estimate, error) {
	l := Estimate{Error: e.Error / e.Mean, Count: e.Count, exact: e.exact}
	if e.Mean <= 0 {
		return l, fmt.Errorf("%v has no logarithm", e.Mean)
	}
	l.Mean = math.Log(e.Mean)
	if e.byRepeat == nil {
		return l, nil
	}
	byRepeat := map[string]float64{}
	for repeat, x := range e.byRepeat {
		if x <= 0 {
			return l, fmt.Errorf("%v has no logarithm", x)
		}
		byRepeat[repeat] = math.Log(x)
	}
	return repeated(byRepeat), nil
}

// minus returns the estimate less another, repetition by repetition.
func (e Estimate) minus(other Estimate) Estimate {
	byRepeat := map[string]float64{}
	for repeat, x := range e.byRepeat {
		y, both := other.byRepeat[repeat]
		if both {
			byRepeat[repeat] = x - y
		}
	}
	return repeated(byRepeat)
}

// repeated returns the estimate of a number with a value for each repetition.
func repeated(byRepeat map[string]float64) Estimate {
	var values []float64
	for _, repeat := range slices.Sorted(maps.Keys(byRepeat)) {
		values = append(values, byRepeat[repeat])
	}
	mean, standardError := samplers.MeanAndError(values)
	return Estimate{Mean: mean, Error: standardError, Count: len(values), byRepeat: byRepeat}
}

// number returns the number of the one cell whose rows r are.
func (r Results) number(name string) (Estimate, error) {
	if len(r) == 0 {
		return Estimate{}, fmt.Errorf("%s: no such cell", name)
	}
	e := Estimate{Error: math.NaN(), byRepeat: map[string]float64{}}
	var values []float64
	for _, row := range r {
		x, err := strconv.ParseFloat(row[name], 64)
		if err != nil {
			return e, fmt.Errorf("%s: %q is not a number", name, row[name])
		}
		values = append(values, x)
		e.byRepeat[row["repeat"]] = x
	}
	if len(e.byRepeat) != len(r) {
		return e, fmt.Errorf("%s: %d rows are of %d repetitions: choose one cell", name, len(r), len(e.byRepeat))
	}
	e.Mean, e.Error = samplers.MeanAndError(values)
	e.Count = len(values)
	if e.Count > 1 {
		return e, nil
	}
	e.byRepeat = nil
	own, err := strconv.ParseFloat(r[0][name+lab.ErrorSuffix], 64)
	if err != nil {
		return e, nil // the cell knows no error
	}
	e.Error = own
	e.Count, err = strconv.Atoi(r[0][lab.ChainsColumn])
	return e, err
}

// A Difference is that of two estimates, with its error and 95 % interval.
type Difference struct {
	Mean, Low, High float64
	Error, Freedom  float64 // of Student's t
	Count           int     // repetitions; 0 if no interval is known
}

func (d *Difference) by(one Estimate) {
	d.Count = one.Count
	d.Error = one.Error
	d.Freedom = float64(one.Count - 1)
}

// less returns e less other. Repetitions that share their data or target are
// compared in pairs, others by Welch's interval.
func (e Estimate) less(other Estimate) Difference {
	d := Difference{Mean: e.Mean - other.Mean}
	switch {
	case e.exact:
		d.by(other)
	case other.exact:
		d.by(e)
	case e.byRepeat != nil && other.byRepeat != nil:
		d.by(e.minus(other))
	default:
		d.Count = min(e.Count, other.Count)
		a := e.Error * e.Error
		b := other.Error * other.Error
		d.Error = math.Sqrt(a + b)
		d.Freedom = (a + b) * (a + b) / (a*a/float64(e.Count-1) + b*b/float64(other.Count-1))
	}
	if math.IsNaN(d.Error) || d.Count < 2 {
		return Difference{Mean: d.Mean}
	}
	half := 0.0 // if all repetitions differ by the same
	if d.Error > 0 {
		half = d.Error * distuv.StudentsT{Sigma: 1, Nu: d.Freedom}.Quantile(0.975)
	}
	d.Low = d.Mean - half
	d.High = d.Mean + half
	return d
}

// setting returns the number of a setting in the results' signature.
func (r Results) setting(name string) (float64, error) {
	for field := range strings.SplitSeq(r[0]["signature"], "|") {
		text, found := strings.CutPrefix(field, name+":")
		if found {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("the signature has no %s", name)
}
