package infill

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"infill/lm"
	"infill/samplers"
)

func newTable() []Option {
	return slices.Concat(blankOptions(), answerOptions(), moveOptions(), jointOptions())
}

func decodes(o *Options) bool { return o.Mode == ModeDecode }

// proven tells why an option of weighted draws says nothing of a search.
func proven(of string, given func(o *Options) bool) func(o *Options) string {
	return func(o *Options) string {
		if given(o) && (o.searches() || o.draws()) {
			return "the chain rule needs no " + of + ": leave it out, or take joint pll or a sampler"
		}
		return ""
	}
}

// blankOptions say what blanks may take.
func blankOptions() []Option {
	return []Option{
		listsOption(),
		speechOption(),
		bannedOption(),
		choice(Option{Name: "fill",
			Help: "what a blank may take: words; words and punctuation; or any token, word pieces included"},
			func(o *Options) *FillKind { return &o.Fill }, fillWords, fillTokens, FillAny),
		choice(Option{Name: "case", Values: []string{auto},
			Help: "give fills capitals as the text asks for them, or keep the model's letters"},
			func(o *Options) *Case { return &o.Case }, caseKeep),
		{
			Name: "distinct", Help: "no two blanks hold the same, but for those of one name",
			Values: []string{"false", "true"}, Closed: true,
			want: "true or false",
			get:  func(o *Options) string { return strconv.FormatBool(o.Distinct) },
			set: func(o *Options, text string) bool {
				distinct, err := strconv.ParseBool(text)
				o.Distinct = distinct
				return err == nil
			},
		},
		bounds(Option{Name: "characters", Unit: "characters",
			Help: "bounds on the characters of a fill: 3-8, 3-, -8 or 3",
			want: fmt.Sprintf("a number or a range from 1 to %d, as in 3, 3-8, 3- or -8", maxCharacters)},
			maxCharacters,
			func(o *Options) (low, high *int) { return &o.MinCharacters, &o.MaxCharacters }),
		bounds(Option{Name: "pieces", Unit: "pieces", Help: "number of pieces of every blank without a length of its " +
			"own: 2 or 1-3; bounds --slot as well; otherwise one, and up to three for the word of an only blank, " +
			"which 1- turns off",
			want: fmt.Sprintf("a number or a range from 1 to %d, as in 2 or 1-3", maxPieces)}, maxPieces,
			func(o *Options) (low, high *int) { return &o.MinPieces, &o.MaxPieces }),
		numeric(Option{Name: "window", Kind: "{auto|N}", Unit: "tokens",
			Help:   "tokens that the model sees of a long text at most, around the blanks",
			Values: strings.Fields("auto 64 128 256 512"), want: "a whole number of 16 or more, or auto"},
			func(o *Options) *int { return &o.Window }, auto, 0, 16, math.MaxInt),
		{
			Name: "context", Kind: "TEXT",
			Help: "a text that the model reads before each template: the sentence before, a definition, the original",
			want: "a text", get: func(o *Options) string { return o.Context },
			set: func(o *Options, text string) bool {
				o.Context = text
				return true
			},
		},
		togetherOption(),
	}
}

