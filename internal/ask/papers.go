package ask

import (
	"fmt"

	"infill/infill"
	"infill/lm"
	"infill/samplers"
)

// sqrt is the balancing function of the papers' proposals on text.
const sqrt = samplers.SqrtBalance

// papers are the options that the papers have on text, by the sampler: the whole
// vocabulary, proposals from the square root of the whole gradient, and no warm-up,
// unless the sampler adapts. The step sizes are those of the authors' code for
// categorical variables, because the paper gives no step sizes for text.
var papers = []infill.Chains{
	{Sampler: samplers.Gibbs{}, Candidates: infill.None, WarmUp: infill.None},
	{Sampler: samplers.MLMMetropolis{}, Candidates: infill.None, WarmUp: infill.None},
	{Sampler: samplers.GWG{}, Candidates: infill.None, WarmUp: infill.None, Balance: sqrt, Gradient: full},
	{Sampler: samplers.GWGX{}, Candidates: infill.None, WarmUp: infill.None, Balance: sqrt, Gradient: full},
	{Sampler: samplers.PathAuxiliary{}, Candidates: infill.None, WarmUp: infill.None, Balance: sqrt, Gradient: full},
	{Sampler: samplers.DULA{}, StepSize: 0.1, Candidates: infill.None, WarmUp: infill.None, Balance: sqrt,
		Gradient: full},
	{Sampler: samplers.DMALA{}, StepSize: 0.2, Candidates: infill.None, WarmUp: infill.None, Balance: sqrt,
		Gradient: full},
	{Sampler: samplers.Cyclical{}, Candidates: infill.None, Gradient: full},
	{Sampler: samplers.AdaptiveDMALA{}, Candidates: infill.None, Balance: sqrt, Gradient: full},
	{Sampler: samplers.DLMC{}, Candidates: infill.None, Balance: sqrt, Gradient: full},
	{Sampler: samplers.EulerDLMC{}, Candidates: infill.None, Balance: sqrt, Gradient: full},
}

const full = infill.Gradient(lm.Full)

// paper returns the papers' options of a sampler, but for the sampler.
func paper(name string) (given []Given, err error) {
	for _, c := range papers {
		if c.Sampler.Describe().Name != name {
			continue
		}
		c.Sampler = nil
		for _, fact := range options.NonZero(c) {
			given = append(given, MustGive(fact.Name, fact.Text))
		}
		return given, nil
	}
	return nil, fmt.Errorf("a sampler that the papers run on text, which %s is not: leave paper out", name)
}
