package eval

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestPlot: a plot is XML with the name of each method that has the score.
func TestPlot(t *testing.T) {
	o, _ := small(t)
	results := run(t, o)
	picture, err := results.Plot(PlotScore)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range results.Methods {
		if !strings.Contains(string(picture), ">"+m.Method+"<") {
			t.Errorf("the plot does not name %s", m.Method)
		}
	}
	lines := xml.NewDecoder(strings.NewReader(string(picture)))
	for err == nil {
		_, err = lines.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	_, err = results.Plot("nonsense")
	if err == nil || !strings.HasPrefix(err.Error(), `no score is called "nonsense": there are self_bleu, `) {
		t.Error(err)
	}
}
