package infill_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"infill/infill"
	"infill/lm"
	"infill/models"
	"infill/samplers"
)

// Open a filler once and use it for all texts: it keeps the model in memory.
func ExampleOpen() {
	filler, err := infill.Open(infill.OpenOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	request := infill.Request{Template: "he had [MASK] me", Top: 2}
	result, err := filler.Fill(context.Background(), request, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range result.Fills {
		fmt.Printf("%s (%.2f nats)\n", s.Text, s.LogLikelihood)
	}
	// Output:
	// he had forgotten me (-2.38 nats)
	// he had told me (-2.54 nats)
}

// Blanks are filled jointly, so that their words fit each other. Proven says
// that no fill left out is likelier.
func ExampleFiller_Fill() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	request := infill.Request{Template: "He locked the [MASK] and put the [MASK] in his pocket.", Top: 3}
	result, err := filler.Fill(context.Background(), request, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range result.Fills {
		fmt.Printf("%s: %.1f %%\n", strings.Join(f.Values, ", "), 100**f.Probability)
	}
	fmt.Println("proven:", *result.Proven)
	fmt.Println("the first blank by itself:", result.Alone[0][0].Text)
	// Output:
	// door, key: 25.4 %
	// door, letter: 5.0 %
	// safe, key: 3.6 %
	// proven: true
	// the first blank by itself: door
}

// Lists make multiple choice of blanks. Share compares the fills of the lists
// alone, while their probabilities stay those of the model.
func ExampleFit() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	request := infill.Request{
		Template: "The [MASK] [MASK] here.",
		Fit:      infill.Fit{Slots: infill.Lists{1: {"key", "keys"}, 2: {"is", "are"}}},
	}
	result, err := filler.Fill(context.Background(), request, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range result.Fills {
		fmt.Printf("%-18s %4.1f %%\n", f.Text, 100**f.Share)
	}
	// Output:
	// The key is here.   91.1 %
	// The keys are here.  8.4 %
	// The key are here.   0.5 %
	// The keys is here.   0.1 %
}

// A pattern in a blank gives the letters that are known, as in a damaged text
// or a crossword.
func ExampleRequest_pattern() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	request := infill.Request{Template: "the ship was [MASK~l.st] at sea .", Top: 2}
	result, err := filler.Fill(context.Background(), request, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range result.Fills {
		fmt.Println(f.Values[0])
	}
	// Output:
	// lost
	// last
}

// Where nobody knows how long a fill is, the blank names the lengths that it
// may have. Fills of all lengths are ranked together.
func ExampleRequest_lengths() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	request := infill.Request{Template: "they lived in [MASK:1-2] .", Top: 4}
	result, err := filler.Fill(context.Background(), request, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range result.Fills {
		fmt.Println(f.Values[0], f.Tokens)
	}
	// Output:
	// paris [1]
	// london [1]
	// the village [2]
	// the city [2]
}

// Independent draws show what the model would write, and not only what it would
// write most often. The same seed gives the same draws.
func ExampleDraws() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	request := infill.Request{
		Template: "the [MASK] sat by the [MASK] .",
		Method:   infill.Draws{Samples: 100, Temperature: 0.7},
		Seed:     7,
		Top:      3,
	}
	result, err := filler.Fill(context.Background(), request, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("draws:", result.Stats.Draws)
	fmt.Println("the likeliest that was drawn:", result.Fills[0].Text)
	// Output:
	// draws: 100
	// the likeliest that was drawn: the girl sat by the fire .
}

// Chains run the sampler of a paper. Look at R-hat before you believe a share:
// chains that agree have one near 1.
func ExampleChains() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	request := infill.Request{
		Template: "the [MASK] was [MASK] by noon .",
		Method:   infill.Chains{Sampler: samplers.DMALA{}, Samples: 4, Steps: 100, Candidates: 20},
		Seed:     7,
	}
	result, err := filler.Fill(context.Background(), request, nil)
	if err != nil {
		log.Fatal(err)
	}
	stats := result.Stats.Chains
	fmt.Println(stats.Sampler, "on", stats.Candidates, "tokens")
	fmt.Println("accepts some:", *stats.AcceptanceRate > 0 && *stats.AcceptanceRate < 1)
	fmt.Println("has an R-hat:", *stats.SplitRHat > 0)
	// Output:
	// dmala on [20 20] tokens
	// accepts some: true
	// has an R-hat: true
}

// metropolis proposes any category of one slot, and accepts by the energy.
type metropolis struct{}

func (metropolis) Describe() samplers.Description {
	return samplers.Description{Name: "metropolis", Title: "Metropolis on one slot", Exact: true}
}

func (metropolis) Kernel(target samplers.Target, _ *rand.Rand) (samplers.Kernel, error) {
	return metropolisKernel{target}, nil
}

type metropolisKernel struct{ target samplers.Target }

func (k metropolisKernel) Init(ctx context.Context, positions []int) (*samplers.State, error) {
	chains := len(positions) / len(k.target.Categories())
	s := &samplers.State{Positions: slices.Clone(positions), Energy: make([]float64, chains)}
	return s, k.target.Energy(ctx, s.Positions, s.Energy)
}

func (k metropolisKernel) Step(ctx context.Context, s *samplers.State, streams []*rand.Rand,
	info *samplers.Info) error {
	*info = samplers.Info{LogAcceptance: make([]float64, s.Chains()), Accepted: make([]bool, s.Chains()),
		Changed: make([]int, s.Chains()), Proposal: slices.Clone(s.Positions)}
	slots := make([]int, s.Chains())
	for c, stream := range streams {
		slots[c] = stream.IntN(s.Slots())
		info.Proposal[c*s.Slots()+slots[c]] = stream.IntN(k.target.Categories()[slots[c]])
	}
	energy := make([]float64, s.Chains())
	err := k.target.Energy(ctx, info.Proposal, energy)
	if err != nil {
		return err
	}
	for c, stream := range streams {
		info.LogAcceptance[c] = energy[c] - s.Energy[c]
		possible := !math.IsNaN(energy[c]) && !math.IsInf(energy[c], 0)
		info.Accepted[c] = possible && math.Log(stream.Float64()) < info.LogAcceptance[c]
		proposed := info.Proposal[c*s.Slots()+slots[c]]
		if info.Accepted[c] && proposed != s.Position(c)[slots[c]] {
			info.Changed[c] = 1
			s.Position(c)[slots[c]] = proposed
			s.Energy[c] = energy[c]
		}
	}
	return nil
}

// A sampler of your own fills text as those of package samplers do: the chains
// have a warm-up and diagnostics, and share rows of the model.
func ExampleChains_ownSampler() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	request := infill.Request{
		Template: "the [MASK] was [MASK] by noon .",
		Method:   infill.Chains{Sampler: metropolis{}, Samples: 8, Steps: 100, Candidates: 10},
		Seed:     7,
	}
	result, err := filler.Fill(context.Background(), request, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Method, "made", result.Stats.Draws, "draws")
	fmt.Println("some proposals are rejected:", *result.Stats.Chains.AcceptanceRate < 1)
	// Output:
	// metropolis made 400 draws
	// some proposals are rejected: true
}

