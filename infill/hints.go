package infill

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"infill/internal/lines"
	"infill/tokenize"
)

func (w *work) warnings(r *Result) []string {
	l := w.plan.shortest
	ids := l.question.ids()
	warnings := slices.Concat(w.plan.rules.warnings, w.plan.filler.unknown("template", ids), w.plan.TooLong(),
		w.foreign(l, ids))
	for blank := range l.template.Blanks {
		rather := w.rather(l, blank)
		r.Excluded = r.Excluded || rather != nil
		warnings = slices.Concat(warnings, joined(l, blank), begun(l, blank), small(l, blank), rather)
	}
	texts := []string{l.template.Text, w.plan.Request.Context}
	for _, list := range w.plan.Request.Fit.Slots {
		texts = append(texts, list...)
	}
	r.Typed = w.plan.filler.typography(r.Fills, texts...)
	if r.Typed != "" {
		warnings = append(warnings, r.Typed)
	}
	s := r.Stats.Chains
	if s != nil {
		a := s.AcceptanceRate
		if a != nil && *a < 0.05 {
			few := fmt.Sprintf("only %.1f %% of the proposals were accepted: the chains hardly moved", 100**a)
			if s.StepSize != nil {
				few += "; leave the step size to auto, or take a smaller one"
			}
			warnings = append(warnings, few)
		} else if s.ChangedSlotsPerStep == 0 && s.Steps > s.WarmUp.Steps {
			warnings = append(warnings,
				"no slot changed after the warm-up: the fills are those that the chains had reached by then")
		}
		warnings = append(warnings, unconverged(r)...)
	}
	return warnings
}

// fewer warns if a result has fewer fills than were asked for, though there may be more.
func fewer(r *Result, top int) []string {
	chains := r.Stats.Chains != nil
	if len(r.Fills) >= top || !chains && (r.Proven == nil || *r.Proven) {
		return []string{}
	}
	advice := "give a larger budget"
	if chains {
		advice = "draw more (samples, steps), or raise the temperature"
	}
	return []string{fmt.Sprintf("%d fills were asked for and %d found: %s", top, len(r.Fills), advice)}
}

// typographic are signs that a word processor writes, each with its key of a typewriter.
var typographic = []string{"’", "'", "‘", "'", "“", `"`, "”", `"`, "–", "-", "…", "..."}

var typewriter = strings.NewReplacer(typographic...)

// typography returns a warning if texts have signs of a word processor that the model reads as other
// tokens than those of a typewriter, and how much that matters to two fills.
func (f *Filler) typography(fills []Fill, texts ...string) string {
	var signs, keys []string
	for pair := range slices.Chunk(typographic, 2) {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, pair[0]) }) {
			continue
		}
		sign, err := f.tokenizer.Encode(pair[0])
		key, failed := f.tokenizer.Encode(pair[1])
		if err == nil && failed == nil && !slices.Equal(sign.IDs, key.IDs) {
			signs = append(signs, pair[0])
			keys = append(keys, pair[1])
		}
	}
	if signs == nil {
		return ""
	}
	warning := fmt.Sprintf("the model reads %s as other tokens than %s: type one kind in all that you compare",
		strings.Join(signs, " "), strings.Join(slices.Compact(keys), " "))
	typed := map[string]Fill{} // by what a typewriter writes
	for _, fill := range fills {
		key := typewriter.Replace(strings.Join(fill.Values, ", "))
		likelier, twice := typed[key]
		if twice && fill.Probability != nil {
			times := "more than 1,000"
			ratio := math.Exp(likelier.LogLikelihood - fill.LogLikelihood)
			if ratio < 1000 {
				times = fmt.Sprintf("%.3g", ratio)
			}
			return lines.Short(fmt.Sprintf("%s; %q has %s times the probability of %q", warning,
				strings.Join(likelier.Values, ", "), times, strings.Join(fill.Values, ", ")))
		}
		typed[key] = fill
	}
	return lines.Short(warning)
}

// unknown warns if ids hold unknown tokens. what names the text of the ids in
// the warning, as in "template".
func (f *Filler) unknown(what string, ids []int) []string {
	unknown := 0
	for _, id := range ids {
		if id == f.tokenizer.UnknownID() {
			unknown++
		}
	}
	if unknown == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the %s has words outside the model's vocabulary (%d), which it reads as [UNK]", what,
		unknown)}
}

// foreign warns if the model does not know half of a template's words, or cuts
// the words into so many pieces that it can hardly have learned their language.
func (w *work) foreign(l *layout, ids []int) []string {
	words := 0
	cut := 0
	unknown := 0
	for position, id := range ids {
		switch class := w.plan.filler.vocabulary.classes()[id]; {
		case slices.Contains(l.question.slots, position):
		case id == w.plan.filler.tokenizer.UnknownID():
			words++
			unknown++
		case class&continuingToken != 0:
			cut++
		case class&wordToken != 0:
			words++
		}
	}
	few := 4
	most := 2. / 3 // fewer words show no language; a known language has at most this many further pieces a word
	foreign := func(r rune) bool { return r > unicode.MaxASCII && unicode.IsLetter(r) }
	if strings.ContainsFunc(l.template.Text, foreign) {
		few = 1
		most = 1. / 2
	}
	switch {
	case words < few:
	case 2*unknown >= words:
		return []string{fmt.Sprintf("the model does not know %d of the text's %d words: take one of its "+
			"language, see infill models pull --help", unknown, words)}
	case float64(cut) >= most*float64(words):
		return []string{fmt.Sprintf("the model cuts the text's %d words into %d tokens, as words of a "+
			"language that it has hardly seen: take a model of it, see infill models pull --help", words, words+cut)}
	}
	return nil
}

