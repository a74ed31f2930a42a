package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"infill/internal/rawjson"
	"infill/internal/regular"
)

// Shards returns the names of the files among which an index divides the
// tensors, sorted. The index is a model.safetensors.index.json, which
// save_pretrained of transformers writes beside the files of a large model.
func Shards(index string) ([]string, error) {
	where, err := readIndex(index)
	if err != nil {
		return nil, err
	}
	return slices.Compact(slices.Sorted(maps.Values(where))), nil
}

// OpenShards reads and checks an index, and the headers of all files that it
// names. It takes every tensor of these files, as transformers does.
func OpenShards(index string) (*File, error) {
	where, err := readIndex(index)
	if err != nil {
		return nil, err
	}
	all := &File{Path: index, tensors: map[string]Tensor{}}
	for _, shard := range slices.Compact(slices.Sorted(maps.Values(where))) {
		file, err := Open(filepath.Join(filepath.Dir(index), shard))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: there is no file %s, which it names", index, shard)
		}
		if err != nil {
			return nil, err
		}
		for _, name := range file.Names() {
			first, twice := all.tensors[name]
			if twice {
				return nil, fmt.Errorf("%s: tensor %.100q is in %s and in %s", index, name, filepath.Base(first.Path),
					shard)
			}
			if where[name] == shard {
				delete(where, name)
			}
			all.tensors[name] = file.tensors[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(where)) {
		return nil, fmt.Errorf("%s: tensor %.100q is not in %s, where it should be", index, name, where[name])
	}
	return all, nil
}

// readIndex returns the file of each tensor. Every file is beside the index.
func readIndex(path string) (map[string]string, error) {
	content, err := regular.ReadFile(path, MaxHeaderBytes)
	if err != nil {
		return nil, err
	}
	value, err := rawjson.Read(content)
	if err != nil {
		return nil, fmt.Errorf("%s: the index %w", path, err)
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(value, &index); err != nil {
		return nil, fmt.Errorf("%s: not an index of tensors: %w", path, err)
	}
	if len(index.WeightMap) == 0 {
		return nil, fmt.Errorf("%s: not an index of tensors: weight_map is missing or empty", path)
	}
	for _, name := range slices.Sorted(maps.Keys(index.WeightMap)) {
		shard := index.WeightMap[name]
		if !filepath.IsLocal(shard) || strings.ContainsAny(shard, "/\\:\n\x00") ||
			!strings.HasSuffix(shard, ".safetensors") {
			return nil, fmt.Errorf("%s: tensor %.100q: %.100q is not a file .safetensors beside the index", path, name,
				shard)
		}
	}
	return index.WeightMap, nil
}
