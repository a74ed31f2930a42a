// Package models finds, places and verifies model bundles: the folder of configuration, tokenizer files and weights
// that a masked language model is made from. One bundle is built into the program; others are folders in the layout of
// the Hugging Face hub.
package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"infill/models/cache"
)

// Store keeps bundles under one folder: DIR/NAME/REVISION/, where a hub name "org/name" becomes "org--name".
type Store struct {
	dir string
}

// NewStore is a store in dir, which need not exist yet.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// DefaultStore is the store in the user's cache folder (see package cache).
func DefaultStore() (*Store, error) {
	root, err := cache.Root()
	if err != nil {
		return nil, err
	}
	return NewStore(filepath.Join(root, "models")), nil
}

// Dir is the folder of the store.
func (s *Store) Dir() string { return s.dir }

// Open opens a bundle of the default store: see Store.Open.
func Open(name string) (*Bundle, error) {
	store, err := DefaultStore()
	if err != nil {
		return nil, err
	}
	return store.Open(name)
}

// Open finds a bundle, verifies it and reads its configuration and the places of its weights. The name is empty for the
// default model, that of a built-in model, or a folder. A name that is built in is never taken for a folder: write
// "./mini-uncased" for one of the same name.
func (s *Store) Open(name string) (*Bundle, error) {
	if name == "" {
		name = DefaultName
	}
	if _, ok := builtIn(name); ok {
		return s.openBuiltIn(name)
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return OpenDir(name)
	case err == nil:
		return nil, fmt.Errorf("model %s is a file; give the folder that holds config.json, the tokenizer files and model.safetensors", name)
	case !errors.Is(err, fs.ErrNotExist):
		// The path error would repeat the name, however long it is.
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("model %.200q is not built in (built in: %s), and no folder: %w", name, strings.Join(BuiltIn(), ", "), err)
	case isHubName(name):
		return nil, fmt.Errorf("model %s is neither a folder nor in the cache; fetch it with: infill models pull %s (built in: %s)", name, name, strings.Join(BuiltIn(), ", "))
	}
	return nil, fmt.Errorf("model %.200q is neither built in nor a folder (built in: %s)", name, strings.Join(BuiltIn(), ", "))
}

// isHubName tells whether the name has the form of a repository on the hub, "org/name".
func isHubName(name string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`).MatchString(name)
}