// joined warns of letters behind a blank, as in [MASK]ing, read as one word.
func joined(l *layout, blank int) []string {
	b := l.template.Blanks[blank]
	left, right := l.template.Beside(b)
	if !b.TouchesRight || b.Pattern != "" || right == "" { // the text on the right may begin with a digit
		return nil
	}
	typed := l.template.Text[b.Start:b.End]
	return []string{fmt.Sprintf("%q is read as a word with the text %q behind it: [MASK~%s.*%s] asks for one whole "+
		"word", left+typed+right, right, left, right)}
}

// begun warns of letters before a blank, as in high[MASK]: it takes pieces that go
// on with a word, beside whole words of the vocabulary.
func begun(l *layout, blank int) []string {
	b := l.template.Blanks[blank]
	left, _ := l.template.Beside(b)
	own := l.rules.blanks[blank]
	if !b.TouchesLeft || b.TouchesRight || left == "" || own.list != nil || own.pattern != nil {
		return nil
	}
	whole := l.rules.vocabulary.begins(left)
	if whole == 0 {
		return nil
	}
	typed := l.template.Text[b.Start:b.End]
	return []string{fmt.Sprintf("%q takes only tokens that go on with %q: [MASK~%s.*] takes the words that the "+
		"vocabulary has as one token (%d)", left+typed, left, left, whole)}
}

// small warns of a pattern that a word of a model without capitals matches only
// because capitals do not count. At the start of a sentence the fill gets its
// capital, and in a list capitals are the user's.
func small(l *layout, blank int) []string {
	b := l.template.Blanks[blank]
	v := l.rules.vocabulary
	if b.Pattern == "" || v.tokenizer.Cased() || !strings.ContainsFunc(b.Pattern, unicode.IsUpper) ||
		l.rules.blanks[blank].list != nil || tokenize.StartsSentence(l.template.Text[:b.Start]) {
		return nil
	}
	exact, err := regexp.Compile(anchored(b.Pattern))
	if err != nil || slices.ContainsFunc(v.fillable, func(id int) bool {
		return exact.MatchString(v.tokenizer.Piece(id))
	}) {
		return nil
	}
	return []string{fmt.Sprintf("no word of this model has capitals, so in %s they count as small letters",
		l.template.Text[b.Start:b.End])}
}

var tenth = math.Log(0.1)

// rather returns a warning if the option fill alone excludes tokens that hold
// most of the probability of a blank's first slot. It returns nil if none of
// the excluded tokens has a probability of 0.1 or more.
func (w *work) rather(l *layout, blank int) []string {
	b := l.template.Blanks[blank]
	own := l.rules.blanks[blank]
	if l.rules.fill == FillAny || own.list != nil || own.pattern != nil {
		return nil
	}
	row := w.alone[b.First]
	known := row[:min(len(row), w.plan.filler.tokenizer.VocabularySize())] // a row may be longer than the vocabulary
	takes := l.alone(b.First)
	best := -1 // the likeliest token that the blank may not take
	for token, logp := range known {
		if logp < float32(tenth) || best >= 0 && logp <= row[best] {
			continue
		}
		_, taken := slices.BinarySearch(takes, token)
		if !taken {
			best = token
		}
	}
	if best < 0 {
		return nil
	}
	taken := 0.0
	for _, token := range takes {
		taken += math.Exp(float64(row[token]))
		if taken >= 0.5 {
			return nil
		}
	}
	if l.rules.takes(best) && l.rules.begins(b, best) {
		return nil // another constraint excludes the token as well
	}
	where := "here"
	if len(l.template.Blanks) > 1 {
		where = fmt.Sprintf("in blank %d", blank+1)
	}
	text := strings.TrimSpace(w.plan.filler.tokenizer.Token(best))
	return []string{fmt.Sprintf("the model would rather put %q %s (%.0f %%): %s", text, where,
		100*math.Exp(float64(row[best])), w.advice(l.rules, b, best))}
}

// advice says which template or options would let blank b take the token.
func (w *work) advice(r *rules, b tokenize.Blank, token int) string {
	class := w.plan.filler.vocabulary.classes()[token]
	switch text := w.plan.filler.tokenizer.Token(token); {
	case b.TouchesLeft:
		return "write a blank after the word on its left, or take fill=any"
	case class&continuingToken != 0:
		return "write the blank onto the word that it goes on with, or take fill=any"
	case r.fill == FillWords && strings.Contains(".!?", text):
		return "end the sentence, or take fill=tokens"
	case r.fill == FillWords:
		return "fill=tokens takes it"
	}
	return "fill=any takes it"
}
