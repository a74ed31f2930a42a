// Package models finds, places and verifies model bundles: the folder of configuration, tokenizer files and weights
// that a masked language model is made from. One bundle is built into the program; others are folders in the layout of
// the Hugging Face hub.
package models

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/adrg/xdg"
	"github.com/google/renameio/v2/maybe"

	"infill/internal/regular"
)

// Open opens a bundle of the default store: see Store.Open.
func Open(name string) (*Bundle, error) {
	store, err := DefaultStore()
	if err != nil {
		return nil, err
	}
	return store.Open(name)
}

// Open finds a bundle, verifies it, and reads its configuration and the places of its weights. The name may be
// empty for the default model (see Store.Default), a built-in model, a folder, or "org/name" or
// "org/name@revision" of the store, in this order, but the store comes before a folder without config.json. Write
// "./small-uncased" for a folder with the name of a built-in model.
func (s *Store) Open(name string) (*Bundle, error) {
	switch name {
	case "":
		return s.openDefault()
	case BuiltInName:
		return s.openBuiltIn()
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		if _, absent := s.Find(name); absent != nil || exists(name, configName) {
			return openDir(name, false)
		}
	case err == nil:
		return nil, fmt.Errorf("model %s is a file; give the folder that holds config.json, the tokenizer files and "+
			"model.safetensors", name)
	case !errors.Is(err, fs.ErrNotExist):
		// The path error would repeat the name, however long it is.
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("model %.200q is not built in (built in: %s), and no folder: %w", name, BuiltInName, err)
	}
	absent := fmt.Errorf("model %.200q is neither built in (built in: %s) nor a folder, nor in the cache", name,
		BuiltInName)
	base, _, err := s.splitName(name)
	if err != nil {
		return nil, absent
	}
	entry, err := s.Find(name)
	switch {
	case errors.Is(err, ErrNotStored) && strings.Contains(base, "/"):
		return nil, fmt.Errorf("%w, nor is there a folder of this name; fetch it with: infill models pull %s "+
			"(built in: %s)", err, name, BuiltInName)
	case errors.Is(err, ErrNotStored):
		return nil, absent
	case err != nil:
		return nil, err
	}
	b, err := openDir(entry.Dir, true)
	if err != nil {
		return nil, fmt.Errorf("%w; fetch it again with: infill models pull %s@%s", err, entry.Name, entry.Revision)
	}
	b.Name = entry.Name
	return b, nil
}

// openDefault opens the model that is meant when none is named.
func (s *Store) openDefault() (*Bundle, error) {
	chosen, err := s.Default()
	if err != nil {
		return nil, err
	}
	b, err := s.Open(chosen)
	switch {
	case err == nil || chosen == BuiltInName:
		return b, err
	case os.Getenv(DefaultVariable) != "":
		return nil, fmt.Errorf("%s: %w", DefaultVariable, err)
	}
	return nil, fmt.Errorf("the default: %w; infill models use %s goes back to the built-in one", err, BuiltInName)
}

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

// CacheVariable is the environment variable that overrides the cache folder.
const CacheVariable = "INFILL_CACHE"

// CacheDir returns the absolute path of the cache folder, for models and the onnxruntime library: $INFILL_CACHE,
// or "infill" under the user's cache folder (XDG_CACHE_HOME, ~/.cache, ~/Library/Caches or %LOCALAPPDATA%). It
// does not create the folder.
func CacheDir() (string, error) {
	dir := os.Getenv(CacheVariable)
	if dir == "" {
		// The library reads the environment when the program starts; tests and embedding programs change it later.
		xdg.Reload()
		return filepath.Join(xdg.CacheHome, "infill"), nil
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s=%s: no absolute path can be made of it: %w", CacheVariable, dir, err)
	}
	return root, nil
}

//go:embed recommended.json
var recommended []byte

// Recommendation is a published model that has a short name here. Its Time is that of BERT-base in
// docs/measured/models.md (104 rows a second against 12), and of other shapes by their rows
// against BERT-base's there.
type Recommendation struct {
	Name       string  `json:"name"` // short: every command takes it for Repository
	Repository string  `json:"repository"`
	Languages  string  `json:"languages"`
	Parameters int     `json:"parameters_millions"`
	Megabytes  int64   `json:"megabytes"` // to fetch
	Licence    string  `json:"licence"`
	Time       float64 `json:"time"`    // of a row, against that of the built-in model
	Quality    string  `json:"quality"` // from a paper, which it names: the weights were not at hand
}

// Recommended lists models that may be better than the built-in one.
func Recommended() (list []Recommendation) {
	if err := json.Unmarshal(recommended, &list); err != nil {
		panic(err) // a bug in the program
	}
	return list
}
