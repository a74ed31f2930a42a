package infill

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"infill/lm"
	"infill/samplers"
)

// Option is a row of the table that flags, the terminal UI's panel, the methods of
// an evaluation, signatures and validation are made of.
type Option struct {
	// Name is how flags, methods and errors spell it: "step-size".
	Name string
	// Help says in a phrase what it is.
	Help string
	// Kind stands for a value in usage texts, such as "N" and "{auto|ALPHA}"; "" is a
	// switch, whose values are true and false.
	Kind string
	// Unit is what a number counts, "" where it counts nothing.
	Unit string
	// Values are worth offering; where Closed, no other is taken.
	Values []string
	Closed bool
	// Join stands between the values of an option that may be given several times.
	Join string
	// Sampling tells that it is one of [Sampling].
	Sampling bool
	// Get writes the value, and Set reads it. Set's errors complete the sentence
	// `"x" is not …`; what only Validate can refuse passes.
	Get func(o *Options) string
	Set func(o *Options, text string) error
	// Unfit, where not nil, says why the sampler or the mode has no use for the
	// option, "" where it has.
	Unfit func(o *Options) string

	check func(o *Options) string // what is wrong with the value, "" for nothing
}

// The largest counts that are taken. They only keep a slip of the finger from
// asking for more memory than there is.
const (
	maxChains     = 1 << 16
	maxSteps      = 1 << 24
	maxRungs      = 64
	maxPieces     = 16 // of a blank that can be written
	maxCharacters = 1 << 16
)

const (
	auto = "auto"
	half = "half"
)

// Find is the row of an option, the zero value where there is none.
func Find(name string) Option {
	for _, option := range table() {
		if option.Name == name {
			return option
		}
	}
	return Option{}
}

// Table lists the options of a fill, in the order of the command's help.
func Table() []Option { return slices.Clone(table()) }

var table = sync.OnceValue(func() []Option {
	preset := func(o *Options) preset { return presets()[o.Sampler] }
	return []Option{
		listsOption(),
		bannedOption(),
		switchOption("whole-words", "no blank begins with a piece that continues the word on its left", func(o *Options) *bool { return &o.WholeWords }),
		boundsOption("characters", "bounds on the characters of a fill: 3-8, 3-, -8 or 3", "characters", maxCharacters, true,
			func(o *Options) (low, high *int) { return &o.MinCharacters, &o.MaxCharacters }),
		boundsOption("pieces", "number of pieces of every blank without a length of its own: 2 or 1-3; bounds --slot as well", "pieces", maxPieces, false,
			func(o *Options) (low, high *int) { return &o.MinPieces, &o.MaxPieces }),
		choice("mode", "draw fills; search for the likeliest by annealing; or decode by confidence, without chains",
			func(o *Options) *Mode { return &o.Mode }, "", ModeSample, ModeBest, ModeDecode),
		choice("sampler", "how the chains move, see infill help samplers", func(o *Options) *string { return &o.Sampler }, "", Samplers()...).sampling(),
		whole("samples", "chains, each of which ends in one sample", "chains", 1, maxChains, "", func(o *Options) *int { return &o.Chains },
			"1", "5", "10", "25", "50", "100"),
		whole("top", "fills to print", "fills", 1, math.MaxInt, "", func(o *Options) *int { return &o.Top }),
		whole("steps", "steps of each chain, the warm-up included", "steps", 0, maxSteps, "", func(o *Options) *int { return &o.Steps },
			"0", "10", "20", "50", "100", "200", "500", "1000").sampling().checked(func(o *Options) string {
			if o.Mode != ModeSample && o.Steps == 0 {
				return string(o.Mode) + " needs at least one"
			}
			return ""
		}),
		warmUpOption().sampling(),
		decimal("step-size", "changing a slot costs 1/ALPHA nats; auto adapts it in the warm-up", "{auto|ALPHA}", auto,
			func(o *Options) *float64 { return &o.StepSize }, auto, "0.1", "0.2", "0.5", "1", "2", "5", "10", "50").sampling().
			unfit(func(o *Options) bool { return !preset(o).stepped || o.Mode == ModeDecode }, "has none: leave it out"),
		balanceOption().sampling().
			unfit(func(o *Options) bool { return o.Mode == ModeDecode }, "has none: leave it out").
			unfit(func(o *Options) bool { return preset(o).balance == "" }, "has none to choose: leave it out"),
		whole("candidates", "keep a slot to the model's N most probable tokens; 0 is the whole vocabulary", "tokens", 0, math.MaxInt, " (the whole vocabulary)",
			func(o *Options) *int { return &o.Candidates }, "10", "50", "100", "250", "500", "1000", "0").sampling(),
		choice("energy", "what is likelihood: each slot masked in turn, or nothing masked", func(o *Options) *lm.Energy { return &o.Energy }, "", lm.PLL, lm.Filled).sampling(),
		choice("gradient", "what proposals look at; auto is the sampler's own choice", func(o *Options) *lm.Gradient { return &o.Gradient }, auto, lm.Local, lm.Full, lm.Stochastic).sampling().
			unfit(func(o *Options) bool { return preset(o).gradient == "" || o.Mode == ModeDecode }, "uses none: leave it out").
			checked(func(o *Options) string {
				if o.Mode == ModeBest && o.Gradient == lm.Stochastic {
					return "best needs the same gradient at every temperature: take local or full"
				}
				return ""
			}),
		decimal("temperature", "draw from the distribution to the power 1/T", "T", "", func(o *Options) *float64 { return &o.Temperature },
			"0.5", "0.7", "0.8", "1", "1.2", "1.5", "2").sampling().
			unfit(func(o *Options) bool { return o.Mode == ModeBest }, "lowers it itself: leave it out"),
		ladderOption(),
		startOption().sampling().
			unfit(func(o *Options) bool { return o.Mode == ModeDecode }, "always starts from slots that are all masked: leave it out"),
		choice("rank", "rank the distinct fills of all draws, or the chains' final states with repeats", func(o *Options) *Rank { return &o.Rank }, "", RankDistinct, RankFinal),
		choice("length-score", "what compares fills of several lengths, see infill help templates",
			func(o *Options) *LengthScore { return &o.LengthScore }, "", BlankLeftToRight, WordLeftToRight),
		seedOption(),
	}
})

