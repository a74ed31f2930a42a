package infill

// Result is what filling one template gives. Its JSON is part of the command's
// contract: fields may be added, never renamed.
type Result struct {
	// Format is the version of this form, 3; the first had no such field.
	Format   int    `json:"format"`
	Template string `json:"template"`
	// Together are the further templates that were filled alike, see Options.Together.
	Together  []string `json:"together,omitempty"`
	Model     Model    `json:"model"`
	Signature string   `json:"signature"`
	// Seed is that of the random numbers; nil where none was needed.
	Seed *uint64 `json:"seed,omitempty"`
	// Method tells where probabilities come from: MethodSearch, MethodDraws, MethodExact or
	// MethodImportance where the sampler is Auto, and else the sampler's name; "" where the
	// fills follow no known law.
	Method string `json:"method"`
	// Proven tells, of MethodSearch, that no fill that the blanks may take is likelier than
	// those listed, and LeftOutAtMost bounds the probability of every other fill.
	Proven        *bool    `json:"proven,omitempty"`
	LeftOutAtMost *float64 `json:"left_out_at_most,omitempty"`
	Fills         []Fill   `json:"samples"`
	// Marginals are the likeliest values of each blank, whatever the others hold,
	// [blanks][values], of all numbers of pieces where it is MethodSearch; nil where a named
	// sampler filled, and where another joint has several lengths.
	Marginals [][]Marginal `json:"marginals,omitempty"`
	Stats     Stats        `json:"stats"`
	// Unfinished tells that the run was interrupted: these are the likeliest fills by then.
	Unfinished bool `json:"unfinished,omitempty"`
	// Warnings are sentences for the user about this result.
	Warnings []string `json:"warnings"`
	// Windows are the parts of a long text that the model saw; nil where it saw all.
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
	// Probability has the standard error StandardError, 0 where it has none. Of MethodSearch
	// it is what the beginnings that were followed hold, and AtMost what it may be at most.
	Probability   float64  `json:"probability"`
	StandardError float64  `json:"probability_error"`
	AtMost        *float64 `json:"probability_at_most,omitempty"`
}

// Fill is one ranked fill: what all blanks hold.
type Fill struct {
	Rank int    `json:"rank"` // from 1
	Text string `json:"text"` // the template with the blanks filled
	// Together are the further templates, filled alike.
	Together []string `json:"together,omitempty"`
	// Values holds what each blank holds as it stands in Text, [blanks].
	Values []string `json:"fills"`
	// Spans holds the byte range of each of Values in Text, [blanks].
	Spans    [][2]int `json:"spans"`
	TokenIDs []int    `json:"token_ids"` // [slots]
	// Probability is that of the fill among all fills of the candidates, and
	// ProbabilityError its standard error, 0 where it is enumerated. Of a named sampler
	// they are the share of the draws and its error between chains, which a single
	// chain has none of. nil where there is no such number.
	Probability      *float64 `json:"probability"`
	ProbabilityError *float64 `json:"probability_error"`
	// LogLikelihood is U of the fill, in nats. The temperature enters where the fills are
	// proven or drawn from the chain rule, whose conditionals it changes, and nowhere else.
	LogLikelihood float64 `json:"log_likelihood"`
	// Pieces is the number of tokens of each blank, [blanks], where the template
	// has several lengths, or the only blank may take words of several pieces and some
	// were found, or several windows were filled; nil else.
	Pieces []int `json:"pieces,omitempty"`
	// Score compares fills of several lengths, in nats a word; nil where there is
	// one. It is the mean, over the words of the fills, of the word's
	// log-probability from left to right: the sum over its pieces of the
	// log-probability of the piece with it and the rest of its blank masked, or the
	// rest of its word alone (Options.LengthScore; Kauf and Ivanova, ACL 2023). So a
	// fill gains neither by being cut into more pieces nor by having fewer words.
	Score *float64 `json:"score,omitempty"`
	// The counts of visits below are a named sampler's.
	//
	// Count tells how often the fill was drawn among the Stats.Draws draws that
	// were ranked: all states after the warm-up, or the final states alone
	// where Options.Rank is "final".
	Count int `json:"count,omitempty"`
	// Frequency is Count over the draws, those of its own length where there are
	// several; its standard error is taken between chains and nil where one or two
	// chains alone met the fill, and for a single chain. Fills that follow no known
	// law (Stats.Law) have none: 0 and nil.
	Frequency              float64  `json:"frequency,omitempty"`
	FrequencyStandardError *float64 `json:"frequency_standard_error,omitempty"`
	// FrequencyInterval holds the fill's probability in 95 % of cases where the
	// chains have converged: Wilson's, over EffectiveDraws.
	FrequencyInterval *[2]float64 `json:"frequency_interval,omitempty"`
	// SplitRHat tells whether the chains agree on the frequency, as in Stats; beyond
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
	// Law is NoLaw where the fills are the finds of a search, "" where they are
	// draws from what the sampler targets.
	Law string `json:"law,omitempty"`
	// Joint is what U is, and Order the chain rule's.
	Joint Joint `json:"joint"`
	Order Order `json:"order,omitempty"`
	// PLLTemperature is what was fitted to the model for JointPLL, and multiplies the
	// temperature that was asked for; nil where none was, or did not enter.
	PLLTemperature *float64 `json:"pll_temperature,omitempty"`
	// Candidates are how many tokens, or words, each slot may take, [slots]; nil where
	// there are several lengths.
	Candidates []int `json:"candidates,omitempty"`
	// CandidatesProbability is what they hold of the probability of all fills over the
	// whole vocabulary, nil where it is not known; ListedProbability is what the fills
	// of the result hold of that of the candidates.
	CandidatesProbability *float64 `json:"candidates_probability,omitempty"`
	ListedProbability     *float64 `json:"listed_probability,omitempty"`
	// LogNormaliser is the logarithm of the sum of exp(U/T) over the candidates' fills,
	// and NormaliserError the relative standard error of that sum; nil where a named
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
	// relative error. Both are nil where they are not defined (fewer than 4 draws a chain,
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

// NoLaw is the Stats.Law of fills that a search or a decoding found.
const NoLaw = "none known"

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

// Progress is a moment of a run. It is the receiver's own: nothing in it
// changes afterwards.
//
// Where the sampler is Auto there are no chains to hear of: Step and Steps tell how far
// the answer is.
type Progress struct {
	Template string
	// Result makes what is known so far, while the observer runs, and once more, of the last
	// step, when Fill has returned; nil where nothing is known. Of chains it lists the best
	// fills, up to 2,000, whatever Options.Top is, with the values of blanks as Marginals;
	// a log-likelihood that the sampler did not need is NaN until Fill has returned.
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
	// LogLikelihoods is U of each chain in nats, [chains]; NaN where the
	// sampler does not need it.
	LogLikelihoods []float64
	// Accepted tells which chains took their proposal, and Changed how many of
	// their slots changed, [chains]; nil at step 0.
	Accepted []bool
	Changed  []int
	// StepSize is α at this step, 0 for samplers that have none.
	StepSize float64
}
