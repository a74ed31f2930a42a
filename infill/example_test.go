package infill_test

import (
	"context"
	"fmt"
	"log"

	"infill/infill"
)

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