// sampling marks a part of [Sampling].
func (t Option) sampling() Option {
	t.Sampling = true
	return t
}

// checked adds a check behind those there are.
func (t Option) checked(check func(o *Options) string) Option {
	first := t.check
	t.check = func(o *Options) string {
		if reason := first(o); reason != "" {
			return reason
		}
		return check(o)
	}
	return t
}

// unfit says, behind the name of the mode or the sampler, what makes the option
// useless when it is so.
func (t Option) unfit(when func(o *Options) bool, reason string) Option {
	first := t.Unfit
	t.Unfit = func(o *Options) string {
		switch {
		case first != nil && first(o) != "":
			return first(o)
		case !when(o):
			return ""
		case o.Mode != ModeSample:
			return string(o.Mode) + " " + reason
		}
		return o.Sampler + " " + reason
	}
	return t
}

// choice is an enumeration; word, where not "", stands for the empty value.
func choice[T ~string](name, help string, field func(*Options) *T, word string, values ...T) Option {
	t := Option{Name: name, Help: help, Closed: true}
	if word != "" {
		t.Values = []string{word}
	}
	var names []string // without the word
	for _, v := range values {
		names = append(names, string(v))
	}
	t.Values = append(t.Values, names...)
	// A long list would push the descriptions of all flags to the right.
	if t.Kind = "{" + strings.Join(t.Values, "|") + "}"; len(t.Kind) > 36 {
		t.Kind = "NAME"
	}
	t.Get = func(o *Options) string {
		if *field(o) == "" {
			return word
		}
		return string(*field(o))
	}
	t.Set = func(o *Options, text string) error {
		if !slices.Contains(t.Values, text) {
			return fmt.Errorf("one of %s", strings.Join(t.Values, ", "))
		}
		if text == word {
			text = ""
		}
		*field(o) = T(text)
		return nil
	}
	t.check = func(o *Options) string {
		if value := *field(o); !slices.Contains(values, value) && (value != "" || word == "") {
			return fmt.Sprintf("%q is not one of %s", value, strings.Join(names, ", "))
		}
		return ""
	}
	return t
}

