package lm_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"infill/lm"
	"infill/models"
	"infill/samplers"
)

// Open runs the model of a bundle. The library onnxruntime is found, or fetched
// if there is none.
func ExampleOpen() {
	bundle, err := models.Open("small-uncased")
	if err != nil {
		log.Fatal(err)
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		log.Fatal(err)
	}
	model, err := lm.Open(context.Background(), bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID()})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	d := model.Description()
	fmt.Println(d.Name, "on", d.Device, "reads", model.Positions(), "tokens at once")
	// Output:
	// small-uncased on cpu reads 512 tokens at once
}

// A row asks what the model expects at some positions of a text: here for the
// whole vocabulary, as the row has no targets.
func ExampleMaskedLM_LogProbabilities() {
	bundle, err := models.Open("small-uncased")
	if err != nil {
		log.Fatal(err)
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	model, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID()})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	template, err := tokenizer.Template("he had [MASK] me")
	if err != nil {
		log.Fatal(err)
	}
	rows := []lm.Row{{IDs: template.IDs, Positions: template.Slots}}
	found, err := model.LogProbabilities(ctx, rows)
	if err != nil {
		log.Fatal(err)
	}
	logp := found[0][0] // of the first row, at its first position
	for _, id := range samplers.Likeliest(tokenizer.Fillable(), logp, 3) {
		fmt.Printf("%s %.2f\n", tokenizer.Token(id), logp[id])
	}
	// Output:
	// forgotten -2.38
	// told -2.54
	// seen -2.70
}

// With targets, a row costs as much, but only the numbers that are wanted come
// back: so a word is rated in its place.
func ExampleRow() {
	bundle, err := models.Open("small-uncased")
	if err != nil {
		log.Fatal(err)
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	model, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID()})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	template, err := tokenizer.Template("the [MASK] are here .")
	if err != nil {
		log.Fatal(err)
	}
	var rows []lm.Row
	for _, word := range []string{"keys", "key"} {
		id, _ := tokenizer.ID(word)
		rows = append(rows, lm.Row{IDs: template.IDs, Positions: template.Slots, Targets: []int{id}})
	}
	found, err := model.LogProbabilities(ctx, rows)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the plural is likelier:", found[0][0][0] > found[1][0][0])
	// Output:
	// the plural is likelier: true
}

// A target is the distribution of a template's fills, for the samplers. Its
// energy U is here the pseudo-log-likelihood of the slots; its gradient says
// for each token of a slot how much U would grow.
func ExampleMaskedLM_NewTarget() {
	bundle, err := models.Open("small-uncased")
	if err != nil {
		log.Fatal(err)
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	model, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID()})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	template, err := tokenizer.Template("the [MASK] barked at the [MASK] .")
	if err != nil {
		log.Fatal(err)
	}
	words := []string{"dog", "ship", "cat"}
	var ids []int
	for _, word := range words {
		id, _ := tokenizer.ID(word)
		ids = append(ids, id)
	}
	target, err := model.NewTarget(template.IDs, template.Slots, lm.TargetOptions{
		Energy:   lm.PLL,
		Gradient: lm.Full,
		Support:  [][]int{ids, ids},
	})
	if err != nil {
		log.Fatal(err)
	}
	states := []int{0, 2, 1, 2} // two chains: dog and cat, ship and cat
	energy := make([]float64, 2)
	gradient := make([]float64, 2*2*3) // [chains × slots × categories]
	err = target.(samplers.GradientTarget).EnergyGradient(ctx, states, energy, gradient)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("U %.2f for dog, %.2f for ship\n", energy[0], energy[1])
	fmt.Println("the gradient leads from ship to dog:", gradient[6] > gradient[7])
	fmt.Printf("%+v\n", target.Counts())
	// Output:
	// U -6.83 for dog, -16.64 for ship
	// the gradient leads from ship to dog: true
	// {EnergyEvaluations:2 GradientEvaluations:2 Rows:4}
}

// A target gives samplers all that they may ask for. Here Gibbs draws from its
// conditionals, which needs no gradient.
func ExampleTarget() {
	bundle, err := models.Open("small-uncased")
	if err != nil {
		log.Fatal(err)
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	model, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID()})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	template, err := tokenizer.Template("the [MASK] barked .")
	if err != nil {
		log.Fatal(err)
	}
	dog, _ := tokenizer.ID("dog")
	ship, _ := tokenizer.ID("ship")
	target, err := model.NewTarget(template.IDs, template.Slots, lm.TargetOptions{Support: [][]int{{dog, ship}}})
	if err != nil {
		log.Fatal(err)
	}
	logp := make([]float64, 2)
	err = target.(samplers.ConditionalTarget).LogConditionals(ctx, []int{1}, []int{0}, logp)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("dog is likelier:", logp[0] > logp[1])
	fmt.Printf("together %.2f\n", math.Exp(logp[0])+math.Exp(logp[1]))
	// Output:
	// dog is likelier: true
	// together 1.00
}

// A caller is who asks. A server gives each request its own, with the Limit at
// which Admit decides whether the request may go on.
func ExampleCaller() {
	bundle, err := models.Open("small-uncased")
	if err != nil {
		log.Fatal(err)
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	model, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID()})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	template, err := tokenizer.Template("he had [MASK] me")
	if err != nil {
		log.Fatal(err)
	}
	rows := []lm.Row{{IDs: template.IDs, Positions: template.Slots}}
	asked := 0
	caller := &lm.Caller{Limit: 10, Admit: func(context.Context) error {
		asked++
		return nil
	}}
	asker := model.For(caller)
	for range 4 { // each row costs its 6 tokens
		_, err = asker.LogProbabilities(ctx, rows)
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("asked", asked, "time")
	// Output:
	// asked 1 time
}

// Import takes a model that others exported as an ONNX graph. The store copies
// it, so that its name is all that later commands need.
func ExampleImport() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	from := filepath.Join("..", "testdata", "import")
	store := &models.Store{Dir: dir}
	bundle, err := lm.Import(context.Background(), store, filepath.Join(from, "eager-17.onnx"), "our/tiny",
		filepath.Join(from, "tokenizer"), 24)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bundle.Name, bundle.Config.VocabularySize, "tokens, gradient:", bundle.NoGradient() == "")
	// Output:
	// our/tiny 64 tokens, gradient: true
}
