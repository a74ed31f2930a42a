// Package doctor is infill doctor.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/lm"
	"infill/models"
)

// doctorOptions are the flags of the examination.
type doctorOptions struct {
	streams *terminal.Streams
	Format  string `flag:"format" choices:"text,json" help:"form of the result"`
	model   string
}

// finding is one thing that was looked at.
type finding struct {
	Check  string `json:"check"`
	Status status `json:"status"`
	Detail string `json:"detail"`
	// Mend says what to do about it, "" if there is nothing to do.
	Mend string `json:"mend,omitempty"`
}

// status says how a finding is.
type status string

const (
	statusGood    status = "good"
	statusNote    status = "note"    // could be otherwise, and need not
	statusMissing status = "missing" // will be fetched when it is needed
	statusBad     status = "bad"     // infill cannot work like this
)

// NewCmd makes infill doctor.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &doctorOptions{streams: s, Format: "text"}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what is installed, found and usable, and how to mend what is not",
		Args:  cli.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cli.Bind(cmd, o)
	cmd.Flags().StringVarP(&o.model, "model", "m", "", cli.ModelHelp)
	cli.CompleteModel(cmd)
	return cmd
}

// run prints which parts are installed, found and usable.
func run(ctx context.Context, o *doctorOptions) error {
	findings := examine(ctx, o.model)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := printFindings(o.streams, o.Format, findings); err != nil {
		return err
	}
	for _, f := range findings {
		if f.Status == statusBad {
			return cli.ErrReported
		}
	}
	return nil
}

func printFindings(s *terminal.Streams, format string, findings []finding) error {
	if format == "json" {
		return cli.WriteJSON(s.Out, findings)
	}
	styles := map[status]ansi.Style{
		statusGood:    ansi.NewStyle(ansi.AttrGreenForegroundColor),
		statusNote:    ansi.NewStyle(ansi.AttrFaint),
		statusMissing: ansi.NewStyle(ansi.AttrYellowForegroundColor),
		statusBad:     ansi.NewStyle(ansi.AttrBold, ansi.AttrRedForegroundColor),
	}
	var rows [][]string
	for _, f := range findings {
		pad := strings.Repeat(" ", len(statusMissing)-len(f.Status))
		rows = append(rows, []string{f.Check, styles[f.Status].Styled(string(f.Status)) + pad, cli.OneLine(f.Detail)})
		if f.Mend != "" {
			rows = append(rows, []string{"", "", "to mend: " + cli.OneLine(f.Mend)})
		}
	}
	_, err := io.WriteString(s.Styled(), cli.RenderTable(0, nil, rows, -1))
	return err
}

// examine looks at everything that infill needs, in the order it needs it.
func examine(ctx context.Context, name string) []finding {
	findings := []finding{
		{Check: "program", Status: statusGood,
			Detail: fmt.Sprintf("infill %s, %s, %s/%s", infill.Version(), runtime.Version(), runtime.GOOS,
				runtime.GOARCH)},
		{Check: "cores", Status: statusGood,
			Detail: fmt.Sprintf("%d in use of %d", runtime.GOMAXPROCS(0), runtime.NumCPU())},
		examineCache(),
	}
	bundle, model := examineModel(name)
	found, libraries := examineLibraries()
	findings = append(append(findings, model), libraries...)
	if bundle == nil || !found.Usable {
		return findings
	}
	return append(findings, examineRun(ctx, name, found.Path), examineCUDA(ctx, found))
}

// examineCache reports whether files can be placed in the cache folder.
func examineCache() finding {
	f := finding{Check: "cache folder", Mend: "set " + models.CacheVariable + " to a folder that can be written"}
	root, err := models.CacheDir()
	if err == nil {
		f.Detail = root
		err = os.MkdirAll(root, 0o755)
	}
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(root, ".doctor-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		f.Status, f.Detail = statusBad, err.Error()
		return f
	}
	f.Status, f.Mend = statusGood, ""
	return f
}

// examineModel opens a bundle, which verifies every file of it.
func examineModel(name string) (*models.Bundle, finding) {
	f := finding{Check: "model"}
	bundle, err := models.Open(name)
	if err != nil {
		f.Status, f.Detail = statusBad, err.Error()
		return nil, f
	}
	f.Status = statusGood
	f.Detail = fmt.Sprintf("%s in %s, sha256 %.12s", bundle.Name, bundle.Dir, bundle.SHA256)
	return bundle, f
}

// examineLibraries looks for onnxruntime at every place; found is the library that infill loads.
func examineLibraries() (found lm.Library, findings []finding) {
	places, err := lm.SurveyLibraries()
	if err != nil {
		return found, []finding{{Check: "onnxruntime", Status: statusBad, Detail: err.Error()}}
	}
	last := finding{Check: "onnxruntime", Status: statusMissing, Mend: "run `infill setup`, or name a library in " +
		"INFILL_ONNXRUNTIME", Detail: "no library that serves; it is fetched when it is first needed"}
	for _, place := range places {
		f := finding{Check: "onnxruntime: " + place.Place, Status: statusGood,
			Detail: cli.VersionOf(place) + ", " + place.Path}
		switch {
		case place.Usable && found.Path == "" && last.Status != statusBad:
			found, last = place, finding{Check: last.Check, Status: statusGood, Detail: f.Detail}
		case place.Usable:
		case place.Named: // it is taken or refused, never passed over
			last = finding{Check: last.Check, Status: statusBad, Detail: place.Place + " names no library that serves",
				Mend: "correct the variable, or unset it"}
			fallthrough
		default:
			f.Status, f.Detail = statusNote, place.Path+": "+place.Reason
		}
		findings = append(findings, f)
	}
	return found, append(findings, last)
}

// examineRun fills a template, which takes everything together.
func examineRun(ctx context.Context, model, libraryPath string) finding {
	f := finding{Check: "a fill"}
	filler, err := infill.Open(infill.OpenOptions{Model: model, Device: "cpu",
		FindLibrary: func(context.Context) (string, error) { return libraryPath, nil }})
	if err == nil {
		defer filler.Close()
		var result *infill.Result
		if result, err = filler.Fill(ctx, "this is a [MASK] .", infill.DefaultOptions(), nil); err == nil {
			f.Status, f.Detail = statusGood,
				fmt.Sprintf("%q in %.2f s on %s", result.Fills[0].Text, result.Stats.Seconds, result.Stats.Device)
			return f
		}
	}
	f.Status, f.Detail = statusBad, err.Error()
	f.Mend = "do what it says; if it says nothing to do, report it with the output of infill doctor --format json"
	return f
}

// examineCUDA reports whether a GPU could be used.
func examineCUDA(ctx context.Context, library lm.Library) finding {
	f := finding{Check: "CUDA"}
	if err := lm.FindGPU(); err != nil {
		f.Status, f.Detail = statusNote, "not usable, nothing to fetch: "+err.Error()
		return f
	}
	device, err := lm.CUDADevice(ctx, library.Path)
	if err != nil {
		// Not a fault: --device auto runs on the CPU.
		f.Status, f.Detail = statusNote, "not usable: "+err.Error()
		return f
	}
	f.Status, f.Detail = statusGood, device
	return f
}
