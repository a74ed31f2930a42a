package infill

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// signature is one line of key:value fields that names everything on which the numbers of a result depend. Settings
// that the method does not use are left out.
type signature struct{ strings.Builder }

func (s *signature) add(key, value string) {
	if s.Len() > 0 {
		s.WriteByte('|')
	}
	// A separator inside a value (a model's name may have one) would make the line ambiguous.
	s.WriteString(key + ":" + strings.NewReplacer("|", "/", "\n", " ").Replace(value))
}

// digits is the number of digits of a SHA-256 that a signature shows.
const digits = 12

func short(sha256 string) string { return sha256[:min(digits, len(sha256))] }

// hash returns the short SHA-256 of a text that is too long for a signature.
func hash(text string) string { return short(fmt.Sprintf("%x", sha256.Sum256([]byte(text)))) }

// model adds the model, its software and its device: every number of a result depends on them.
func (s *signature) model(m Model) {
	s.add("model", m.Name+"@"+short(m.SHA256))
	s.add("tokenizer", short(m.Tokenizer))
	s.add("onnxruntime", m.Runtime)
	s.add("device", m.Device)
	s.add("version", Version())
}

// options adds the named options as users write them, except those whose value is empty, "auto" or "false".
func (s *signature) options(o *Options, names ...string) {
	fields := o.fields()
	for _, name := range names {
		if value := Find(name).text(o, fields[name]); value != "" && value != auto && value != "false" {
			s.add(name, value)
		}
	}
}

// signature returns the signature of a result: the options that the method used, and the model.
func (w *work) signature() string {
	o := &w.plan.Options
	var s signature
	switch {
	case o.Chains != nil:
		settled := *o
		c := o.Chains.settled()
		settled.Chains, settled.Samples = &c, w.plan.chains()
		s.options(&settled, "sampler", "step-size", "balance", "energy", "gradient", "candidates", "temperature",
			"samples",
			"steps", "warm-up", "initial", "rank", "seed")
	case o.Samples > 0:
		s.add("method", MethodDraws)
		s.options(o, "order", "temperature", "samples", "rank", "budget", "seed")
	default:
		s.add("method", MethodSearch)
		s.options(o, "order", "budget")
	}
	for _, n := range slices.Sorted(maps.Keys(o.Slots)) {
		list := joinWords(o.Slots[n])
		const long = 200 // in bytes
		if len(list) > long {
			list = fmt.Sprintf("%d words %s", len(o.Slots[n]), hash(list))
		}
		s.add("slot", strconv.Itoa(n)+"="+list)
	}
	s.options(o, "pos", "ban")
	if o.Fill != FillAny {
		s.options(o, "fill")
	}
	s.options(o, "case", "distinct")
	if o.Context != "" {
		s.add("context", hash(o.Context))
		if n := w.plan.filler.Model().Segments; n > 1 {
			s.add("segments", strconv.Itoa(n))
		}
	}
	if w.plan.seen > 0 {
		s.add("seen", strconv.Itoa(w.plan.seen))
	}
	s.model(w.plan.filler.Model())
	return s.String()
}
