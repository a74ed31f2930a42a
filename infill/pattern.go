package infill

import (
	"cmp"
	"container/heap"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"

	"infill/samplers"
	"infill/tokenize"
)

// A pattern is what the letters of a blank's word have to be: a regular expression that the
// whole word has to match, as an automaton that reads the pieces of the vocabulary. Its
// states are sets of places in the expression's program, numbered as they are met.
type pattern struct {
	text       string
	whole      *regexp.Regexp
	program    *syntax.Prog
	sets       [][]uint32     // the places of each state, ascending; state 0 is the start
	numbers    map[string]int // of the sets
	steps      map[step]int   // what a state becomes by a character; -1: nothing matches any more
	vocabulary *vocabulary
	starts     []move         // the pieces that may begin the word, from state 0
	goes       map[int][]move // those that may go on with it, by state
}

type step struct {
	state int
	rune  rune
}

// A move is a piece of the vocabulary and the state that it leads to.
type move struct{ token, state int }

const (
	patternPieces = 3       // of a word of a blank without a length of its own
	patternWords  = 250     // of several pieces, the likeliest
	maxStates     = 2000    // of a pattern
	maxMoves      = 4 << 20 // of all its states together
	maxPops       = 40      // words that are looked at for each that is kept
)

// newPattern compiles the pattern of a blank, which the tokenizer has read without a fault.
// pieces are those that may begin the word, ascending.
func (v *vocabulary) newPattern(text string, pieces []int) (*pattern, error) {
	whole := `\A(?:` + text + `)\z`
	if !v.tokenizer.Cased() {
		whole = `(?i)` + whole
	}
	expression, err := syntax.Parse(whole, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(expression.Simplify())
	if err != nil {
		return nil, err
	}
	p := &pattern{text: text, whole: regexp.MustCompile(whole), program: program, numbers: map[string]int{},
		steps: map[step]int{}, vocabulary: v, goes: map[int][]move{}}
	start := p.number([]uint32{uint32(program.Start)})
	p.starts = p.moves(start, pieces)
	return p, nil
}

// number is the state of a set of places.
func (p *pattern) number(set []uint32) int {
	key := fmt.Sprint(set)
	n, ok := p.numbers[key]
	if !ok {
		n = len(p.sets)
		p.numbers[key] = n
		p.sets = append(p.sets, set)
	}
	return n
}

// reach adds the places that lead on from a place without a character. Of the beginning
// and the end of the text, conditions hold where at says so.
func (p *pattern) reach(place uint32, at syntax.EmptyOp, seen map[uint32]bool) {
	if seen[place] {
		return
	}
	seen[place] = true
	switch in := p.program.Inst[place]; in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		p.reach(in.Out, at, seen)
		p.reach(in.Arg, at, seen)
	case syntax.InstCapture, syntax.InstNop:
		p.reach(in.Out, at, seen)
	case syntax.InstEmptyWidth:
		if syntax.EmptyOp(in.Arg)&^at == 0 {
			p.reach(in.Out, at, seen)
		}
	}
}

// after is the state after a character, -1 where nothing matches any more.
func (p *pattern) after(state int, r rune) int {
	key := step{state, r}
	next, ok := p.steps[key]
	if ok {
		return next
	}
	var at syntax.EmptyOp
	if state == 0 {
		at = syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	seen := map[uint32]bool{}
	for _, place := range p.sets[state] {
		p.reach(place, at, seen)
	}
	var set []uint32
	for place := range seen {
		switch in := p.program.Inst[place]; in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if in.MatchRune(r) {
				set = append(set, in.Out)
			}
		}
	}
	if next = -1; set != nil {
		slices.Sort(set)
		next = p.number(slices.Compact(set))
	}
	p.steps[key] = next
	return next
}

// ends reports whether the word may end in a state.
func (p *pattern) ends(state int) bool {
	seen := map[uint32]bool{}
	for _, place := range p.sets[state] {
		p.reach(place, syntax.EmptyEndText|syntax.EmptyEndLine, seen)
	}
	for place := range seen {
		if p.program.Inst[place].Op == syntax.InstMatch {
			return true
		}
	}
	return false
}

// moves are what pieces lead to from a state.
func (p *pattern) moves(state int, pieces []int) []move {
	var list []move
next:
	for _, token := range pieces {
		at := state
		for _, r := range p.vocabulary.reads()[token] {
			if at = p.after(at, r); at < 0 {
				continue next
			}
		}
		list = append(list, move{token, at})
	}
	return list
}

// from are the moves of the pieces that go on with a word, from a state.
func (p *pattern) from(state int, pieces []int) []move {
	list, ok := p.goes[state]
	if !ok {
		list = p.moves(state, pieces)
		p.goes[state] = list
	}
	return list
}

// possible are the pieces, ascending, that a place of a word may have beside those that are
// known: word holds samplers.Open where a piece is not.
func (p *pattern) possible(word []int, at int) []int {
	movesFrom := func(place, state int) []move {
		if place == 0 {
			return p.starts
		}
		return p.from(state, p.vocabulary.going())
	}
	states := map[int]bool{0: true}
	for place := range at {
		next := map[int]bool{}
		for state := range states {
			for _, m := range movesFrom(place, state) {
				if word[place] == samplers.Open || word[place] == m.token {
					next[m.state] = true
				}
			}
		}
		states = next
	}
	ending := map[move]bool{} // by place and state
	var ends func(place, state int) bool
	ends = func(place, state int) bool {
		if place == len(word) {
			return p.ends(state)
		}
		key := move{place, state}
		known, ok := ending[key]
		if !ok {
			known = slices.ContainsFunc(movesFrom(place, state), func(m move) bool {
				return (word[place] == samplers.Open || word[place] == m.token) && ends(place+1, m.state)
			})
			ending[key] = known
		}
		return known
	}
	var tokens []int
	for state := range states {
		for _, m := range movesFrom(at, state) {
			if ends(at+1, m.state) {
				tokens = append(tokens, m.token)
			}
		}
	}
	slices.Sort(tokens)
	return slices.Compact(tokens)
}

