// Command pictures turns a screen, captured from a terminal with its colours, into
// an SVG picture. docs/pictures/make-tui runs it.
//
//	tmux capture-pane -e -p | go run ./tui/pictures > screen.svg
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	light := flag.Bool("light", false, "a light background")
	flag.Parse()
	if err := convert(os.Stdin, os.Stdout, *light); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func convert(in io.Reader, out io.Writer, light bool) error {
	screen, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	write(w, string(screen), light)
	return w.Flush()
}
