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
	"strings"
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
	if name == "" {
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
	if name == BuiltInName {
		return s.openBuiltIn()
	}
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		_, err = os.Lstat(filepath.Join(name, configName))
		if _, absent := s.Find(name); err == nil || absent != nil {
			return openDir(name, false, false)
		}
	}
	if err == nil {
		return nil, fmt.Errorf("model %s is a file; give the folder that holds config.json, the tokenizer files and "+
			"model.safetensors", name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		// The path error would repeat the name, however long it is.
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("model %.200q is not built in (built in: %s), and no folder: %w", name, BuiltInName, err)
	}
	if base, _, err := s.splitName(name); err == nil {
		entry, err := s.Find(name)
		if err == nil {
			b, err := openDir(entry.Dir, true, false)
			if err != nil {
				return nil, fmt.Errorf("%w; fetch it again with: infill models pull %s@%s", err, entry.Name,
					entry.Revision)
			}
			b.Name = entry.Name
			return b, nil
		}
		if !errors.Is(err, ErrNotStored) {
			return nil, err
		}
		if strings.Contains(base, "/") {
			return nil, fmt.Errorf("%w, nor is there a folder of this name; fetch it with: infill models pull %s "+
				"(built in: %s)", err, name, BuiltInName)
		}
	}
	return nil, fmt.Errorf("model %.200q is neither built in (built in: %s) nor a folder, nor in the cache", name,
		BuiltInName)
}
