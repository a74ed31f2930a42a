package lab_test

import (
	"context"
	"fmt"
	"log"

	"infill/cmd/lab/internal/lab"
)

// Three samplers on one Ising model, with what a step of each evaluates.
func ExampleCompare() {
	ctx := context.Background()
	problem, err := lab.NewProblem(ctx, "ising:size=3x3,coupling=0.1,field=0.2", 1)
	if err != nil {
		log.Fatal(err)
	}
	options := lab.DefaultOptions()
	options.Seed = 1
	if options.Samplers, err = lab.ParseSpecs("gibbs,lb-1,dmala:step-size=0.8"); err != nil {
		log.Fatal(err)
	}
	report, err := lab.Compare(ctx, problem, options)
	if err != nil {
		log.Fatal(err)
	}
	run := report.Runs[0]
	fmt.Println("exact means:", run.Truth.Method)
	for _, r := range run.Samplers {
		fmt.Printf("%s: %.0f evaluations a step, log RMSE %.1f\n", r.Sampler, r.Evaluations.PerStep, r.LogRMSE)
	}
	// Output:
	// exact means: transfer matrix
	// gibbs: 1 evaluations a step, log RMSE -2.4
	// lb-1: 10 evaluations a step, log RMSE -2.9
	// dmala:step-size=0.8: 1 evaluations a step, log RMSE -3.0
}
