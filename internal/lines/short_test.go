package lines

import (
	"strings"
	"testing"
)

// TestShort: a long value in quotes loses its middle, what stands around it stays, and a
// message has a bound.
func TestShort(t *testing.T) {
	x := strings.Repeat("x", 900_000)
	cut := x[:97] + " … " + x[:97]
	const unknown = ": there is no such option"
	for message, want := range map[string]string{
		"":                                "",
		`slot: "red" is not a list`:       `slot: "red" is not a list`,
		`slot: "` + x + `" is not a list`: `slot: "` + cut + `" is not a list`,
		`no "` + x + `": write {"` + x + `": ...}`: `no "` + cut + `": write {"` + cut + `": ...}`,
		x + unknown: x[:747] + " … " + x[:747-len(unknown)] + unknown,
		`invalid character '"': write {"a": "` + x + `"}`: `invalid character '"': write {"a": "` + cut + `"}`,
		`"` + x: `"` + x[:746] + " … " + x[:747],
		`"` + strings.Repeat("的", 300) + `" here`: `"` + strings.Repeat("的", 32) + " … " +
			strings.Repeat("的", 32) + `" here`,
		`"` + strings.Repeat(`\"`, 300) + `" here`: `"` + strings.Repeat(`\"`, 97) + " … " +
			strings.Repeat(`\"`, 97) + `" here`,
		`"` + strings.Repeat(`\n`, 150) + `" here`: `"` + strings.Repeat(`\n`, 150) + `" here`,
	} {
		got := Short(message)
		if got != want {
			t.Errorf("%.80s: %.2000q, want %.2000q", message, got, want)
		}
		if again := Short(got); again != got {
			t.Errorf("%.80s: a second time it is %.2000q", message, again)
		}
	}
}
