package batch

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"infill/infill"
)

// IsFile reports whether a name ends as a file of one of the forms, also compressed.
func IsFile(name string) bool {
	name = strings.ToLower(filepath.Base(name))
	return suffixes[filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"))] != ""
}

// Columns reads the named columns of all records of a file, [records][columns].
func Columns(f File, names ...string) (rows [][]string, err error) {
	s, err := openSource(f, names[0])
	if err == nil {
		defer s.close()
		columns := s.about().Columns
		missing := func(name string) bool { return columns != nil && !slices.Contains(columns, name) }
		if i := slices.IndexFunc(names, missing); i >= 0 {
			err = noColumn(f, names[i], columns)
		}
	}
	var option *infill.OptionError
	if errors.As(err, &option) {
		err = errors.New(option.Reason) // which flag it is depends on the command
	}
	if err != nil {
		return nil, err
	}
	for {
		r, err := s.next(true)
		switch {
		case err == io.EOF:
			return rows, nil
		case err != nil:
			return nil, err
		case r.Blank:
			continue
		}
		row := make([]string, len(names))
		for i, name := range names {
			if r.Err != nil {
				break
			}
			row[i], r.Err = textOf(r, name)
		}
		if r.Err != nil {
			return nil, fmt.Errorf("%s, record %d: %w", f.Path, r.Number, r.Err)
		}
		rows = append(rows, row)
	}
}
