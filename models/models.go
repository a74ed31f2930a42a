// Package models finds, places and verifies model bundles: the folder of configuration, tokenizer files and weights
// that a masked language model is made from. One bundle is built into the program; others are folders in the layout of
// the Hugging Face hub.
package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
