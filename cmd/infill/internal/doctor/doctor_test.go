package doctor

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"infill/cmd/infill/internal/clitest"
	"infill/cmd/infill/internal/terminal"
)

func findings() []finding {
	return []finding{
		{Check: "program", Status: statusGood, Detail: "infill 1.0"},
		{Check: "cache folder", Status: statusBad, Detail: "mkdir /x: read-only\nfile system",
			Mend: "set INFILL_CACHE"},
		{Check: "CUDA", Status: statusNote, Detail: "not usable: \x1b[2Jno driver"},
		{Check: "onnxruntime", Status: statusMissing, Detail: "none"},
	}
}

func TestDoctorFlags(t *testing.T) {
	var got *doctorOptions
	keep := func(_ context.Context, o *doctorOptions) error { got = o; return nil }
	if err := clitest.Parse(t, NewCmd(&terminal.Streams{}, keep), "--format json -m DIR"); err != nil {
		t.Fatal(err)
	}
	clitest.CompareOptions(t, doctorOptions{format: "json", model: "DIR"}, *got)
	clitest.CheckUsage(t, clitest.Parse(t, NewCmd(&terminal.Streams{}, keep), "who"), `unexpected argument "who"`)
	clitest.CheckUsage(t, clitest.Parse(t, NewCmd(&terminal.Streams{}, keep), "--format csv"),
		`--format: "csv" is not one of text, json`)
}

func TestDoctorGoldens(t *testing.T) {
	for name, width := range map[string]int{"pipe.txt": 0, "terminal-80.txt": 80, "array.json": 0} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			format := map[string]string{".txt": "text", ".json": "json"}[filepath.Ext(name)]
			if err := printFindings(clitest.TerminalOf(&out, width), format, findings()); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, "doctor-"+name, out.Bytes())
		})
	}
}

func TestDoctorTellsErrors(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		if printFindings(&terminal.Streams{Out: clitest.Failing{}}, format, findings()) == nil {
			t.Errorf("%s: no error", format)
		}
	}
}