// answerOptions say what is asked for, and what it may cost.
func answerOptions() []Option {
	named := func(o *Options) bool { return !o.answers() }
	return []Option{
		choice(Option{Name: "mode", Help: "fills with their probabilities; a search for the likeliest by annealing; " +
			"or decoding by confidence, without chains"},
			func(o *Options) *Mode { return &o.Mode }, ModeSample, ModeBest, ModeDecode),
		{
			Name: "sampler", Kind: "NAME", Sampling: true, Values: samplerNames(),
			want: "one of " + strings.Join(samplerNames(), ", "),
			Help: "how probabilities are found: auto, or by chains that move as named, see infill help samplers; " +
				"one of " +
				strings.Join(samplerNames(), ", "),
			get: func(o *Options) string {
				if o.Sampler == Auto {
					return Auto
				}
				return o.own().String()
			},
			set:     func(o *Options, text string) bool { return o.read(text) == nil },
			explain: func(text string) error { return new(Sampling).read(text) },
			useless: []useless{{decodes, "uses none: leave it out"}},
			check: func(o *Options) string {
				if !slices.Contains(samplerNames(), o.Sampler) {
					return fmt.Sprintf("%q is not one of %s", o.Sampler, strings.Join(samplerNames(), ", "))
				}
				if err := o.own().Check(); err != nil {
					return fmt.Sprintf("%q is not a sampler with its settings: %v", o.own(), err)
				}
				return ""
			},
		},
		numeric(Option{Name: "error", Kind: "E", Help: "of joint pll: relative standard error wanted of the first " +
			"fill's probability", Values: strings.Fields("0.01 0.02 0.05 0.1 0.2"),
			want:    "a number above 0, at most 1, as in 0.05",
			useless: []useless{{named, "runs the steps that it is given: leave it out"}},
			check:   proven("accuracy", func(o *Options) bool { return o.Error != DefaultOptions().Error }),
		}, func(o *Options) *float64 { return &o.Error }, "", 0, math.SmallestNonzeroFloat64, 1),
		{
			Name: "budget", Kind: "{ROWS|SECONDSs}",
			Help:    "model rows, or seconds as in 2s, that an answer may cost, once it has a fill",
			Values:  strings.Fields("500 1000 2000 4000 10000 1s 5s 20s"),
			want:    "a number of model rows above 0, or seconds above 0, as in 2s",
			useless: []useless{{named, "runs the steps that it is given: leave it out"}},
			get:     func(o *Options) string { return o.Budget.String() },
			set:     func(o *Options, text string) bool { return o.Budget.set(text) },
			valid:   func(o *Options) bool { return o.Budget.bounds() },
		},
		numeric(Option{Name: "samples", Kind: "{auto|N}", Unit: "chains", Help: "independent draws from the model; " +
			"of a named sampler its chains, each of which ends in one sample, 25 by default",
			Values: strings.Fields("auto 1 5 10 25 50 100"),
			want:   fmt.Sprintf("auto, or a whole number from 1 to %d", maxChains)},
			func(o *Options) *int { return &o.Chains }, auto, 0, 1, maxChains),
		numeric(Option{Name: "top", Kind: "N", Unit: "fills", Help: "fills to print",
			want: fmt.Sprintf("a whole number from 1 to %d", maxChains),
			check: func(o *Options) string {
				if o.searches() && o.Top > maxTop {
					return fmt.Sprintf("%d are too many to prove: ask for %d at most, or make draws with samples",
						o.Top, maxTop)
				}
				return ""
			}},
			func(o *Options) *int { return &o.Top }, "", 0, 1, maxChains),
	}
}

// moveOptions say how chains move.
func moveOptions() []Option {
	balances := strings.Join(samplers.BalanceNames(), ", ")
	return []Option{
		numeric(Option{Name: "steps", Kind: "N", Unit: "steps", Sampling: true,
			Help:   "steps of each chain, the warm-up included",
			Values: strings.Fields("0 10 20 50 100 200 500 1000"),
			want:   fmt.Sprintf("a whole number from 0 to %d", maxSteps),
			check: func(o *Options) string {
				if o.Mode != ModeSample && o.Steps == 0 {
					return string(o.Mode) + " needs at least one"
				}
				return ""
			}}, func(o *Options) *int { return &o.Steps }, "", 0, 0, maxSteps),
		numeric(Option{Name: "warm-up", Kind: "{half|N}", Unit: "steps", Sampling: true,
			Help:   "first steps that are not drawn from; half is half of the steps",
			Values: []string{"half"}, want: "a whole number of 0 or more, or half",
			check: func(o *Options) string {
				if o.WarmUp > o.Steps {
					return fmt.Sprintf("%d is not a whole number from 0 to the number of steps, %d", o.WarmUp, o.Steps)
				}
				return ""
			},
			useless: []useless{{func(o *Options) bool { return o.Mode != ModeSample }, "has none: leave it out"}},
		}, func(o *Options) *int { return &o.WarmUp }, "half", HalfSteps, 0, math.MaxInt),
		numeric(Option{Name: "step-size", Kind: "{auto|ALPHA}", Sampling: true,
			Help:   "changing a slot costs 1/ALPHA nats; auto adapts it in the warm-up",
			Values: strings.Fields("auto 0.1 0.2 0.5 1 2 5 10 50"), want: "a number above 0, or auto",
			useless: []useless{{func(o *Options) bool { return decodes(o) || !o.has("step-size") },
				"has none: leave it out"}},
		}, func(o *Options) *float64 { return &o.StepSize }, auto, 0, math.SmallestNonzeroFloat64, math.MaxFloat64),
		{
			Name: "balance", Kind: "{auto|BETA|NAME}", Sampling: true,
			Values: append([]string{auto}, samplers.BalanceNames()...),
			Help:   "what an energy difference weighs in a proposal: a power from 0.5 to 1, or one of " + balances,
			want:   "one of auto, " + balances + ", or a number from 0.5 to 1",
			useless: []useless{{decodes, "has none: leave it out"},
				{func(o *Options) bool { return !o.has("balance") }, "has none to choose: leave it out"}},
			get: func(o *Options) string { return orAuto(o.Balance) },
			set: func(o *Options, text string) bool {
				o.Balance = orEmpty(text)
				return o.Balance == "" || new(samplers.Balance).Set(text) == nil
			},
			valid: func(o *Options) bool { return new(samplers.Balance).Set(o.Balance) == nil },
		},
		numeric(Option{Name: "candidates", Kind: "{auto|N}", Unit: "tokens", Sampling: true, Help: "of samplers and " +
			"joint pll: keep a slot to the model's N most probable tokens; 0 is the whole vocabulary",
			Values: strings.Fields("auto 10 50 100 250 500 1000 0"),
			want:   "auto, or a whole number of 0 (the whole vocabulary) or more",
			check:  proven("candidates", func(o *Options) bool { return o.Candidates != AutoCandidates })},
			func(o *Options) *int { return &o.Candidates }, auto, AutoCandidates, 0, math.MaxInt),
	}
}

