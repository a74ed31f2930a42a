package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2/maybe"

	"infill/internal/regular"
)

// DefaultVariable is the environment variable that names the default model.
const DefaultVariable = "INFILL_MODEL"

// defaultFile holds the name that SetDefault was given. No model can have its name.
const defaultFile = ".default"

// Default returns the name of the default model: that of INFILL_MODEL, else of SetDefault, else the built-in
// one.
func (s *Store) Default() (string, error) {
	if name := os.Getenv(DefaultVariable); name != "" {
		return name, nil
	}
	content, err := regular.ReadFile(filepath.Join(s.Dir, defaultFile), 4096)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return BuiltInName, nil
	}
	name := strings.TrimSpace(string(content))
	if err == nil && name == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		path := filepath.Join(s.Dir, defaultFile)
		return "", fmt.Errorf("%s, the default model: %w; infill models use %s goes back to the built-in one", path,
			err, BuiltInName)
	}
	return name, nil
}

// SetDefault makes a model the default. The name is as for Open, which must succeed.
func (s *Store) SetDefault(name string) (*Bundle, error) {
	b, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.Dir, defaultFile)
	if name == BuiltInName {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return b, nil
	}
	if absolute, err := filepath.Abs(name); err == nil && absolute == b.Dir {
		name = absolute
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, err
	}
	return b, maybe.WriteFile(path, []byte(name+"\n"), 0o644)
}
