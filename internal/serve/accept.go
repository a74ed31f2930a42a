package serve

import (
	"mime"
	"strconv"
	"strings"
)

// weight returns how much a client wants a media type, from 0 (not at all) to
// 1, by its header Accept (RFC 9110, section 12.5.1): by the narrowest range
// that has the type. Broken ranges are passed over.
func weight(accept, kind string) float64 {
	best := 0.0
	narrowest := 0
	family, _, _ := strings.Cut(kind, "/")
	ranks := map[string]int{"*/*": 1, family + "/*": 2, kind: 3}
	for _, part := range listed(accept) {
		name, parameters, err := mime.ParseMediaType(part)
		rank := ranks[name]
		if err != nil || rank <= narrowest {
			continue
		}
		q := 1.0
		text, given := parameters["q"]
		if given {
			q, err = strconv.ParseFloat(text, 64)
		}
		if err != nil || !(q >= 0 && q <= 1) {
			continue
		}
		best = q
		narrowest = rank
	}
	return best
}

// listed splits the value of a header at the commas outside quotes.
func listed(value string) (parts []string) {
	from := 0
	quoted := false
	escaped := false
	for i, r := range value {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quoted:
			escaped = true
		case r == '"':
			quoted = !quoted
		case r == ',' && !quoted:
			parts = append(parts, value[from:i])
			from = i + 1
		}
	}
	return append(parts, value[from:])
}