// jointOptions say what the likelihood is, where chains start and what is kept of them.
func jointOptions() []Option {
	searches := func(o *Options) bool { return o.Mode == ModeBest }
	starts := []StartKind{startModel, startRandom, StartShared, StartMask}
	return []Option{
		choice(Option{Name: "joint", Sampling: true, Help: "what the likelihood of several slots is: the chain rule, " +
			"the pseudo-log-likelihood, the closest to the conditionals of two, or nothing masked",
			check: func(o *Options) string {
				if o.Joint == jointAG && !o.answers() {
					return "ag is enumerated, and no chains draw from it: take sampler auto"
				}
				return ""
			}}, func(o *Options) *Joint { return &o.Joint }, JointChain, JointPLL, jointAG, JointFilled),
		energyOption(),
		{
			Name: "order", Kind: "{both|l2r|r2l|N,N,...}", Sampling: true,
			Values: texts([]Order{orderBoth, orderLeftToRight, orderRightToLeft}),
			Help:   "of the chain rule: the mean of both directions, one of them, or the blanks as numbered",
			want:   "one of both, l2r, r2l, or a permutation of the blanks, as in 2,1,3",
			check: func(o *Options) string {
				if o.Order != orderBoth && o.Joint != JointChain {
					return string(o.Joint) + " has none: leave it out, or take joint chain"
				}
				return ""
			},
			get: func(o *Options) string { return string(o.Order) },
			set: func(o *Options, text string) bool {
				o.Order = Order(text)
				return o.Order.valid()
			},
			list: func(o *Options, values []string) bool {
				o.Order = Order(strings.Join(values, ","))
				return o.Order.numbers() != nil
			},
			valid: func(o *Options) bool { return o.Order.valid() },
		},
		choice(Option{Name: "gradient", Sampling: true, Values: []string{auto},
			Help: "what proposals look at; auto is the sampler's own choice",
			useless: []useless{{func(o *Options) bool { return decodes(o) || o.onText().Gradient == "" },
				"uses none: leave it out"}},
			check: func(o *Options) string {
				if searches(o) && o.Gradient == lm.Stochastic {
					return "best needs the same gradient at every temperature: take local or full"
				}
				return ""
			}}, func(o *Options) *lm.Gradient { return &o.Gradient }, lm.Local, lm.Full, lm.Stochastic),
		numeric(Option{Name: "temperature", Kind: "T", Sampling: true,
			Help:   "draw from the distribution to the power 1/T",
			Values: strings.Fields("0.5 0.7 0.8 1 1.2 1.5 2"), want: "a number above 0",
			useless: []useless{{searches, "lowers it itself: leave it out"}},
		}, func(o *Options) *float64 { return &o.Temperature }, "", 0, math.SmallestNonzeroFloat64, math.MaxFloat64),
		{
			Name: "ladder", Kind: "T,T,...", Help: "parallel tempering: hotter replicas of each chain, at these " +
				"temperatures; the first is drawn from",
			want: "a list of temperatures, as in 1,2,4",
			get: func(o *Options) string {
				return strings.ReplaceAll(strings.Trim(fmt.Sprint(o.Ladder), "[]"), " ", ",")
			},
			set:   func(o *Options, text string) bool { return o.setLadder(strings.Split(text, ",")) },
			list:  (*Options).setLadder,
			check: ladderFault,
		},
		{
			Name: "initial", Kind: "NAME", Sampling: true, Values: texts(starts),
			Help: "where chains start, see infill help samplers: " + strings.Join(texts(starts), ", ") +
				" or fill:WORD,...",
			want:    "one of " + strings.Join(texts(starts), ", ") + ", fill:WORD,...",
			useless: []useless{{decodes, "always starts from slots that are all masked: leave it out"}},
			get:     func(o *Options) string { return o.Initial.String() },
			set: func(o *Options, text string) bool {
				_ = o.Initial.UnmarshalText([]byte(text)) // it reads every text
				return o.Initial.Kind == startGiven || slices.Contains(starts, o.Initial.Kind)
			},
			valid: func(o *Options) bool {
				return o.Initial.Kind == startGiven || slices.Contains(starts, o.Initial.Kind)
			},
		},
		choice(Option{Name: "rank",
			Help: "rank the distinct fills of all draws, or the chains' final states with repeats"},
			func(o *Options) *Rank { return &o.Rank }, rankDistinct, RankFinal),
		choice(Option{Name: "length-score", Help: "what compares fills of several lengths, see infill help templates",
			check: proven("length score", func(o *Options) bool { return o.LengthScore != blankLeftToRight })},
			func(o *Options) *LengthScore { return &o.LengthScore }, blankLeftToRight, wordLeftToRight),
		numeric(Option{Name: "seed", Kind: "N", Help: "start of all random numbers; drawn and printed when not given",
			want: "a whole number of 0 or more, below 2^64"},
			func(o *Options) *uint64 { return &o.Seed }, "", 0, 0, math.MaxUint64),
	}
}

