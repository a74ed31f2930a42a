package main

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestColumns: lines of code have at most 120 columns, a tab being four, but
// for raw strings, which cannot be broken.
func TestColumns(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if path != "." && strings.HasPrefix(path, ".") && d.IsDir() {
			return fs.SkipDir // git writes there at any time
		}
		if err != nil || filepath.Ext(path) != ".go" || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		raw := rawLines(text)
		for i, line := range strings.Split(string(text), "\n") {
			columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if columns > 120 && !raw[i+1] {
				t.Errorf("%s:%d has %d columns", path, i+1, columns)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// rawLines are the numbers of the lines that a raw string stands on.
func rawLines(text []byte) map[int]bool {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if kind == token.STRING && literal[0] == '`' {
			first := file.Line(at)
			for n := first; n <= first+strings.Count(literal, "\n"); n++ {
				lines[n] = true
			}
		}
	}
}