// whole is a whole number within bounds, high being math.MaxInt for none; zero says
// what 0 stands for, in brackets, where it is taken.
func whole(name, help, unit string, low, high int, zero string, field func(*Options) *int, values ...string) Option {
	want := fmt.Sprintf("a whole number from %d to %d", low, high)
	if high == math.MaxInt {
		want = fmt.Sprintf("a whole number of %d%s or more", low, zero)
	}
	return Option{
		Name: name, Help: help, Kind: "N", Unit: unit, Values: values,
		Get: func(o *Options) string { return strconv.Itoa(*field(o)) },
		Set: func(o *Options, text string) error {
			n, err := strconv.Atoi(text)
			if err != nil {
				return errors.New("a whole number")
			}
			*field(o) = n
			return nil
		},
		check: func(o *Options) string {
			if n := *field(o); n < low || n > high {
				return fmt.Sprintf("%d is not %s", n, want)
			}
			return ""
		},
	}
}

// decimal is a number above 0; word, where not "", stands for 0.
func decimal(name, help, kind, word string, field func(*Options) *float64, values ...string) Option {
	want := "a number above 0"
	if word != "" {
		want += ", or " + word
	}
	return Option{
		Name: name, Help: help, Kind: kind, Values: values,
		Get: func(o *Options) string {
			if word != "" && *field(o) == 0 {
				return word
			}
			return number(*field(o))
		},
		Set: func(o *Options, text string) error {
			if word != "" && text == word {
				*field(o) = 0
				return nil
			}
			x, err := strconv.ParseFloat(text, 64)
			switch {
			case err != nil && word != "":
				return errors.New("a number or " + word)
			case err != nil:
				return errors.New("a number")
			case word != "" && x == 0:
				// 0 is how the word is kept, and must not pass for it.
				return errors.New(want)
			}
			*field(o) = x
			return nil
		},
		check: func(o *Options) string {
			// Written so that NaN fails.
			if x := *field(o); !(x > 0 && !math.IsInf(x, 1)) && (word == "" || x != 0) {
				return fmt.Sprintf("%v is not %s", x, want)
			}
			return ""
		},
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func switchOption(name, help string, field func(*Options) *bool) Option {
	return Option{
		Name: name, Help: help, Values: []string{"false", "true"}, Closed: true,
		Get: func(o *Options) string { return strconv.FormatBool(*field(o)) },
		Set: func(o *Options, text string) (err error) {
			if *field(o), err = strconv.ParseBool(text); err != nil {
				return errors.New("true or false")
			}
			return nil
		},
	}
}

func warmUpOption() Option {
	return Option{
		Name: "warm-up", Help: "first steps that are not drawn from; half is half of the steps", Kind: "{half|N}", Unit: "steps", Values: []string{half},
		Get: func(o *Options) string {
			if o.WarmUp == HalfSteps {
				return half
			}
			return strconv.Itoa(o.WarmUp)
		},
		Set: func(o *Options, text string) error {
			n, err := strconv.Atoi(text)
			switch {
			case text == half:
				n = HalfSteps
			case err != nil || n < 0:
				return errors.New("a whole number of 0 or more, or half")
			}
			o.WarmUp = n
			return nil
		},
		check: func(o *Options) string {
			if o.WarmUp != HalfSteps && (o.WarmUp < 0 || o.WarmUp > o.Steps) {
				return fmt.Sprintf("%d is not a whole number from 0 to the number of steps, %d", o.WarmUp, o.Steps)
			}
			return ""
		},
	}.unfit(func(o *Options) bool { return o.Mode != ModeSample }, "has none: leave it out")
}

func balanceOption() Option {
	want := strings.Join(samplers.BalanceNames(), ", ") + ", or a number from 0.5 to 1"
	return Option{
		Name: "balance", Kind: "{auto|BETA|NAME}", Values: append([]string{auto}, samplers.BalanceNames()...),
		Help: "what an energy difference weighs in a proposal: a power from 0.5 to 1, or one of " + strings.Join(samplers.BalanceNames(), ", "),
		Get: func(o *Options) string {
			if o.Balance == "" {
				return auto
			}
			return o.Balance
		},
		Set: func(o *Options, text string) error {
			if text == auto {
				text = ""
			} else if _, err := samplers.ParseBalance(text); err != nil {
				return errors.New("one of auto, " + want)
			}
			o.Balance = text
			return nil
		},
		check: func(o *Options) string {
			if o.Balance != "" {
				if _, err := samplers.ParseBalance(o.Balance); err != nil {
					return fmt.Sprintf("%q is not one of %s", o.Balance, want)
				}
			}
			return ""
		},
	}
}

func ladderOption() Option {
	return Option{
		Name: "ladder", Kind: "T,T,...", Help: "parallel tempering: hotter replicas of each chain, at these temperatures; the first is drawn from",
		Get: func(o *Options) string {
			var list []string
			for _, t := range o.Ladder {
				list = append(list, number(t))
			}
			return strings.Join(list, ",")
		},
		Set: func(o *Options, text string) error {
			var ladder []float64
			for field := range strings.SplitSeq(text, ",") {
				t, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
				if err != nil {
					return errors.New("a list of temperatures, as in 1,2,4")
				}
				ladder = append(ladder, t)
			}
			o.Ladder = ladder
			return nil
		},
		Unfit: func(o *Options) string {
			switch {
			case o.Mode != ModeSample:
				return string(o.Mode) + " draws from no distribution, so there is none to temper: take mode sample"
			case o.Sampler == "gibbs":
				return "replicas swap by their energies, and gibbs moves without knowing any: take another sampler"
			case presets()[o.Sampler].gradient != "" && o.Gradient == lm.Stochastic:
				return "replicas with stochastic gradients cannot swap: take gradient local or full"
			}
			return ""
		},
		check: func(o *Options) string {
			for i, t := range o.Ladder {
				switch {
				case !(t > 0) || math.IsInf(t, 1):
					return fmt.Sprintf("%v is not a temperature: list numbers above 0, as in 1,2,4", t)
				case i > 0 && t <= o.Ladder[i-1]:
					return fmt.Sprintf("%v after %v: temperatures must ascend", t, o.Ladder[i-1])
				}
			}
			switch {
			case o.Ladder == nil || o.Mode != ModeSample:
				return ""
			case len(o.Ladder) < 2:
				return "one temperature alone has none to swap with: list two or more"
			case len(o.Ladder) > maxRungs:
				return fmt.Sprintf("%d temperatures, at most %d are taken", len(o.Ladder), maxRungs)
			case o.Ladder[0] != o.Temperature:
				return fmt.Sprintf("it begins with %v, and what is drawn from is temperature %v: begin with that", o.Ladder[0], o.Temperature)
			}
			return ""
		},
	}
}

func startOption() Option {
	kinds := []string{string(StartModel), string(StartRandom), string(StartShared), string(StartMask)}
	list := strings.Join(kinds, ", ")
	const given = string(StartGiven) + ":WORD,..."
	known := func(s Start) bool { return s.Kind == StartGiven || slices.Contains(kinds, string(s.Kind)) }
	return Option{
		Name: "initial", Kind: "NAME", Values: kinds,
		Help: "where chains start: drawn from the model with all slots masked, at random, all at one draw from the model, " +
			"unmasked slot by slot, or at a fill; one of " + list + ", " + given,
		Get: func(o *Options) string { return o.Initial.String() },
		Set: func(o *Options, text string) error {
			var start Start
			if err := start.UnmarshalText([]byte(text)); err != nil || !known(start) {
				return errors.New("one of " + list + ", " + given)
			}
			o.Initial = start
			return nil
		},
		check: func(o *Options) string {
			if !known(o.Initial) {
				return fmt.Sprintf("%q is not one of %s, or %s", o.Initial, list, given)
			}
			return ""
		},
	}
}

func seedOption() Option {
	return Option{
		Name: "seed", Kind: "N", Help: "start of all random numbers; drawn and printed when not given",
		Get: func(o *Options) string { return strconv.FormatUint(o.Seed, 10) },
		Set: func(o *Options, text string) (err error) {
			seed, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return errors.New("a whole number of 0 or more, below 2^64")
			}
			o.Seed = seed
			return nil
		},
	}
}

// words cuts a list at commas; an empty word is none.
func words(text string) (list []string, ok bool) {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			return nil, false
		}
		list = append(list, word)
	}
	return list, true
}

