package papers

import (
	"slices"
	"sync"

	"infill/cmd/lab/internal/lab"
)

// A Run is a stored result with the command that makes it. The head of
// runs.yaml says what each field is.
type Run struct {
	Name    string
	Command string
	Before  string
	Small   string
	Random  bool
	NotRun  string `json:"not-run"`
	Needs   string
	Takes   string
	Sizes   string
	Ratios  []Ratio // none if the result has the paper's sizes
}

// A Ratio is a size of the paper over that of the results.
type Ratio struct {
	Name  string
	Paper float64
	Here  float64 // of the results; 0 if their signature has it by its name
}

var Runs = sync.OnceValue(func() []Run { return lab.Own[[]Run](runsFile) })

func RunOf(name string) (Run, bool) {
	list := Runs()
	at := slices.IndexFunc(list, func(r Run) bool { return r.Name == name })
	if at < 0 {
		return Run{}, false
	}
	return list[at], true
}
