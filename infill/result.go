package infill

// Result is the result of filling one template. Its JSON is part of the command's contract: fields may be added,
// never renamed.
type Result struct {
	// Format is the version of this form, 3; the first had no such field.
	Format   int    `json:"format"`
	Template string `json:"template"`
	// Together are the further templates with the same fills, see Options.Together.
	Together  []string `json:"together,omitempty"`
	Model     Model    `json:"model"`
	Signature string   `json:"signature"`
	// Seed is the seed of the random numbers; nil if none were needed.
	Seed *uint64 `json:"seed,omitempty"`
	// Method says where probabilities come from: MethodSearch, MethodDraws, MethodExact or MethodImportance for
	// the sampler Auto, else the sampler's name; "" if the fills follow no known law.
	Method string `json:"method"`
	// Proven, under MethodSearch, reports whether no fill that the blanks may take is likelier than those
	// listed. LeftOutAtMost bounds the probability of every other fill.
	Proven        *bool    `json:"proven,omitempty"`
	LeftOutAtMost *float64 `json:"left_out_at_most,omitempty"`
	Fills         []Fill   `json:"samples"`
	// Marginals are the likeliest values of each blank, whatever the others hold, [blanks][values]. Under
	// MethodSearch they have all numbers of pieces. nil for a named sampler, and for several lengths under
	// another joint.
	Marginals [][]Marginal `json:"marginals,omitempty"`
	Stats     Stats        `json:"stats"`
	// Unfinished reports whether the run was interrupted: the fills are the likeliest found by then.
	Unfinished bool `json:"unfinished,omitempty"`
	// Warnings are sentences for the user about this result.
	Warnings []string `json:"warnings"`
	// Windows are the parts of a long text that the model saw; nil if it saw all.
	Windows []Window `json:"windows,omitempty"`
	// Blanks holds the byte range of every blank as typed, such as "[MASK]" or
	// "[MASK:2]", in Template.
	Blanks [][2]int `json:"-"`
	// Draws are U of the draws of each chain in nats, [chains][draws]; of Progress.Result alone.
	Draws [][]float64 `json:"-"`
}

// Marginal is a value of one blank with its probability.
type Marginal struct {
	Text     string `json:"text"`
	TokenIDs []int  `json:"token_ids"` // of the blank's slots
	// Probability has the standard error StandardError, 0 if it has none. Under MethodSearch it is the
	// probability that the followed beginnings have together, and AtMost is an upper bound.
	Probability   float64  `json:"probability"`
	StandardError float64  `json:"probability_error"`
	AtMost        *float64 `json:"probability_at_most,omitempty"`
}

// Fill is one ranked fill: what all blanks hold.
type Fill struct {
	Rank int    `json:"rank"` // from 1
	Text string `json:"text"` // the template with the blanks filled
	// Together are the further templates with the same fills.
	Together []string `json:"together,omitempty"`
	// Values holds what each blank holds, as Text has it, [blanks].
	Values []string `json:"fills"`
	// Spans holds the byte range of each of Values in Text, [blanks].
	Spans    [][2]int `json:"spans"`
	TokenIDs []int    `json:"token_ids"` // [slots]
	// Probability is the fill's probability, and ProbabilityError its standard error, 0 if the number is exact.
	// Of a named sampler they are the share of the draws and its error between chains; a single chain has no
	// error. nil if there is no such number.
	Probability      *float64 `json:"probability"`
	ProbabilityError *float64 `json:"probability_error"`
	// LogLikelihood is U of the fill, in nats. The temperature changes it only if the fills are proven or drawn
	// by the chain rule, whose conditionals it changes.
	LogLikelihood float64 `json:"log_likelihood"`
	// Pieces is the number of tokens of each blank, [blanks], if the blanks may have several, or if several windows
	// were filled; else nil.
	Pieces []int `json:"pieces,omitempty"`
	// Score compares fills of several lengths, in nats a word; nil for a single length. It is the mean
	// log-probability of the fills' words. A word's log-probability is the sum over its pieces, each with itself
	// and the rest of its blank masked, or of its word alone (Options.LengthScore; Kauf and Ivanova, ACL 2023).
	// So a fill gains neither by more pieces nor by fewer words.
	Score *float64 `json:"score,omitempty"`
	// The counts of visits below are a named sampler's.
	//
	// Count is how often the fill was drawn among the Stats.Draws draws that were ranked: all states after the
	// warm-up, or only the final states if Options.Rank is "final".
	Count int `json:"count,omitempty"`
	// Frequency is Count divided by the draws of its length. Its standard error comes from the spread between
	// chains; it is nil for a single chain, or if only one or two chains met the fill. Fills that follow no
	// known law (Stats.Law) have no frequency: 0 and nil.
	Frequency              float64  `json:"frequency,omitempty"`
	FrequencyStandardError *float64 `json:"frequency_standard_error,omitempty"`
	// FrequencyInterval holds the fill's probability in 95 % of cases where the
	// chains have converged: Wilson's, over EffectiveDraws.
	FrequencyInterval *[2]float64 `json:"frequency_interval,omitempty"`
	// SplitRHat reports whether the chains agree on the frequency, as in Stats; beyond
	// the first 100 fills there is none.
	SplitRHat *float64 `json:"split_r_hat,omitempty"`
	// EffectiveDraws is how many independent draws the draws are worth for the
	// frequency, or for U where that is less.
	EffectiveDraws *float64 `json:"effective_draws,omitempty"`
	// FinalCount tells how many chains ended with the fill.
	FinalCount int `json:"final_count,omitempty"`
}

