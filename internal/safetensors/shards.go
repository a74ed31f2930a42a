package safetensors

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"infill/internal/regular"
)

// IndexSuffix ends the name of the index of a model in several files: a JSON object whose weight_map gives for every
// tensor the file that holds it, in the same folder.
const IndexSuffix = ".safetensors.index.json"

// OpenShards reads an index and the headers of the files that it names, checks each as Open does, and finds every
// tensor of the index in the file that it is said to be in.
func OpenShards(index string) (*File, error) {
	weights, err := WeightMap(index)
	if err != nil {
		return nil, err
	}
	merged := &File{Path: index, tensors: map[string]Tensor{}}
	shards := map[string]*File{}
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		file := weights[name]
		shard, ok := shards[file]
		if !ok {
			if shard, err = Open(filepath.Join(filepath.Dir(index), file)); err != nil {
				return nil, err
			}
			shards[file] = shard
		}
		t, ok := shard.Tensor(name)
		if !ok {
			return nil, fmt.Errorf("%s: tensor %.100q is not in %s, where the index has it", index, name, file)
		}
		merged.tensors[name] = t
	}
	return merged, nil
}

// maxShards bounds the files of one model.
const maxShards = 256

// WeightMap reads the weight_map of an index, the name of the file for every tensor. The files lie beside the index.
func WeightMap(index string) (map[string]string, error) {
	content, err := regular.ReadFile(index, MaxHeaderBytes)
	if err != nil {
		return nil, err
	}
	var parsed struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(content, &parsed); err != nil {
		return nil, fmt.Errorf("%s: not a valid index: %w", index, err)
	}
	if len(parsed.WeightMap) == 0 {
		return nil, fmt.Errorf("%s: not a valid index: weight_map is missing or empty", index)
	}
	shards := map[string]bool{}
	for name, shard := range parsed.WeightMap {
		if shard != filepath.Base(shard) || !filepath.IsLocal(shard) || strings.ContainsAny(shard, "/\\\n\x00") ||
			!strings.HasSuffix(shard, ".safetensors") {
			return nil, fmt.Errorf("%s: tensor %.100q: %.100q is not the name of a .safetensors file beside the "+
				"index", index, name, shard)
		}
		if shards[shard] = true; len(shards) > maxShards {
			return nil, fmt.Errorf("%s: more than the %d files that are accepted", index, maxShards)
		}
	}
	return parsed.WeightMap, nil
}