// energyOption is the papers' name of the joints that they sample.
func energyOption() Option {
	t := choice(Option{Name: "energy", Sampling: true, Help: "the papers' name of --joint pll and --joint filled"},
		func(o *Options) *Joint { return &o.Joint }, JointPLL, JointFilled)
	joint := t.get
	t.get = func(o *Options) string {
		if value := joint(o); slices.Contains(t.Values, value) {
			return value
		}
		return ""
	}
	return t
}

var listStart = regexp.MustCompile(`(?:^|\s)(\d+)\s*=`)

// listsOption holds what blanks may take: "1=red,dark blue 2=sky".
func listsOption() Option {
	return numbered(Option{Name: "slot", Kind: "N=WORD,...",
		Help: "what blank N, counted from 1, may take; once for each blank, see infill help templates",
		want: "a blank's number and all words it may take, as in 1=red,dark blue"},
		1, func(o *Options) *map[int][]string { return &o.Words }, func(string) bool { return true })
}

// speechOption holds the parts of speech of the words of blanks: "noun", "1=noun,adjective 2=verb".
func speechOption() Option {
	parts := strings.Join(partsOfSpeech, ", ")
	return numbered(Option{Name: "pos", Kind: "[N=]PART,...", Values: partsOfSpeech,
		Help: "part of speech of the English word in each blank, or in blank N: " + parts + "; a word may be several",
		want: "a list of " + parts + ", perhaps of one blank, as in noun or 1=noun,verb"},
		0, func(o *Options) *map[int][]string { return &o.Speech },
		func(part string) bool { return slices.Contains(partsOfSpeech, part) })
}

// numbered is lists of values for blanks by their numbers, from least on: what has no number is under 0.
func numbered(t Option, least int, field func(*Options) *map[int][]string, takes func(value string) bool) Option {
	right := func(n int, values []string) (list []string, ok bool) {
		list, ok = words(values)
		return list, ok && n >= least && !slices.ContainsFunc(list, func(value string) bool { return !takes(value) })
	}
	add := func(lists map[int][]string, number string, values []string) bool {
		n, err := strconv.Atoi(strings.TrimSpace(number))
		list, ok := right(n, values)
		if err != nil || !ok || lists[n] != nil {
			return false
		}
		lists[n] = list
		return true
	}
	t.Join = " "
	t.get = func(o *Options) string {
		var lists []string
		for _, n := range slices.Sorted(maps.Keys(*field(o))) {
			list := strings.Join((*field(o))[n], ",")
			if n > 0 || least > 0 {
				list = strconv.Itoa(n) + "=" + list
			}
			lists = append(lists, list)
		}
		return strings.Join(lists, " ")
	}
	t.set = func(o *Options, text string) bool {
		lists := map[int][]string{}
		*field(o) = lists
		starts := append(listStart.FindAllStringSubmatchIndex(text, -1), []int{len(text)})
		if all := strings.TrimSpace(text[:starts[0][0]]); all != "" && !add(lists, "0", strings.Split(all, ",")) {
			return false
		}
		for i, at := range starts[:len(starts)-1] {
			if !add(lists, text[at[2]:at[3]], strings.Split(text[at[1]:starts[i+1][0]], ",")) {
				return false
			}
		}
		return true
	}
	t.list = func(o *Options, values []string) bool {
		*field(o) = map[int][]string{}
		all := []string{}
		for _, text := range values {
			if number, list, found := strings.Cut(text, "="); !found {
				all = append(all, text)
			} else if !add(*field(o), number, strings.Split(list, ",")) {
				return false
			}
		}
		return len(all) == 0 || add(*field(o), "0", all)
	}
	t.lists = func(o *Options, values map[string][]string) bool {
		*field(o) = map[int][]string{}
		for number, list := range values {
			if !add(*field(o), number, list) {
				return false
			}
		}
		return true
	}
	t.valid = func(o *Options) bool {
		for n, list := range *field(o) {
			if _, ok := right(n, list); !ok {
				return false
			}
		}
		return true
	}
	return t
}