// Stats tells how a result was sampled and what it took.
type Stats struct {
	Mode    Mode   `json:"mode,omitempty"`
	Sampler string `json:"sampler"`
	// Law is "none known" where the fills are the finds of a search, "" if they are
	// draws from what the sampler targets.
	Law string `json:"law,omitempty"`
	// Joint is the joint distribution, and Order the order of the chain rule.
	Joint Joint `json:"joint"`
	Order Order `json:"order,omitempty"`
	// PLLTemperature is what was fitted to the model for JointPLL, and multiplies the
	// temperature that was asked for; nil if none was, or did not enter.
	PLLTemperature *float64 `json:"pll_temperature,omitempty"`
	// Candidates are how many tokens, or words, each slot may take, [slots]; nil where
	// there are several lengths.
	Candidates []int `json:"candidates,omitempty"`
	// CandidatesProbability is what they hold of the probability of all fills over the
	// whole vocabulary, nil if it is not known; ListedProbability is what the fills
	// of the result hold of that of the candidates.
	CandidatesProbability *float64 `json:"candidates_probability,omitempty"`
	ListedProbability     *float64 `json:"listed_probability,omitempty"`
	// LogNormaliser is the logarithm of the sum of exp(U/T) over the candidates' fills,
	// and NormaliserError the relative standard error of that sum; nil if a named
	// sampler filled.
	LogNormaliser   *float64 `json:"log_normaliser,omitempty"`
	NormaliserError *float64 `json:"normaliser_error,omitempty"`
	// ParetoK is the shape of the tail of the weights of MethodImportance: above 0.7
	// errors are not to be believed.
	ParetoK *float64 `json:"pareto_k,omitempty"`
	Slots   int      `json:"slots"` // that move; those of one name count once
	Chains  int      `json:"chains"`
	Steps   int      `json:"steps"` // of each chain, warm-up included
	// StepSize is α after the warm-up, nil for samplers that have none, and where
	// adaptation found no penalty best (+Inf).
	StepSize *float64 `json:"step_size"`
	// AcceptanceRate is the mean over chains and steps after the warm-up; nil
	// for samplers that accept always, and where no step was made.
	AcceptanceRate          *float64 `json:"acceptance_rate"`
	AcceptanceStandardError *float64 `json:"acceptance_standard_error"`
	// ChangedSlotsPerStep is the mean number of slots that a step after the
	// warm-up changed.
	ChangedSlotsPerStep float64 `json:"changed_slots_per_step"`
	WarmUp              WarmUp  `json:"warm_up"`
	// Ladder holds the temperatures of parallel tempering, and SwapRates the share
	// of swaps taken between each two neighbours; nil without.
	Ladder    []float64 `json:"ladder,omitempty"`
	SwapRates []float64 `json:"swap_rates,omitempty"`
	// Draws is the number of states that were ranked, DistinctFills how many
	// different ones were among them.
	Draws         int `json:"draws"`
	DistinctFills int `json:"distinct_fills"`
	// MeanLogLikelihood is the mean U of the draws, in nats, with its standard
	// error between chains.
	MeanLogLikelihood              float64  `json:"mean_log_likelihood,omitempty"`
	MeanLogLikelihoodStandardError *float64 `json:"mean_log_likelihood_standard_error"`
	// SplitRHat of U is near 1 where the halves of all chains agree; above 1.3 the
	// result carries a warning. 1000 stands for more. EffectiveDraws is how many
	// independent draws of U the draws are worth; of MethodImportance it is Kong's
	// number, (Σ w)²/Σ w², or, where likely fills are summed exactly, 1 over the squared
	// relative error. Both are nil if they are not defined (fewer than 4 draws a chain,
	// or all the same), and where nothing was drawn from a known law; of several lengths
	// they are those of the worst.
	SplitRHat      *float64 `json:"split_r_hat,omitempty"`
	EffectiveDraws *float64 `json:"effective_draws,omitempty"`
	// EnergyEvaluations and GradientEvaluations count states, ModelRows token
	// sequences that went through the model.
	EnergyEvaluations   int64   `json:"energy_evaluations"`
	GradientEvaluations int64   `json:"gradient_evaluations"`
	ModelRows           int64   `json:"model_rows"`
	Device              string  `json:"device"`
	Seconds             float64 `json:"seconds"` // from the template to the ranking
	// Lengths holds the numbers of each combination of lengths where there are
	// several. The counts beside it are then sums, the rates and the mean
	// log-likelihood means over the lengths, and Slots that of the longest.
	Lengths []LengthStats `json:"lengths,omitempty"`
}

