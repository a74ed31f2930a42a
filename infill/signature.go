package infill

import (
	"cmp"
	"strconv"
	"strings"

	"infill/lm"
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

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// model adds what every number of a model hangs on.
func (s *signature) model(d Description, tokenizer string) {
	s.add("model", d.Name+"@"+short(d.SHA256))
	s.add("tokenizer", short(tokenizer))
	s.add("onnxruntime", d.Runtime)
	s.add("device", d.Device)
	s.add("precision", string(cmp.Or(d.Precision, lm.FP32)))
	s.add("version", Version())
}

func (r *run) signature(d Description) string {
	o := r.options
	var s signature
	if r.places > 1 {
		s.add("lengths", o.LengthScore)
	}
	if o.Mode != ModeSample {
		s.add("mode", o.Mode)
	}
	if o.Mode == ModeDecode {
		s.add("rounds", strconv.Itoa(r.rounds()))
		s.add("energy", o.Energy)
		s.add("candidates", strconv.Itoa(o.Candidates))
		s.add("temperature", number(o.Temperature))
		s.add("chains", strconv.Itoa(o.Samples))
		s.add("rank", o.Rank)
		s.add("seed", strconv.FormatUint(o.Seed, 10))
		o.Constraints.signature(&s)
		s.model(d, r.filler.tokenizer.SHA256())
		return s.String()
	}
	s.add("sampler", o.Sampler)
	if presets()[o.Sampler].stepped {
		value := number(o.StepSize)
		switch {
		case r.adapt && adjusted(o.Sampler):
			value = "auto"
		case o.StepSize == 0:
			value = "default"
		}
		s.add("alpha", value)
	}
	if o.Balance != "" {
		s.add("beta", o.Balance)
	}
	s.add("energy", o.Energy)
	if o.Gradient != "" {
		s.add("gradient", o.Gradient)
	}
	s.add("candidates", strconv.Itoa(o.Candidates))
	if o.Mode == ModeBest {
		s.add("temperature", number(hottest)+"-"+number(coldest))
	} else {
		s.add("temperature", number(o.Temperature))
	}
	if o.Ladder != "" {
		s.add("ladder", o.Ladder)
	}
	s.add("chains", strconv.Itoa(o.Samples))
	s.add("steps", strconv.Itoa(o.Steps))
	s.add("warm-up", strconv.Itoa(o.WarmUp))
	s.add("initial", o.Initial)
	s.add("rank", o.Rank)
	s.add("seed", strconv.FormatUint(o.Seed, 10))
	o.Constraints.signature(&s)
	s.model(d, r.filler.tokenizer.SHA256())
	return s.String()
}