// A budget bounds what an answer costs. Without a proof, the result still says
// how likely a fill can be at most that it does not list.
func ExampleBudget() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	request := infill.Request{
		Template: "the [MASK] of the [MASK] was [MASK] in the [MASK] .",
		Method:   infill.Search{Budget: infill.Budget{Rows: 20}},
	}
	result, err := filler.Fill(context.Background(), request, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("proven:", *result.Proven)
	fmt.Println("others are below 1 %:", *result.LeftOutAtMost < 0.01)
	// Output:
	// proven: false
	// others are below 1 %: true
}

// A score is the pseudo-log-likelihood of a whole text. Compare it between
// texts of the same words, or take the perplexity.
func ExampleFiller_Score() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	for _, text := range []string{"The cat sat on the mat.", "The mat sat on the cat."} {
		score, err := filler.Score(context.Background(), infill.ScoreRequest{Text: text})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%.2f nats, perplexity %4.1f: %s\n", score.LogLikelihood, score.PseudoPerplexity, text)
	}
	// Output:
	// -14.09 nats, perplexity  7.5: The cat sat on the mat.
	// -28.21 nats, perplexity 56.3: The mat sat on the cat.
}

// The surprisal of a word, here in bits, tells how hard readers find it.
func ExampleScoredWord() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	score, err := filler.Score(context.Background(), infill.ScoreRequest{
		Context: "It rained all day.",
		Text:    "The streets were dry.",
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range score.Words {
		fmt.Printf("%-7s %4.1f\n", w.Word, -w.LogLikelihood/math.Ln2)
	}
	// Output:
	// The      0.0
	// streets  4.8
	// were     0.2
	// dry      8.8
	// .        0.1
}

// An exercise takes words out of a text. Rivals are words that fit nearly as
// well, so that a teacher sees which gaps are unfair.
func ExampleFiller_Gaps() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	exercise, err := filler.Gaps(context.Background(), infill.GapsRequest{
		Text:    "The [gate] was open, and the [children] ran into the garden.",
		Options: 4,
		Seed:    1,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range exercise.Gaps {
		fmt.Println(g.Key, g.Span, len(g.Options), "answers, rivals", g.Rivals)
	}
	// Output:
	// gate [4 8] 4 answers, rivals [door window]
	// children [27 35] 4 answers, rivals [carriage]
}

// A plan costs nothing yet, so ask it what the fill will cost before you fill.
func ExampleFiller_Plan() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	ctx := context.Background()
	plan, err := filler.Plan(ctx, infill.Request{
		Template: "the [MASK] was [MASK] by noon .",
		Method:   infill.Draws{Samples: 25},
	})
	if err != nil {
		log.Fatal(err)
	}
	likely, most := plan.Cost()
	fmt.Println(plan.Slots(), "slots,", likely.Rows, "rows, at most", most.Rows)
	result, err := plan.Fill(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("within the bound:", result.Stats.ModelRows <= int64(most.Rows))
	// Output:
	// 2 slots, 26 rows, at most 4000
	// within the bound: true
}

// Alone shows what each blank takes while all are masked, as a fill-mask
// pipeline does. It costs one row of the model.
func ExamplePlan_Alone() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	ctx := context.Background()
	plan, err := filler.Plan(ctx, infill.Request{Template: "She opened the [MASK] and looked [MASK] ."})
	if err != nil {
		log.Fatal(err)
	}
	alone, err := plan.Alone(ctx, 1, nil)
	if err != nil {
		log.Fatal(err)
	}
	for slot, values := range alone {
		fmt.Printf("%s: %s\n", values[0].Text, plan.Written(slot, values[0].TokenID))
	}
	// Output:
	// door: She opened the door and looked [MASK] .
	// up: She opened the [MASK] and looked up .
}

// A caller bounds what a request may cost: Admit is asked once, before the
// model runs more than Limit tokens for it.
func ExampleFiller_For() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	tooDear := errors.New("this request is too dear")
	caller := &lm.Caller{Limit: 50, Admit: func(context.Context) error { return tooDear }}
	request := infill.Request{Template: "the [MASK] of the [MASK] was [MASK] ."}
	_, err = filler.For(caller).Fill(context.Background(), request, nil)
	fmt.Println(err, errors.Is(err, tooDear))
	// Output:
	// this request is too dear true
}

