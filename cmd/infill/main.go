// Command infill fills the blanks of a text, several of them jointly, with a
// masked language model. `infill help` lists its commands.
package main

import (
	"context"
	"os"

	"infill/cmd/infill/internal/terminal"
)

func main() { os.Exit(Main(context.Background(), terminal.System(), os.Args[1:])) }
