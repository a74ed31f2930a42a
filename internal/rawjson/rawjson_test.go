package rawjson_test

import (
	"strings"
	"testing"

	"infill/internal/rawjson"
)

// A text that the decoder would change is named; pairs, escaped backslashes and
// U+FFFD itself are not.
func TestWhole(t *testing.T) {
	const half = "half of a surrogate pair"
	for text, want := range map[string]string{
		`{"a": "plain"}`:               "",
		`"\ud83d\ude00 \uD83D\uDE00"`:  "",
		`"\\ud83d"`:                    "",
		`"\ufffd \u00e9 ` + "\ufffd\"": "",
		`"\ud83d"`:                     half,
		`"\uDE00"`:                     half,
		`"\ud83d\ud83d\ude00"`:         half,
		`"\ud83d \ude00"`:              half,
		`"\ud83d\\ude00"`:              half,
		`"\\\ud83d"`:                   half,
		`"\ufffd \ud83d"`:              half,
		`{"\ud83d": 1}`:                half,
		`"\ud83d`:                      half,
		`"\ud83`:                       "", // no JSON, which the decoder says
		"\"caf\xe9\"":                  "not valid UTF-8",
	} {
		if err := rawjson.Whole([]byte(text)); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