// among are the words of a lexicon of more pieces than that which match, by their number.
func (p *pattern) among(l *lexicon, pieces int) map[int][][]int {
	matching := map[int][][]int{}
	var text []byte
	for n := pieces + 1; n <= listedPieces; n++ {
		for _, word := range l.forward[n].words {
			text = text[:0]
			for _, piece := range word[:n] {
				text = append(text, p.vocabulary.reads()[piece]...)
			}
			if p.whole.Match(text) {
				ids := make([]int, n)
				for i := range ids {
					ids[i] = int(word[i])
				}
				matching[n] = append(matching[n], ids)
			}
		}
	}
	return matching
}

// bestWords are those words whose pieces have the highest sum of log-probabilities logp, [pieces][vocabulary].
func bestWords(words [][]int, number int, logp [][]float32) [][]int {
	sum := func(ids []int) (sum float32) {
		for i, id := range ids {
			sum += logp[i][id]
		}
		return sum
	}
	slices.SortStableFunc(words, func(a, b []int) int { return cmp.Compare(sum(b), sum(a)) })
	return words[:min(number, len(words))]
}

// A spelling is a word of so many pieces, or the beginning of one.
type spelling struct {
	bound float64 // of the best word that begins so
	rank  []int   // the number of each piece's move among those sorted
	moves []move
}

type spellings []spelling

func (s spellings) Len() int           { return len(s) }
func (s spellings) Less(i, j int) bool { return s[i].bound > s[j].bound }
func (s spellings) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *spellings) Push(x any)        { *s = append(*s, x.(spelling)) }
func (s *spellings) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// A choice of a move, and the most that the pieces from it on can add up to.
type rated struct {
	move
	most float64
}

// words are the words of that many pieces which match, at most number of them, those first
// whose pieces have the highest sum of log-probabilities logp, [pieces][vocabulary]; nil
// logp takes them as they come. The tokenizer would cut each of them into these pieces,
// except for those of a blank that goes on with a word.
func (p *pattern) words(b tokenize.Blank, pieces, number int, logp [][]float32) ([][]int, error) {
	going := p.vocabulary.going()
	value := func(slot, token int) float64 {
		if logp == nil {
			return 0
		}
		return float64(logp[slot][token])
	}
	// The moves from a state at a piece's place that lead to a whole word, the best first.
	type place struct{ slot, state int }
	sorted := map[place][]rated{}
	total := 0
	var options func(at place) ([]rated, error)
	options = func(at place) ([]rated, error) {
		if list, ok := sorted[at]; ok {
			return list, nil
		}
		moves := p.starts
		if at.slot > 0 {
			moves = p.from(at.state, going)
		}
		if total += len(moves); len(p.sets) > maxStates || total > maxMoves {
			return nil, misfit("pattern", "%s is too wide for words of %s: bound its repetitions, or write the "+
				"number of pieces as in [MASK:1~...]", strconv.Quote(p.text), countPieces(pieces))
		}
		list := []rated{}
		for _, m := range moves {
			most := value(at.slot, m.token)
			if at.slot == pieces-1 {
				if !p.ends(m.state) {
					continue
				}
			} else {
				rest, err := options(place{at.slot + 1, m.state})
				if err != nil {
					return nil, err
				}
				if len(rest) == 0 {
					continue
				}
				most += rest[0].most
			}
			list = append(list, rated{m, most})
		}
		slices.SortStableFunc(list, func(a, b rated) int {
			switch {
			case a.most > b.most:
				return -1
			case a.most < b.most:
				return 1
			}
			return a.token - b.token
		})
		sorted[at] = list
		return list, nil
	}
	first, err := options(place{})
	if err != nil || len(first) == 0 {
		return nil, err
	}
	queue := &spellings{{bound: first[0].most, rank: []int{0}, moves: []move{first[0].move}}}
	var found [][]int
	for pops := 0; queue.Len() > 0 && len(found) < number && pops < maxPops*number; {
		s := heap.Pop(queue).(spelling)
		n := len(s.moves) - 1
		at := place{slot: n}
		if n > 0 {
			at.state = s.moves[n-1].state
		}
		// The next best instead of the last piece.
		siblings := sorted[at]
		if next := s.rank[n] + 1; next < len(siblings) {
			queue2 := spelling{s.bound - siblings[next-1].most + siblings[next].most, slices.Clone(s.rank),
				slices.Clone(s.moves)}
			queue2.rank[n], queue2.moves[n] = next, siblings[next].move
			heap.Push(queue, queue2)
		}
		if n < pieces-1 {
			rest := sorted[place{n + 1, s.moves[n].state}]
			heap.Push(queue,
				spelling{s.bound, append(slices.Clone(s.rank), 0), append(slices.Clone(s.moves), rest[0].move)})
			continue
		}
		pops++
		ids := make([]int, pieces)
		for i, m := range s.moves {
			ids[i] = m.token
		}
		if p.vocabulary.cutSo(b, ids) {
			found = append(found, ids)
		}
	}
	return found, nil
}
