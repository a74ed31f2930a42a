package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/fills"
	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/safetensors"
)

// idx returns images in the form IDX, all with the same grey.
func idx(images, side int, grey byte) string {
	head := []byte{0, 0, 8, 3}
	for _, n := range []int{images, side, side} {
		head = binary.BigEndian.AppendUint32(head, uint32(n))
	}
	return string(append(head, bytes.Repeat([]byte{grey}, images*side*side)...))
}

// machine returns an RBM of two units a side, all weights and biases w.
func machine(t *testing.T, w float32) string {
	t.Helper()
	part := func(name string, shape ...int) safetensors.Data {
		return safetensors.Data{Name: name, DType: "F32", Shape: shape, Content: func() ([]byte, error) {
			numbers := make([]float32, 1<<len(shape))
			for i := range numbers {
				numbers[i] = w
			}
			return binary.Append(nil, binary.LittleEndian, numbers)
		}}
	}
	var b bytes.Buffer
	check.OK(t, safetensors.Write(&b, nil, []safetensors.Data{part("weights", 2, 2), part("hidden", 2),
		part("visible", 2)}))
	return b.String()
}

// TestInputs: a saved result belongs to the content of its files. For each
// option that names a file, a run on the same file reads what is there, and a
// run on a changed file is refused.
func TestInputs(t *testing.T) {
	const regression = "x,y\n1,1\n2,3\n3,2\n4,5\n5,"
	const potts = "site,state,other,state,coupling\n1,1,2,1,1\n1,2,2,2,"
	alignment := strings.Repeat(">a\nACD\n>b\nACC\n", 5)
	training := []string{"updates", "2", "repeats", "1"}
	steps := []string{"chains", "2", "steps", "6", "warm-up", "2"}
	images := append([]string{"samplers", "gwg", "steps", "1", "features", "2", "blocks", "1", "downsampling", "1",
		"ais-steps", "3", "ais-chains", "3", "buffer", "5", "batch", "5"}, training...)
	vae := append([]string{"estimators", "arm", "structures", "linear", "bits", "2", "particles", "2"}, training...)
	couplings := append([]string{"samplers", "gibbs", "steps", "1"}, training...)
	text := "the old man sat by the door and said nothing .\nthe young man stood by the wall and said nothing .\n"
	for _, c := range []struct {
		study, option string
		before, after string // contents
		settings      []string
	}{
		{"table", "energies", "a,u\n0,1\n1,2\n", "a,u\n0,1\n1,3\n", steps},
		{"ising", "couplings", "a,b,c\n1,2,0.1\n", "a,b,c\n1,2,0.2\n", steps},
		{"potts", "couplings", potts + "1\n", potts + "2\n", append([]string{"samplers", "gibbs"}, steps...)},
		{"rbm", "weights", machine(t, 1), machine(t, 2), append([]string{"reference-samples", "10"}, steps...)},
		{"rbm", "data", idx(6, 3, 0), idx(6, 3, 255), append([]string{"updates", "2", "hidden", "2",
			"reference-samples", "10"}, steps...)},
		{"networks", "data", regression + "4\n", regression + "6\n", []string{"samplers", "gwg", "hidden", "2",
			"chains", "2", "steps", "2", "repeats", "1"}},
		{"learn images", "data", idx(6, 4, 0), idx(6, 4, 255), images},
		{"learn images", "test", idx(6, 8, 0), idx(6, 8, 255), images},
		{"learn text", "data", strings.Repeat(text, 3), strings.Repeat(text, 4), append([]string{"words", "13",
			"samplers", "gwg", "steps", "1", "ais-steps", "3", "ais-chains", "3", "buffer", "5", "batch", "5"},
			training...)},
		{"learn contacts", "alignment", alignment, alignment + ">c\nAAA\n",
			append([]string{"contacts", labtest.Saved(t, "c", "1 3\n")}, couplings...)},
		{"learn contacts", "contacts", "1 3\n", "1 2\n",
			append([]string{"alignment", labtest.Saved(t, "a", alignment)}, couplings...)},
		{"arm vae", "data", idx(6, 3, 0), idx(6, 3, 255), vae},
		{"arm vae", "test", idx(6, 8, 0), idx(6, 8, 255), vae},
		{"calibration", "texts", text, strings.Replace(text, "door", "fire", 1),
			[]string{"sentences", "2", "blanks", "1"}},
	} {
		path, folder := labtest.Saved(t, "input", c.before), t.TempDir()
		run := func() (*lab.StudyReport, error) {
			return study(t, c.study, append([]string{c.option, path}, c.settings...)...).Run(t.Context(),
				lab.StudyOptions{Seed: 1, Folder: folder})
		}
		first, err := run()
		if err != nil {
			t.Errorf("%s --%s: %v", c.study, c.option, err)
			continue
		}
		again, err := run()
		if err != nil || again.Signature != first.Signature {
			t.Errorf("%s --%s, the same file: %v", c.study, c.option, err)
		}
		check.OK(t, os.WriteFile(path, []byte(c.after), 0o600))
		var option *lab.OptionError
		_, err = run()
		if !errors.As(err, &option) || !strings.Contains(err.Error(), "another experiment ("+c.option+":") {
			t.Errorf("%s --%s, a changed file: error %v", c.study, c.option, err)
		}
		if !strings.Contains(first.Signature, "|"+c.option+":"+path+"@") && c.study != "calibration" {
			t.Errorf("%s --%s: signature %s", c.study, c.option, first.Signature)
		}
	}
	// Targets of other commands read their files in the same way.
	for _, name := range []string{"ais", "arm gradients"} {
		path, folder := labtest.Saved(t, "input", "a,b,c\n1,2,0.1\n"), t.TempDir()
		run := func() error {
			settings := []string{"target", "ising:couplings=" + path, "repeats", "1"}
			if name == "ais" {
				settings = append(settings, "steps", "3")
			} else {
				settings = append(settings, "estimates", "20")
			}
			_, err := study(t, name, settings...).Run(t.Context(), lab.StudyOptions{Seed: 1, Folder: folder})
			return err
		}
		check.OK(t, run())
		check.OK(t, os.WriteFile(path, []byte("a,b,c\n1,2,0.2\n"), 0o600))
		if err := run(); err == nil || !strings.Contains(err.Error(), "another experiment (couplings:") {
			t.Errorf("%s, a changed file: error %v", name, err)
		}
	}
	text = labtest.Studied(t, study(t, "text", "candidates", "3", "samplers", "gibbs", "chains", "2", "steps", "6",
		"warm-up",
		"2"), lab.StudyOptions{Seed: 1}).Signature
	if !strings.Contains(text, "|model:small-uncased@c09624027b8c|") {
		t.Errorf("text: no SHA-256 of the model in %s", text)
	}
	preset := chains.NewPreset()
	for flag, value := range map[string]string{"preset": "dlp-figure-3", "chains": "2", "steps": "6"} {
		check.OK(t, preset.Flags.Set(flag, value))
	}
	text = labtest.Studied(t, preset, lab.StudyOptions{Seed: 1}).Signature
	if !strings.Contains(text, "|preset:dlp-figure-3@") {
		t.Errorf("a preset: no SHA-256 of its samplers and targets in %s", text)
	}
	missing := filepath.Join(t.TempDir(), "none")
	if _, err := study(t, "table", "energies", missing).Run(t.Context(), lab.StudyOptions{}); err == nil ||
		!strings.Contains(err.Error(), "energies: "+missing) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestValidation: the numbers are those of the update that the validation
// images choose, as if the training had ended there.
func TestValidation(t *testing.T) {
	path := labtest.GreyImages(t)
	others := labtest.SmallImages(t, 0, 255, 255, 0) // which the training never sees, and so forgets
	for _, c := range []struct{ study, settings, number string }{
		{"arm vae", "structures linear estimators arm bits 3 particles 5 learning-rate 0.5 repeats 1 " +
			"data " + path, "nll"},
		{"learn images", "samplers gwg steps 2 batch 5 buffer 9 learning-rate 0.3 features 3 blocks 1 downsampling 0 " +
			"average 0 warm-up 0 ais-steps 20 ais-chains 9 repeats 1 data " + path, "test-ll"},
	} {
		whole := study(t, c.study, strings.Fields(c.settings+" updates 60 validation "+others)...)
		chosen := labtest.Studied(t, whole, lab.StudyOptions{Seed: 3}).Cells[0].Numbers
		at := int(chosen["best-update"])
		if at < 1 || at >= 60 {
			t.Errorf("%s: update %d of 60 is chosen: the test needs an earlier one", c.study, at)
		}
		short := study(t, c.study, strings.Fields(c.settings+" updates "+strconv.Itoa(at))...)
		ended := labtest.Studied(t, short, lab.StudyOptions{Seed: 3}).Cells[0].Numbers
		if _, known := ended["best-update"]; known || ended[c.number] != chosen[c.number] {
			t.Errorf("%s: %v at update %d, and %v where the training ends there", c.study, chosen[c.number], at,
				ended[c.number])
		}
		_, err := study(t, c.study, "validation", path, "data", "digits").Run(t.Context(), lab.StudyOptions{})
		if err == nil || !strings.Contains(err.Error(), "validation: images of 2 × 2 pixels, and those of the "+
			"data have 8") {
			t.Errorf("%s: validation images of another size: %v", c.study, err)
		}
	}
}

// TestBadSettings: every refusal names its option, and says what would do.
func TestBadSettings(t *testing.T) {
	for _, bad := range []struct{ name, flag, value, want string }{
		{"arm gradients", "target", "square:x", `"x" is not a finite number`},
		{"arm gradients", "target", "ising:size=5", "at most 16"},
		{"learn images", "data", "none", "name a file"},
		{"learn images", "ais-sampler", "dula", "not one exact sampler"},
		{"learn images", "downsampling", "5", "5 of 4 blocks"},
		{"learn ising", "samplers", "all", "all"},
		{"learn ising", "batch", "300", "a batch moves 300 of them"},
		{"learn contacts", "size", "1x6", "two rows and columns at least"},
		{"learn ising", "size", "100x100", "at most 2048 are learnt"},
	} {
		var option *lab.OptionError
		_, err := study(t, bad.name, bad.flag, bad.value).Run(t.Context(), lab.StudyOptions{})
		if !errors.As(err, &option) || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s --%s %s: %v", bad.name, bad.flag, bad.value, err)
		}
	}
}

func study(t *testing.T, name string, settings ...string) *lab.Study {
	t.Helper()
	return labtest.Study(t, slices.Concat(papersStudies(), fills.Studies()), name, settings...)
}
