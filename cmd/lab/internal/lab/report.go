package lab

import (
	"fmt"
	"math"
	"strconv"

	"infill/internal/object"
	"infill/samplers"
)

// A Report is what an experiment found.
type Report struct {
	Title  string       `json:"title"`
	Preset string       `json:"preset,omitempty"`
	Bias   []*biasCurve `json:"bias,omitempty"`
	Runs   []*Run       `json:"runs,omitempty"`
	// Definitions say what the numbers are.
	Definitions map[string]string `json:"definitions"`
}

func (run *Run) describe() string { return described(run.Kind, run.Parameters) }

func described(kind string, parameters []parameter) string {
	for _, p := range parameters {
		kind += ", " + p.Name + " " + p.Value
	}
	return kind
}

func definitions() map[string]string {
	return map[string]string{
		"log_rmse": "½ ln of the mean over chains and observables of (mean of the chain so far - exact mean)²",
		"ess": "effective sample size of one observable in one chain by Geyer's initial positive " +
			"sequence, mean over observables; still ones count as one draw",
		"paper_median": "N / (1 + 2 Σ (1 - k/N) ρ_k) up to the first negative ρ_k, median over the observables of " +
			"the first chain",
		"ess_per_second": "effective sample size of all chains together by second of stepping",
		"seconds":        secondsAre + " in the steps of all chains, one run, noisy",
		"evaluations": "states given to the target: energies, energies with gradients, single conditionals; they " +
			"cost differently",
		"standard_error": "between chains; absent for fewer than two chains, where it is unknown",
		"mmd2": "squared maximum mean discrepancy, V-statistic, kernel exp(-Hamming/slots), of the chains' " +
			"present states; its error is the jackknife's over chains",
	}
}

// JSON is the whole report, indented, with a line end.
func (r *Report) JSON() ([]byte, error) {
	text, err := object.EncodeIndent(r, "", "  ")
	return append(text, '\n'), err
}

// WithoutTimes removes all that depends on the clock, so that two reports of one seed are equal.
func (r *Report) WithoutTimes() {
	for _, run := range r.Runs {
		run.withoutTimes()
	}
	delete(r.Definitions, "ess_per_second")
	delete(r.Definitions, "seconds")
}

// Warnings are sentences about what limits the results.
func (r *Report) Warnings() []string {
	var list []string
	for _, run := range r.Runs {
		list = append(list, run.warnings()...)
	}
	return list
}

func (run *Run) withoutTimes() {
	run.Threads = 0
	run.Comparison.Seconds = nil
	for i := range run.Comparison.Rows {
		run.Comparison.Rows[i].AtSeconds = nil
	}
	for _, r := range run.Samplers {
		r.Timing = nil
		for i := range r.Curve {
			r.Curve[i].Seconds = nil
		}
	}
}

func orUndefined(x *float64) string {
	if x == nil {
		return "undefined"
	}
	return strconv.FormatFloat(*x, 'g', 3, 64)
}

func (run *Run) warnings() []string {
	var list []string
	if t := run.Truth.Run; t != nil {
		list = append(list, fmt.Sprintf("the exact means are estimates of a long run (%s, %d chains × %d steps): no "+
			"log RMSE below %.2f is known", t.Sampler, t.Chains, t.Steps, math.Log(t.StandardError)))
		if t.RHat == nil || *t.RHat > 1.01 {
			list = append(list, fmt.Sprintf("the chains of that run do not agree (split R-hat %s): its means may be "+
				"wrong by more", orUndefined(t.RHat)))
		}
	}
	for _, r := range run.Samplers {
		if samplers.Describe(r.Name).Interacting {
			list = append(list, r.Sampler+": its chains are particles that stand for the target jointly: log RMSE "+
				"and effective sample size of single ones say little")
			continue
		}
		if r.ESS != nil && r.ESS.Still > 0 {
			list = append(list, fmt.Sprintf("%s: %d of %d observables of a chain never changed and count as one draw "+
				"each: its effective sample size says little", r.Sampler, r.ESS.Still, r.ESS.Observables*run.Chains))
		} else if r.ESS != nil && r.ESS.RHat != nil && *r.ESS.RHat > 1.1 {
			list = append(list, fmt.Sprintf("%s: its chains disagree (split R-hat up to %.3g): its effective sample "+
				"size is too high", r.Sampler, *r.ESS.RHat))
		}
	}
	return list
}