// listsOption holds what blanks may take: "1=red,dark blue 2=sky".
func listsOption() Option {
	number := regexp.MustCompile(`(?:^|\s)(\d+)\s*=`)
	return Option{
		Name: "slot", Kind: "N=WORD,...", Help: "what blank N, counted from 1, may take; once for each blank, see infill help templates", Join: " ",
		Get: func(o *Options) string {
			var lists []string
			for _, n := range slices.Sorted(maps.Keys(o.Words)) {
				lists = append(lists, strconv.Itoa(n)+"="+strings.Join(o.Words[n], ","))
			}
			return strings.Join(lists, " ")
		},
		Set: func(o *Options, text string) error {
			wrong := errors.New("a blank's number and the words it may take, as in 1=red,dark blue")
			starts := number.FindAllStringSubmatchIndex(text, -1)
			if rest := strings.TrimSpace(text); rest != "" && (len(starts) == 0 || strings.TrimSpace(text[:starts[0][0]]) != "") {
				return wrong
			}
			var lists map[int][]string
			for i, at := range starts {
				end := len(text)
				if i+1 < len(starts) {
					end = starts[i+1][0]
				}
				blank, err := strconv.Atoi(text[at[2]:at[3]])
				fills, ok := words(text[at[1]:end])
				switch {
				case err != nil || blank < 1 || !ok:
					return wrong
				case lists[blank] != nil:
					return fmt.Errorf("the only list for blank %d: give all its words at once", blank)
				case lists == nil:
					lists = map[int][]string{}
				}
				lists[blank] = fills
			}
			o.Words = lists
			return nil
		},
		check: func(o *Options) string {
			for _, n := range slices.Sorted(maps.Keys(o.Words)) {
				switch {
				case n < 1:
					return fmt.Sprintf("%d is no blank: they count from 1", n)
				case len(o.Words[n]) == 0 || slices.ContainsFunc(o.Words[n], white):
					return fmt.Sprintf("an empty word for blank %d: list words, as in %d=red,blue", n, n)
				}
			}
			return ""
		},
	}
}