func bannedOption() Option {
	set := func(o *Options, values []string) (ok bool) {
		o.Ban, ok = words(values)
		return ok
	}
	return Option{
		Name: "ban", Kind: "WORD,...", Help: "words that no blank may hold", Join: ",",
		want: "a list of words, as in red,blue",
		get:  func(o *Options) string { return strings.Join(o.Ban, ",") },
		set: func(o *Options, text string) bool {
			if o.Ban = nil; strings.TrimSpace(text) == "" {
				return true
			}
			return set(o, strings.Split(text, ","))
		},
		list:  set,
		valid: func(o *Options) bool { return !slices.Contains(o.Ban, "") },
	}
}

// togetherEnd stands between texts in an option; no text may hold it.
const togetherEnd = "\x1e"

func togetherOption() Option {
	return Option{
		Name: "together", Kind: "TEMPLATE", Help: "a further text whose blanks take the same fills; once for each, " +
			"see infill help templates", Join: togetherEnd,
		want: "a template",
		get:  func(o *Options) string { return strings.Join(o.Together, togetherEnd) },
		set: func(o *Options, text string) bool {
			if o.Together = nil; text != "" {
				o.Together = strings.Split(text, togetherEnd)
			}
			return true
		},
		list: func(o *Options, values []string) bool {
			o.Together = values
			return true
		},
		check: func(o *Options) string {
			switch {
			case o.Together == nil:
			case o.Joint == jointAG:
				return "joint ag is of one text: take chain"
			case !o.answers() && o.onText().Gradient != "" && o.Gradient == lm.Stochastic:
				return "a stochastic gradient is of one text: take local or full"
			case !o.answers() && samplers.Describe(o.moves()).Distances:
				return o.moves() + " fills one text: take " + defaultSampler
			case o.Pins != nil:
				return "slots are pinned in one text alone"
			}
			return ""
		},
	}
}

// setLadder reads the temperatures of parallel tempering.
func (o *Options) setLadder(values []string) bool {
	o.Ladder = nil
	for _, value := range values {
		t, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return false
		}
		o.Ladder = append(o.Ladder, t)
	}
	return true
}

// ladderFault says what is wrong with the temperatures of parallel tempering.
func ladderFault(o *Options) string {
	for i, t := range o.Ladder {
		switch {
		case !(t > 0) || math.IsInf(t, 1):
			return fmt.Sprintf("%v is not a temperature: list numbers above 0, as in 1,2,4", t)
		case i > 0 && t <= o.Ladder[i-1]:
			return fmt.Sprintf("%v after %v: temperatures must ascend", t, o.Ladder[i-1])
		}
	}
	switch {
	case o.Ladder == nil:
		return ""
	case o.Mode != ModeSample:
		return string(o.Mode) + " draws from no distribution, so there is none to temper: take mode sample"
	case len(o.Ladder) < 2:
		return "one temperature alone has none to swap with: list two or more"
	case len(o.Ladder) > maxRungs:
		return fmt.Sprintf("%d temperatures, at most %d are taken", len(o.Ladder), maxRungs)
	case o.Ladder[0] != o.Temperature:
		return fmt.Sprintf("it begins with %v, and what is drawn from is temperature %v: begin with that", o.Ladder[0],
			o.Temperature)
	case o.Sampler == "gibbs":
		return "replicas swap by their energies, and gibbs moves without knowing any: take another sampler"
	case o.onText().Gradient != "" && o.Gradient == lm.Stochastic:
		return "replicas with stochastic gradients cannot swap: take gradient local or full"
	}
	return ""
}
