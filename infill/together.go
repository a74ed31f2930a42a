package infill

import (
	"maps"
	"slices"

	"infill/tokenize"
)

// alignTogether finds the layouts of the further texts whose blanks have the lengths of
// one, their variables in its order.
func (f *Filler) alignTogether(p *layout, others [][]*layout) error {
	keys := p.keys()
	for number, list := range others {
		// A layout that is aligned belongs to p alone.
		at := slices.IndexFunc(list, func(other *layout) bool {
			have := other.keys()
			return len(have) == len(keys) &&
				!slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(have, k) })
		})
		if at < 0 {
			return misfit("together", "the blanks of text %d are others than those of the first: as many, with the "+
				"same names and lengths", number+2)
		}
		other := *list[at]
		have := other.keys()
		variables := make([]variable, len(keys))
		for n, k := range keys {
			variables[n] = other.variables[slices.Index(have, k)]
		}
		other.variables = variables
		p.others = append(p.others, &other)
	}
	for n := range p.variables {
		v := &p.variables[n]
		if v.words != nil || v.find != nil {
			continue
		}
		for _, other := range p.others {
			v.support = common(v.support, other.variables[n].support)
		}
		if len(v.support) == 0 {
			return misfit("together", "there is nothing that blank %s may take in all of the texts", keys[n])
		}
	}
	return nil
}

// common are the numbers that two ascending lists share.
func common(a, b []int) []int {
	if len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] {
		return a
	}
	var both []int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			both = append(both, a[i])
			i, j = i+1, j+1
		}
	}
	return both
}

// renumbered are the lists of words by the blanks' numbers in another text, where a blank
// of a name may have another number.
func renumbered(words map[int][]string, first, other *tokenize.Template) map[int][]string {
	if len(words) == 0 {
		return words
	}
	number := func(blanks []tokenize.Blank, of tokenize.Blank, at int) int {
		if of.Name != "" {
			return slices.IndexFunc(blanks, func(b tokenize.Blank) bool { return b.Name == of.Name })
		}
		return slices.IndexFunc(blanks, func(b tokenize.Blank) bool {
			if b.Name == "" {
				at--
			}
			return at < 0
		})
	}
	list := maps.Clone(words)
	clear(list)
	for n, fills := range words {
		if n == 0 || n > len(first.Blanks) {
			list[n] = fills // of all blanks, or Check tells of it
			continue
		}
		unnamed := 0
		for _, b := range first.Blanks[:n-1] {
			if b.Name == "" {
				unnamed++
			}
		}
		if at := number(other.Blanks, first.Blanks[n-1], unnamed); at >= 0 {
			list[at+1] = fills
		}
	}
	return list
}

// otherLayouts are those of the further texts, [texts][lengths].
func (f *Filler) otherLayouts(first *tokenize.Template, o *Options) ([][]*layout, error) {
	var others [][]*layout
	for i, text := range o.Together {
		one := *o
		one.Together = nil
		typed, err := f.read(text)
		if err == nil {
			one.Words, one.Speech = renumbered(o.Words, first, typed), renumbered(o.Speech, first, typed)
			var p *Plan
			if p, err = f.plan(typed, Request{Options: one}, false); err == nil && p.windows != nil {
				return nil, misfit("together", "text %d has more tokens than the window of %d: shorten it, or give a "+
					"larger window", i+2, f.windowTokens(o))
			}
			if err == nil {
				others = append(others, p.layouts)
				continue
			}
		}
		return nil, misfit("together", "text %d: %v", i+2, err)
	}
	return others, nil
}