func white(text string) bool { return strings.TrimSpace(text) == "" }

func bannedOption() Option {
	return Option{
		Name: "ban", Kind: "WORD,...", Help: "words that no blank may hold", Join: ",",
		Get: func(o *Options) string { return strings.Join(o.Ban, ",") },
		Set: func(o *Options, text string) error {
			if white(text) {
				o.Ban = nil
				return nil
			}
			list, ok := words(text)
			if !ok {
				return errors.New("a list of words, as in red,blue")
			}
			o.Ban = list
			return nil
		},
		check: func(o *Options) string {
			if slices.ContainsFunc(o.Ban, white) {
				return "an empty word: list words, as in red,blue"
			}
			return ""
		},
	}
}

// boundsOption is a range of whole numbers from 1 to largest, both ends in it; 0 and
// 0 are none. An open one may lack an end, which is then 0.
func boundsOption(name, help, unit string, largest int, open bool, field func(*Options) (low, high *int)) Option {
	want := "a number or a range of 1 or more, as in 2 or 1-3"
	if open {
		want = "a number or a range of 1 or more, as in 3, 3-8, 3- or -8"
	}
	end := func(text string) (n int, ok bool) {
		if text == "" {
			return 0, open
		}
		n, err := strconv.Atoi(text)
		return n, err == nil && n >= 1
	}
	return Option{
		Name: name, Help: help, Kind: "MIN-MAX", Unit: unit,
		Get: func(o *Options) string {
			low, high := field(o)
			switch {
			case *low == 0 && *high == 0:
				return ""
			case *low == 0:
				return "-" + strconv.Itoa(*high)
			}
			return bounds(*low, *high)
		},
		Set: func(o *Options, text string) error {
			first, last, ranged := strings.Cut(text, "-")
			if !ranged {
				last = first
			}
			low, lowOK := end(first)
			high, highOK := end(last)
			if !lowOK || !highOK || low == 0 && high == 0 {
				return errors.New(want)
			}
			bottom, top := field(o)
			*bottom, *top = low, high
			return nil
		},
		check: func(o *Options) string {
			low, high := field(o)
			switch {
			case *low < 0 || *low > largest || *high < 0 || *high > largest:
				return fmt.Sprintf("%d to %d is not within 1 to %d", *low, *high, largest)
			case *high < *low && !(open && *high == 0):
				return fmt.Sprintf("%d to %d runs backwards", *low, *high)
			}
			return ""
		},
	}
}

// bounds writes a range; an upper bound of 0 is none.
func bounds(low, high int) string {
	switch {
	case high == 0:
		return strconv.Itoa(low) + "-"
	case low == high:
		return strconv.Itoa(low)
	}
	return strconv.Itoa(low) + "-" + strconv.Itoa(high)
}
