package infill

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"infill/internal/option"
)

// signature is a line of key:value fields with all that the numbers of a result
// depend on, and no setting that the method does not use.
type signature struct{ strings.Builder }

func (s *signature) add(key, value string) {
	if s.Len() > 0 {
		s.WriteByte('|')
	}
	s.WriteString(key + ":" + inOneField.Replace(value))
}

// inOneField takes separators out of a value (a model's name may have one), which
// would make the line ambiguous.
var inOneField = strings.NewReplacer("|", "/", "\n", " ")

// shownDigits is the number of digits of a SHA-256 that a signature shows.
const shownDigits = 12

func short(sha256 string) string { return sha256[:min(shownDigits, len(sha256))] }

func hash(text string) string { return short(fmt.Sprintf("%x", sha256.Sum256([]byte(text)))) }

// model adds model, software and device, on which every number depends.
func (s *signature) model(m Model) {
	s.add("model", m.Name+"@"+short(m.SHA256))
	s.add("tokenizer", short(m.Tokenizer))
	s.add("onnxruntime", m.Runtime)
	s.add("device", m.Device)
	s.add("version", Version())
}

// signature returns the model, and the options that a result depends on.
func (w *work) signature() string {
	r := w.plan.Request
	var s signature
	_, chains := r.Chains()
	if !chains { // a sampler names itself
		s.add("method", r.Method.Name())
	}
	s.facts(declared.Said(r.Method))
	if r.Method.random() {
		s.add("seed", fmt.Sprint(r.Seed))
	}
	s.lists(r.Fit.Slots)
	fit := r.Fit
	fit.Slots = nil
	if fit.Fill == FillAny {
		fit.Fill = "" // what the model itself takes
	}
	s.facts(declared.Said(fit))
	s.context(string(r.Context), w.plan.filler.Model())
	s.seen(w.plan.seen)
	s.model(w.plan.filler.Model())
	return s.String()
}

// seen adds how many tokens of a too long text the model saw; nothing if it saw all.
func (s *signature) seen(tokens int) {
	if tokens > 0 {
		s.add("seen", strconv.Itoa(tokens))
	}
}

// context adds what stands before the text; nothing if text is "".
func (s *signature) context(text string, m Model) {
	if text == "" {
		return
	}
	s.add("context", hash(text))
	if m.Segments > 1 {
		s.add("segments", strconv.Itoa(m.Segments))
	}
}

func (s *signature) facts(facts []option.Fact) {
	for _, f := range facts {
		s.add(f.Name, f.Text)
	}
}

// lists adds the lists of blanks, the one for all first, long ones by hash.
func (s *signature) lists(slots Lists) {
	const long = 200 // in bytes
	for _, n := range slices.Sorted(maps.Keys(slots)) {
		list := option.Join(slots[n])
		if len(list) > long {
			list = fmt.Sprintf("%d words %s", len(slots[n]), hash(list))
		}
		if n > 0 {
			list = strconv.Itoa(n) + "=" + list
		}
		s.add("slot", list)
	}
}
