// Package models finds, places and verifies model bundles. A bundle is a folder
// with the configuration, tokenizer files and weights of a masked language
// model. One bundle is built into the program; others are folders in the layout
// of the Hugging Face hub.
package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/adrg/xdg"
)

// Open opens a bundle of the default store: see Store.Open.
func Open(name string) (*Bundle, error) {
	store, err := DefaultStore()
	if err != nil {
		return nil, err
	}
	return store.Open(name)
}

// Open finds a bundle, verifies it, and reads its configuration and where its
// weights are. name may be "" for the default model (see DefaultName), the
// built-in model, a folder, or "org/name" or "org/name@revision" in the
// store. Open tries these in this order, but the store before a folder
// without config.json. Write "./small-uncased" for a folder with the name of
// the built-in model.
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
		_, absent := s.Find(name)
		if absent != nil || exists(name, configName) {
			return openDir(name, false)
		}
	case err == nil:
		return nil, fmt.Errorf("model %s is a file; give the folder that holds config.json, the tokenizer files and "+
			"model.safetensors", name)
	case !errors.Is(err, fs.ErrNotExist):
		// os.PathError would repeat the name, however long it is.
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("model %.200q is not built in (built in: %s), and no folder: %w", name, BuiltInName, err)
	}
	absent := fmt.Errorf("model %.200q is neither built in (built in: %s) nor a folder, nor in the cache", name,
		BuiltInName)
	_, _, err = splitName(name)
	if err != nil {
		return nil, absent
	}
	entry, err := s.Find(name)
	switch {
	case errors.Is(err, ErrNotStored):
		return nil, fmt.Errorf("%w, nor is there a folder of this name; fetch it with: infill models pull %s "+
			"(built in: %s)", err, name, BuiltInName)
	case err != nil:
		return nil, err
	}
	b, err := openDir(entry.Dir, true)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, entry.Remedy())
	}
	b.Name = entry.Name
	return b, nil
}

// openDefault opens the default model. An error names the variable INFILL_MODEL
// if that chose the model.
func (s *Store) openDefault() (*Bundle, error) {
	name := DefaultName()
	b, err := s.Open(name)
	if err != nil && name != BuiltInName {
		err = fmt.Errorf("%s: %w", DefaultVariable, err)
	}
	return b, err
}

// DefaultVariable is the environment variable that names the default model.
const DefaultVariable = "INFILL_MODEL"

// DefaultName returns the name of the default model: the value of INFILL_MODEL,
// or, if that is empty, BuiltInName.
func DefaultName() string { return cmp.Or(os.Getenv(DefaultVariable), BuiltInName) }

// CacheVariable is the environment variable that overrides the cache folder.
const CacheVariable = "INFILL_CACHE"

// folders is held while package xdg, which has them in variables, reads them again.
var folders sync.Mutex

// CacheDir returns the absolute path of the cache folder, for models and the
// onnxruntime library. This is $INFILL_CACHE, or "infill" in the user's cache
// folder (XDG_CACHE_HOME, ~/.cache, ~/Library/Caches or %LOCALAPPDATA%).
// CacheDir does not create it.
func CacheDir() (string, error) {
	dir := os.Getenv(CacheVariable)
	if dir == "" {
		// xdg reads the environment when the program starts, but tests and
		// embedding programs change it later.
		folders.Lock()
		defer folders.Unlock()
		xdg.Reload()
		if !filepath.IsAbs(xdg.CacheHome) { // each working folder would get its own cache
			return "", fmt.Errorf("the user's cache folder is %q, not an absolute path: set %s", xdg.CacheHome,
				CacheVariable)
		}
		return filepath.Join(xdg.CacheHome, "infill"), nil
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s=%s: no absolute path can be made of it: %w", CacheVariable, dir, err)
	}
	return root, nil
}