// noLaw is the Stats.Law of fills that a search or a decoding found.
const noLaw = "none known"

// LengthStats are the numbers of one combination of lengths.
type LengthStats struct {
	Pieces                         []int     `json:"pieces"` // [blanks]
	StepSize                       *float64  `json:"step_size"`
	AcceptanceRate                 *float64  `json:"acceptance_rate"`
	ChangedSlotsPerStep            float64   `json:"changed_slots_per_step"`
	SwapRates                      []float64 `json:"swap_rates,omitempty"`
	Draws                          int       `json:"draws"`
	DistinctFills                  int       `json:"distinct_fills"`
	MeanLogLikelihood              float64   `json:"mean_log_likelihood"`
	MeanLogLikelihoodStandardError *float64  `json:"mean_log_likelihood_standard_error"`
}

// WarmUp reports the warm-up apart from the sampling.
type WarmUp struct {
	Steps               int      `json:"steps"`
	AcceptanceRate      *float64 `json:"acceptance_rate"`
	ChangedSlotsPerStep float64  `json:"changed_slots_per_step"`
}

// Window tells which part of a long text the model saw when it filled some blanks.
type Window struct {
	Blanks [2]int `json:"blanks"` // the first and the last, from 1
	Tokens int    `json:"tokens"` // of the part, [CLS] and [SEP] included
}

// Progress is the state of a run at one step. It belongs to the receiver: nothing in it changes afterwards.
//
// With the sampler Auto there are no chains: Step and Steps are the progress of the search.
type Progress struct {
	Template string
	// Result returns what is known so far. Call it while the observer runs, or for the last step after Fill has
	// returned; nil if nothing is known. Of chains it lists up to 2,000 of the best fills, whatever Options.Top
	// is, and the values of blanks as Marginals. A log-likelihood that the sampler did not need is NaN until
	// Fill has returned.
	Result func() *Result
	Step   int // 0 is the initial states
	Steps  int // of the whole run
	// Pieces is the number of slots of each blank, [blanks]. Where the template has
	// several lengths, their runs follow each other, and a run's initial states
	// come with the number of the step before them.
	Pieces []int
	WarmUp bool
	// TokenIDs holds the tokens of the slots, [chains × slots].
	TokenIDs []int
	// LogLikelihoods is U of each chain in nats, [chains]; NaN if the
	// sampler does not need it.
	LogLikelihoods []float64
	// Accepted says which chains accepted their proposal, and Changed how many of their slots changed, [chains];
	// nil at step 0.
	Accepted []bool
	Changed  []int
	// StepSize is α at this step, 0 for samplers that have none.
	StepSize float64
}
