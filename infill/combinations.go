package infill

import (
	"errors"
	"slices"

	"infill/samplers"
	"infill/tokenize"
)

// combinations makes a layout for each combination of the lengths that the blanks of a
// template may have, once its further texts are read.
func (f *Filler) combinations(typed *tokenize.Template, rules *rules, lengths [][2]int, o *Options,
	spelling tokenize.Spelling) (layouts []*layout, err error) {
	others, err := f.otherLayouts(typed, o)
	if err != nil {
		return nil, err
	}
	context, err := f.context(o)
	if err != nil {
		return nil, err
	}
	templates, err := typed.Expand(lengths)
	if err != nil {
		return nil, err
	}
	possible := templates[:0]
	for _, t := range templates {
		missing, err := rules.misses(t)
		if err != nil {
			return nil, err
		}
		if !missing {
			possible = append(possible, t)
		}
	}
	if templates = possible; len(templates) == 0 {
		return nil, misfit("pattern",
			"no word that the model can write fits: loosen the patterns, or allow more pieces, as in [MASK:1-4~...]")
	}
	if o.Pins != nil {
		if len(templates) != 1 {
			return nil, misfit("pins", "the template has %d combinations of lengths: name one", len(templates))
		}
		if err := f.checkPins(templates[0], o.Pins); err != nil {
			return nil, err
		}
	}
	var unlike error // a long word's layout, and none of another text
	for _, t := range templates {
		if o.Fill == fillWords {
			f.goOn(t)
		}
		t.After(context)
		if err := f.checkLength(len(t.IDs)); err != nil {
			return nil, err
		}
		t.Spelling = spelling
		p := &layout{typed: typed, template: t, context: context}
		if p.variables, p.allowed, p.cut, err = rules.compile(t, o.Pins); err != nil {
			if !o.Constraints.Any() && o.Pins == nil &&
				!slices.ContainsFunc(t.Blanks, func(b tokenize.Blank) bool { return b.Pattern != "" }) {
				var option *OptionError
				if errors.As(err, &option) { // nothing constrains it but the model
					err = misfit(option.Option, "model %s: its vocabulary (vocab.txt or tokenizer.json) lacks what "+
						"to fill with: %s", f.Model().Name, option.Reason)
				}
			}
			return nil, err
		}
		if err := f.alignTogether(p, others); err != nil {
			if rules.needsLexicon(t) {
				unlike = err
				continue
			}
			return nil, err
		}
		if err := checkTogether(p, o); err != nil {
			return nil, err
		}
		rules.measure(p)
		if rules.oneWord(t, o) {
			p.rules, p.counted, p.lengths = rules, []int{1}, nil
		}
		layouts = append(layouts, p)
	}
	if len(layouts) == 0 {
		return nil, unlike
	}
	for i, p := range layouts {
		p.place, p.places = i, len(layouts)
	}
	return layouts, nil
}

// goOn makes of the text that is written onto a blank on its left, "[MASK]ing", pieces that go on with the
// word that fills it, ##ing: the tokenizer reads it as a word of its own, which the model sees beside any
// other. Only IDs and Slots change, which the model is asked by.
func (f *Filler) goOn(t *tokenize.Template) {
	for _, b := range t.Blanks {
		if !b.TouchesRight {
			continue
		}
		from := t.Slots[b.First+b.Slots-1] + 1
		to := from + 1
		for f.tokenizer.Continues(t.IDs[to]) {
			to++
		}
		word := ""
		for _, id := range t.IDs[from:to] {
			word += f.pieceText(id)
		}
		if ids, err := f.candidate(word, tokenize.Blank{TouchesLeft: true}, f.continuations()); err == nil {
			t.IDs, t.Slots = slices.Concat(t.IDs[:from], ids, t.IDs[to:]), slices.Clone(t.Slots)
			for i := b.First + b.Slots; i < len(t.Slots); i++ {
				t.Slots[i] += len(ids) - (to - from)
			}
		}
	}
}

// checkTogether refuses what needs slots that move one by one.
func checkTogether(p *layout, o *Options) error {
	why := p.together()
	if why == "" {
		return nil
	}
	kind := samplers.Describe(o.moves())
	switch {
	case o.Mode == ModeDecode:
		return misfit("mode", "decode fills slot by slot, and %s need several at once: take sample or best", why)
	case !o.answers() && (kind.Conditionals || kind.Distances):
		return misfit("sampler", "%s cannot move slots together, which %s need: take %s", o.Sampler, why,
			defaultSampler)
	case o.Initial.Kind == StartMask:
		return misfit("initial", "mask fills slot by slot, and %s need several at once: take model or random", why)
	}
	return nil
}

// checkPins returns an *OptionError for pins that do not fit the template.
func (f *Filler) checkPins(template *tokenize.Template, pins []int) error {
	if len(pins) != len(template.Slots) {
		return misfit("pins", "%d given, the template has %d slots", len(pins), len(template.Slots))
	}
	for _, tie := range template.Ties {
		for _, slot := range tie {
			if pins[slot] != pins[tie[0]] {
				return misfit("pins", "slots %d and %d have one name and different pins", tie[0]+1, slot+1)
			}
		}
	}
	free := false
	for slot, pin := range pins {
		if pin == Free {
			free = true
		} else if _, ok := slices.BinarySearch(f.fillable, pin); !ok {
			return misfit("pins", "slot %d cannot take token %d", slot+1, pin)
		}
	}
	if !free {
		return misfit("pins", "every slot is pinned: leave one to the sampler")
	}
	return nil
}
