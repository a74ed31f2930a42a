package tui_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"infill/infill"
	"infill/tui"
)

// A program shows the screen with a model of its own choice. Validate tells
// wrong options before the terminal is taken.
func ExampleConfig() {
	config := tui.Config{
		Template: "She opened the [MASK] and looked [MASK] .",
		Options:  []string{"top=5", "fill=any"},
		Model:    "small-uncased",
		Theme:    "auto",
		Input:    os.Stdin,
		Output:   os.Stdout,
		Open: func(_ context.Context, model string) (tui.Filler, error) {
			return infill.Open(infill.OpenOptions{Model: model})
		},
	}
	err := config.Validate()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready for tui.Run")
	// Output:
	// ready for tui.Run
}

// The error names the option, so that a program can say where it came from.
func ExampleConfig_Validate() {
	err := tui.Config{Options: []string{"top=none"}}.Validate()
	var wrong *infill.OptionError
	fmt.Println(errors.As(err, &wrong), wrong.Option)
	fmt.Println(tui.Config{Options: []string{"topmost=5"}}.Validate())
	// Output:
	// true top
	// topmost: there is no such option
}
