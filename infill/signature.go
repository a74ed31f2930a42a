package infill

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"infill/tokenize"
)

// signature is one line of key:value fields with all that changes the numbers of
// a result. Settings that a sampler does not use are left out.
type signature struct{ strings.Builder }

func (s *signature) add(key, value string) {
	if s.Len() > 0 {
		s.WriteByte('|')
	}
	// A separator inside a value, as a model's name may have, would make the
	// line ambiguous.
	s.WriteString(key + ":" + strings.NewReplacer("|", "/", "\n", " ").Replace(value))
}

// digits is how much of a SHA-256 a signature shows.
const digits = 12

func short(sha256 string) string { return sha256[:min(digits, len(sha256))] }

// model adds what every number of a model depends on.
func (s *signature) model(m Model) {
	s.add("model", m.Name+"@"+short(m.SHA256))
	s.add("tokenizer", short(m.Tokenizer))
	s.add("onnxruntime", m.Runtime)
	s.add("device", m.Device)
	s.add("version", Version())
}

// options adds options as they are written, those left to the sampler excepted.
func (s *signature) options(o *Options, names ...string) {
	for _, name := range names {
		if value := Find(name).Get(o); value != "" && value != auto && value != "false" {
			s.add(cmp.Or(map[string]string{"length-score": "lengths", "balance": "beta", "samples": "chains"}[name],
				name), value)
		}
	}
}

// signature writes down the options that were used, settled, and the model.
func (r *problem) signature(of *Result) string {
	o := &r.options
	decode := o.Mode == ModeDecode
	var s signature
	if r.places > 1 && !o.searches() && !o.draws() {
		s.options(o, "length-score")
	}
	if o.Mode != ModeSample {
		s.options(o, "mode")
	}
	if o.answers() {
		s.add("sampler", Auto)
		s.options(o, "joint")
		if o.Joint == JointChain {
			s.options(o, "order")
		}
		if t := r.pllTemperature(); t != 1 {
			s.add("pll-temperature", fmt.Sprint(t))
		}
		switch {
		case o.weighs():
			s.add("candidates", Find("candidates").Get(o))
			s.options(o, "temperature", "error", "budget", "seed")
		case o.draws():
			s.options(o, "temperature", "samples", "budget", "seed")
		default:
			s.options(o, "temperature", "budget")
			if of.Seed != nil { // a proof depends on no random number, an estimate of what lists hold does
				s.options(o, "seed")
			}
		}
		r.limits(&s)
		s.model(of.Model)
		return s.String()
	}
	if decode {
		s.add("rounds", strconv.Itoa(r.rounds()))
	} else {
		s.options(o, "sampler")
		switch {
		case !o.has("step-size"):
		case r.adapts && adjusted(o.Sampler):
			s.add("alpha", auto)
		case o.StepSize == 0:
			s.add("alpha", "default")
		default:
			s.add("alpha", fmt.Sprint(o.StepSize))
		}
		s.options(o, "balance")
	}
	s.options(o, "joint")
	if o.Joint == JointChain {
		s.options(o, "order")
	}
	if !decode {
		s.options(o, "gradient")
	}
	s.options(o, "candidates")
	if o.Mode == ModeBest {
		s.add("temperature", fmt.Sprint(hottest, "-", coldest))
	} else {
		s.options(o, "temperature")
	}
	s.options(o, "ladder", "samples")
	if !decode {
		s.options(o, "steps", "warm-up", "initial")
	}
	s.options(o, "rank", "seed")
	r.limits(&s)
	s.model(of.Model)
	return s.String()
}

// limits writes down what the fills are kept to.
func (r *problem) limits(s *signature) {
	o := &r.options
	for _, n := range slices.Sorted(maps.Keys(o.Words)) {
		s.add("slot", strconv.Itoa(n)+"="+strings.Join(o.Words[n], ","))
	}
	s.options(o, "pos", "ban")
	if o.Together != nil {
		s.add("texts", strconv.Itoa(1+len(o.Together)))
	}
	if o.Fill != FillAny {
		s.options(o, "fill")
	}
	s.options(o, "case", "window", "distinct")
	if o.Context != "" {
		s.add("context", short(fmt.Sprintf("%x", sha256.Sum256([]byte(o.Context)))))
		if n := r.filler.Model().Segments; n > 1 {
			s.add("segments", strconv.Itoa(n))
		}
	}
	if o.MaxCharacters > 0 && o.MinCharacters == 0 {
		s.add("characters", "0-"+strconv.Itoa(o.MaxCharacters))
	} else {
		s.options(o, "characters")
	}
	s.options(o, "pieces")
	if r.rules != nil {
		s.add("pieces", fmt.Sprintf("word:1-%d", wordPieces))
	}
	hasPattern := func(b tokenize.Blank) bool { return b.Pattern != "" }
	if m := r.filler.Model(); m.Lexicon != "" &&
		(r.rules != nil || o.Words != nil || slices.ContainsFunc(r.typed.Blanks, hasPattern)) {
		s.add("lexicon", short(m.Lexicon))
	}
	if slices.ContainsFunc(o.Pins, func(pin int) bool { return pin != Free }) {
		s.add("pins", strings.NewReplacer("[", "", "]", "", " ", ",", "-1", "-").Replace(fmt.Sprint(o.Pins)))
	}
}
