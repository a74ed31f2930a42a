package models_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"infill/models"
)

// The model_type of a config.json says whether a model can be imported.
func ExampleFamilies() {
	fmt.Println(strings.Join(models.Families(), " "))
	// Output:
	// albert bert camembert data2vec-text deberta-v2 distilbert electra ernie modernbert roberta xlm-roberta
}

// A bundle is a folder with weights, config and tokenizer. Opening it checks
// all of them.
func ExampleOpen() {
	bundle, err := models.Open("small-uncased")
	if err != nil {
		log.Fatal(err)
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		log.Fatal(err)
	}
	words, _ := bundle.Tensor(bundle.Config.Layout().Words.Name)
	fmt.Println(bundle.Config.VocabularySize, tokenizer.VocabularySize(), words.Shape, words.DType)
	// Output:
	// 30522 30522 [30522 384] F16
}

// Import copies a model from a folder into a store, where its name is all that
// later commands need. Its revision says what it is made of.
func ExampleStore_Import() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store := &models.Store{Dir: dir}
	bundle, err := store.Import(context.Background(), "../testdata/mini-uncased", "our/model")
	if err != nil {
		log.Fatal(err)
	}
	entry, err := store.Find("our/model")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bundle.Name, entry.Manifest.Family, strings.HasPrefix(bundle.SHA256, entry.Revision))
	// Output:
	// our/model bert true
}

// Verify reads every file of a stored model: here the vocabulary has changed
// since the import.
func ExampleEntry_Verify() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store := &models.Store{Dir: dir}
	bundle, err := store.Import(ctx, "../testdata/mini-uncased", "our/model")
	if err != nil {
		log.Fatal(err)
	}
	err = os.WriteFile(filepath.Join(bundle.Dir, "vocab.txt"), []byte("lost\n"), 0o644)
	if err != nil {
		log.Fatal(err)
	}
	entry, err := store.Find("our/model")
	if err != nil {
		log.Fatal(err)
	}
	damaged, err := entry.Verify(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(damaged), "damaged:", strings.Contains(damaged[0].Error(), "vocab.txt"))
	fmt.Println(entry.Remedy())
	// Output:
	// 1 damaged: true
	// infill models remove our/model@c9d9a25d772c, then import it again
}

// A tensor says where in the file a weight lies, for programs that read weights
// themselves. Layout has the names of a model's weights by their parts.
func ExampleTensor() {
	bundle, err := models.Open("../testdata/mini-uncased")
	if err != nil {
		log.Fatal(err)
	}
	query, ok := bundle.Tensor(bundle.Config.Layout().Layers[0].Query.Weight)
	if !ok {
		log.Fatal("no such weight")
	}
	elements, err := query.Bytes()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(query.Name)
	fmt.Println(query.Shape, query.DType, len(elements), "bytes")
	// Output:
	// bert.encoder.layer.0.attention.self.query.weight
	// [256 256] F16 131072 bytes
}

// ParseConfig reads a config.json without the model, such as that of one that
// may be worth fetching.
func ExampleParseConfig() {
	config, err := models.ParseConfig([]byte(`{"model_type": "bert", "architectures": ["BertForMaskedLM"],
		"vocab_size": 30522, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
		"intermediate_size": 1024, "max_position_embeddings": 512}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(config.Layers, "layers, texts of", config.MaxPositions, "tokens")
	_, err = models.ParseConfig([]byte(`{"model_type": "gpt2"}`))
	fmt.Println(err != nil)
	// Output:
	// 4 layers, texts of 512 tokens
	// true
}
