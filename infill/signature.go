package infill

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// model adds what every number of a model hangs on.
func (s *signature) model(m Model) {
	s.add("model", m.Name+"@"+short(m.SHA256))
	s.add("tokenizer", short(m.Tokenizer))
	s.add("onnxruntime", m.Runtime)
	s.add("device", m.Device)
	s.add("precision", string(m.Precision))
	s.add("version", Version())
}

// signature writes down the options that were used, settled, and the model.
func (r *run) signature(m Model) string {
	const order = "length-score mode sampler step-size balance energy gradient candidates temperature ladder samples steps warm-up initial rank seed slot ban whole-words characters pieces"
	keys := map[string]string{"length-score": "lengths", "step-size": "alpha", "balance": "beta", "samples": "chains"}
	o := &r.options
	decode := o.Mode == ModeDecode
	var s signature
	for name := range strings.FieldsSeq(order) {
		value := Find(name).Get(o)
		switch name {
		case "length-score":
			if r.places == 1 {
				continue
			}
		case "mode":
			if o.Mode == ModeSample {
				continue
			}
		case "sampler":
			if decode {
				s.add("rounds", strconv.Itoa(r.rounds()))
				continue
			}
		case "step-size":
			switch {
			case decode || !o.has("step-size"):
				continue
			case r.adapt && adjusted(o.Sampler):
				value = "auto"
			case o.StepSize == 0:
				value = "default"
			}
		case "balance", "gradient":
			if decode || value == auto {
				continue
			}
		case "temperature":
			if o.Mode == ModeBest {
				value = fmt.Sprint(hottest, "-", coldest)
			}
		case "steps", "warm-up", "initial":
			if decode {
				continue
			}
		case "slot":
			for _, n := range slices.Sorted(maps.Keys(o.Words)) {
				s.add(name, strconv.Itoa(n)+"="+strings.Join(o.Words[n], ","))
			}
			continue
		case "whole-words":
			if !o.WholeWords {
				continue
			}
		case "characters":
			if value != "" && o.MinCharacters == 0 {
				value = "0" + value
			}
		}
		if value != "" {
			s.add(cmp.Or(keys[name], name), value)
		}
	}
	s.model(m)
	if slices.ContainsFunc(o.Pins, func(pin int) bool { return pin != Free }) {
		fields := make([]string, len(o.Pins))
		for slot, pin := range o.Pins {
			if fields[slot] = "-"; pin != Free {
				fields[slot] = strconv.Itoa(pin)
			}
		}
		s.add("pins", strings.Join(fields, ","))
	}
	return s.String()
}
