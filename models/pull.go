package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"infill/internal/safetensors"
	"infill/models/internal/hub"
	"infill/models/internal/pytorch"
)

// HubOptions say where to fetch from, and how. The zero value is the public Hugging Face hub.
type HubOptions = hub.Options

// DefaultTotal is the longest time that a whole fetch may take.
const DefaultTotal = hub.DefaultTotal

// Progress observes a fetch.
type Progress = hub.Progress

// HubOptionsFromEnvironment reads HF_ENDPOINT, HF_TOKEN (or the file that the hub's command line leaves the token in)
// and HF_HUB_OFFLINE, the variables of the hub's own clients.
func HubOptionsFromEnvironment() HubOptions {
	o := HubOptions{Endpoint: os.Getenv(hub.EndpointVariable), Token: strings.TrimSpace(os.Getenv(hub.TokenVariable))}
	switch strings.ToLower(os.Getenv("HF_HUB_OFFLINE")) {
	case "1", "true", "yes", "on":
		o.Offline = true
	}
	if o.Token == "" { // without a readable file there is no token
		home, _ := os.UserHomeDir()
		home = cmp.Or(os.Getenv("HF_HOME"), filepath.Join(home, ".cache", "huggingface"))
		content, _ := os.ReadFile(cmp.Or(os.Getenv("HF_TOKEN_PATH"), filepath.Join(home, "token")))
		o.Token = strings.TrimSpace(string(content))
	}
	return o
}

// errOffline reports that something would have to be fetched, and that this was not allowed.
var errOffline = errors.New("the network may not be used (offline)")

// Pull fetches a model, "org/name" or "org/name@revision", into the store, verifies it and opens it. The
// revision is a branch, a tag or a commit of the model's repository; the default is "main". It does not fetch a
// stored commit again, and continues an interrupted pull. Weights are fetched as safetensors; where a repository
// has none, as pytorch_model.bin, which is converted once.
//
// Each error is one line: what was requested, what came back, and what to do.
func (s *Store) Pull(ctx context.Context, name string, o HubOptions) (*Bundle, error) {
	base, revision, err := s.splitName(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := o.Bounded(ctx)
	defer cancel()
	b, err := s.pull(ctx, base, revision, o)
	if err != nil && ctx.Err() != nil { // the request's own error tells only where it was interrupted
		err = fmt.Errorf("%w; what was fetched is kept, and the next pull goes on with it", context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", base, err)
	}
	return b, nil
}

func (s *Store) pull(ctx context.Context, name, revision string, o HubOptions) (*Bundle, error) {
	if name == BuiltInName {
		return nil, errors.New("the model is part of the program: there is nothing to fetch")
	}
	if revision == "" {
		revision = defaultRef
	}
	stored, err := s.Find(name + "@" + revision)
	if err == nil && (o.Offline || stored.Revision == revision) {
		var b *Bundle
		if b, err = s.Open(name + "@" + stored.Revision); err == nil {
			return b, nil
		}
	}
	if o.Offline {
		return nil, fmt.Errorf("%w, and %w", err, errOffline)
	}
	client, err := hub.New(name, o)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	found, err := client.Revision(ctx, revision)
	if err != nil {
		return nil, err
	}
	if revision == found.Commit {
		revision = "" // no name points at it
	}
	b, err := s.fetch(ctx, client, found, name, revision)
	if path := new(*fs.PathError); errors.As(err, path) {
		err = fmt.Errorf("%w; make room in %s, or set %s to a folder that can be written", err, s.Dir, CacheVariable)
	}
	return b, err
}

// fetch stores a revision of a repository under the name of the model, and has ref point at it.
func (s *Store) fetch(ctx context.Context, client *hub.Client, revision *hub.Revision, name,
	ref string) (*Bundle, error) {
	p, err := s.begin(ctx, name, revision.Commit)
	if err != nil {
		return nil, err
	}
	defer p.lock.Close()
	manifest := Manifest{Licence: revision.Licence(), Source: client.Address()}
	if p.placed {
		return p.commit(ctx, manifest, ref)
	}
	files, err := s.fetchFiles(ctx, client, revision, name, p.dir())
	if err != nil {
		return nil, err
	}
	if slices.Contains(files, pytorch.FileName) {
		client.Progress.Converting()
	}
	return p.commit(ctx, manifest, ref, files...)
}

// fetchFiles fetches what a bundle needs of a repository into dir and names it.
func (s *Store) fetchFiles(ctx context.Context, client *hub.Client, revision *hub.Revision, name,
	dir string) ([]string, error) {
	config, ok := revision.Find(configName)
	if !ok {
		return nil, fmt.Errorf("the repository is not a model: it has no %s", configName)
	}
	// Small files first: they may say that there is no use in fetching the large ones.
	if err := client.Fetch(ctx, revision.Commit, config, dir); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(dir, configName))
	if err != nil {
		return nil, err
	}
	trial := Bundle{files: os.DirFS(dir)}
	if trial.Config, err = ParseConfig(content); err != nil {
		return nil, fmt.Errorf("%s: %w", configName, err)
	}
	names := []string{configName}
	for _, name := range append(tokenizerFiles(), "README.md", "LICENSE", "LICENSE.txt", "LICENSE.md") {
		if f, ok := revision.Find(name); ok {
			if err := client.Fetch(ctx, revision.Commit, f, dir); err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	settings, err := s.Case.configure(trial.files)
	if err == nil && settings == nil {
		_, err = trial.Tokenizer()
	}
	if err != nil {
		return nil, err
	}
	weights, err := weightFiles(ctx, client, revision, name, dir)
	if err != nil {
		return nil, err
	}
	for _, f := range weights {
		names = append(names, f.Name)
	}
	return names, client.FetchAll(ctx, revision.Commit, weights, dir)
}

// weightFiles chooses the files of the weights: one safetensors file, or an index, which is fetched, and its shards;
// if there is none, the one that torch.save wrote.
func weightFiles(ctx context.Context, client *hub.Client, revision *hub.Revision, name,
	dir string) ([]hub.File, error) {
	if f, ok := revision.Find(weightsName); ok {
		return []hub.File{f}, nil
	}
	if index, ok := revision.Find(indexName); ok {
		if err := client.Fetch(ctx, revision.Commit, index, dir); err != nil {
			return nil, err
		}
		shards, err := safetensors.WeightMap(filepath.Join(dir, index.Name))
		if err != nil {
			return nil, err
		}
		files := []hub.File{index}
		for _, shard := range slices.Compact(slices.Sorted(maps.Values(shards))) {
			f, ok := revision.Find(shard)
			if !ok {
				return nil, fmt.Errorf("the repository has no %.100q, which %s names", shard, index.Name)
			}
			files = append(files, f)
		}
		return files, nil
	}
	if f, ok := revision.Find(pytorch.FileName); ok {
		return []hub.File{f}, nil
	}
	var others []string
	for _, f := range revision.Files {
		switch filepath.Ext(f.Name) {
		case ".bin", ".h5", ".msgpack", ".onnx", ".safetensors", ".pt", ".ckpt":
			others = append(others, f.Name)
		}
	}
	if others == nil {
		return nil, errors.New("the repository has no weights")
	}
	return nil, fmt.Errorf("the repository has neither %s nor %s, and its other weights are not read (%.200s); a "+
		"revision that has one may exist, often a pull request: %s@refs/pr/NUMBER",
		weightsName, pytorch.FileName, strings.Join(others, ", "), name)
}
