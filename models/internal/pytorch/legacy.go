package pytorch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/nlpodyssey/gopickle/types"
)

const (
	magicPickle    = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." // the integer 0x1950a86a20f9469cfc6c
	protocolPickle = "\x80\x02M\xe9\x03."                                        // the integer 1001
)

// parseLegacy reads the form of torch before 1.6: pickles of a magic number, a version, the machine, the state dict and the list of
// the storages' keys, and then each storage in the order of that list, its number of elements in 8 bytes before it.
func parseLegacy(r io.ReaderAt, size int64) (*File, error) {
	data := make([]byte, min(size, maxPickleBytes))
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), data); err != nil {
		return nil, err
	}
	at := int64(0)
	next := func() ([]byte, error) {
		n, err := scan(data[at:])
		if err != nil && int64(len(data)) < size && errors.Is(err, errCut) {
			err = fmt.Errorf("its pickles take more than the %d bytes that are accepted, or are damaged", maxPickleBytes)
		}
		if err != nil {
			return nil, err
		}
		at += int64(n)
		return data[at-int64(n) : at], nil
	}
	for _, want := range []string{magicPickle, protocolPickle} {
		got, err := next()
		if err != nil {
			return nil, err
		}
		if string(got) != want {
			return nil, errors.New("a version of the legacy form that is not known")
		}
	}
	u := &unpickler{size: size, legacy: true, storages: map[string]*storage{}}
	load := func() (any, error) {
		p, err := next()
		if err != nil {
			return nil, err
		}
		return u.load(p)
	}
	machine, err := load()
	if err != nil {
		return nil, err
	}
	if !littleEndian(machine) {
		return nil, errors.New("it does not say that it was written by a little-endian machine: others are not read")
	}
	state, err := load()
	if err != nil {
		return nil, err
	}
	keys, err := load()
	if err != nil {
		return nil, err
	}
	file := &File{size: size}
	if file.tensors, err = tensors(state); err != nil {
		return nil, err
	}
	return file, u.findStorages(r, size, at, keys)
}

func littleEndian(machine any) bool {
	d, ok := machine.(*types.Dict)
	return ok && slices.Contains(*d, types.DictEntry{Key: "little_endian", Value: true})
}

// findStorages finds the storages, from byte at on.
func (u *unpickler) findStorages(r io.ReaderAt, size, at int64, keys any) error {
	list, ok := keys.(*types.List)
	if !ok {
		return errors.New("the list of storages is not a list")
	}
	found := map[string]bool{}
	for _, k := range *list {
		key, _ := k.(string)
		s, ok := u.storages[key]
		if !ok || found[key] {
			return errors.New("the list of storages has an entry that no tensor uses, or one twice")
		}
		found[key] = true
		var count [8]byte
		if size-at < int64(len(count)) {
			return fmt.Errorf("storage %.40q begins outside the file: %w", key, errCut)
		}
		if _, err := io.ReadFull(io.NewSectionReader(r, at, size-at), count[:]); err != nil {
			return err
		}
		at += int64(len(count))
		if got := binary.LittleEndian.Uint64(count[:]); got != uint64(s.elements) {
			return fmt.Errorf("storage %.40q has %d elements, the pickle says %d", key, got, s.elements)
		}
		length := s.elements * s.dtype.Size()
		if length > size-at {
			return fmt.Errorf("storage %.40q takes %d bytes, the file has %d more: %w", key, length, size-at, errCut)
		}
		s.content = io.NewSectionReader(r, at, length)
		at += length
	}
	for _, key := range sortedKeys(u.storages) {
		if !found[key] {
			return fmt.Errorf("storage %.40q is not in the file", key)
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), strings.Compare)
}
