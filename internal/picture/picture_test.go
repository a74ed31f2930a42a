package picture

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"

	"infill/internal/check"
)

// The numbers at axes have no more digits than they need.
func TestTicks(t *testing.T) {
	p := plot.New()
	p.X.Min, p.X.Max = 0, 50
	p.Y.Min, p.Y.Max = -13.2, -0.4
	drawn := string(check.Must(SVG(p))(t))
	var labels []string
	for _, found := range regexp.MustCompile(`>(-?[0-9.e+]+)</text>`).FindAllStringSubmatch(drawn, -1) {
		labels = append(labels, found[1])
	}
	long := func(label string) bool { return strings.HasSuffix(label, "0") && strings.Contains(label, ".") }
	if len(labels) < 4 || slices.ContainsFunc(labels, long) {
		t.Errorf("the axes say %q", labels)
	}
}