// An observer sees each step while a fill runs, and the result so far. It may
// keep what it is given.
func ExampleProgress() {
	filler, err := infill.Open(infill.OpenOptions{Model: "small-uncased"})
	if err != nil {
		log.Fatal(err)
	}
	defer filler.Close()
	request := infill.Request{
		Template: "the [MASK] was late .",
		Method:   infill.Chains{Sampler: samplers.Gibbs{}, Samples: 2, Steps: 4},
		Seed:     1,
	}
	var steps []string
	_, err = filler.Fill(context.Background(), request, func(p infill.Progress) {
		steps = append(steps, fmt.Sprintf("%d/%d warm-up %t", p.Step, p.Steps, p.WarmUp))
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Join(steps, "\n"))
	// Output:
	// 0/4 warm-up true
	// 1/4 warm-up true
	// 2/4 warm-up true
	// 3/4 warm-up false
	// 4/4 warm-up false
}

// An OptionError names the option that a user must change. Wrong templates are
// *tokenize.InputError, and constraints that leave nothing *ConstraintError.
func ExampleOptionError() {
	err := infill.Request{Template: "he had [MASK] me", Top: -1}.Check()
	var wrong *infill.OptionError
	fmt.Println(errors.As(err, &wrong), wrong.Option)
	// Output:
	// true top
}

// New makes a filler of a model that is open already, or of one of your own:
// whatever implements LanguageModel.
func ExampleNew() {
	bundle, err := models.Open("../testdata/mini-uncased")
	if err != nil {
		log.Fatal(err)
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	model, err := lm.Open(ctx, bundle, lm.Options{MaskID: tokenizer.MaskID()})
	if err != nil {
		log.Fatal(err)
	}
	filler := infill.New(model, tokenizer)
	defer filler.Close() // closes the model
	result, err := filler.Fill(ctx, infill.Request{Template: "she opened the [MASK] .", Top: 1}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Model.Name, result.Fills[0].Text)
	// Output:
	// mini-uncased she opened the door .
}
