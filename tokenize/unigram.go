package tokenize

import "math"

// unigram is the Unigram model (Kudo 2018). Of all ways to cut a piece into
// tokens, it takes the way with the highest sum of scores. It finds this way
// from left to right (Viterbi).
type unigram struct {
	ids     map[string]int
	scores  []float64
	longest int     // bytes of the longest token
	unknown float64 // score of a character that is no token
	id      int     // id of the unknown token
}

var _ cutter = (*unigram)(nil)

// unknownPenalty is how much lower than the worst token's score an unknown
// character's score is, as in SentencePiece.
const unknownPenalty = 10

func newUnigram(tokens []string, scores []float64, unknown int) *unigram {
	m := &unigram{ids: make(map[string]int, len(tokens)), scores: scores, unknown: math.Inf(1), id: unknown}
	for id, token := range tokens {
		m.ids[token] = id
		m.longest = max(m.longest, len(token))
		m.unknown = min(m.unknown, scores[id])
	}
	m.unknown -= unknownPenalty
	return m
}

// step is the best way to a place: its score, last token, and that one's start.
type step struct {
	score       float64
	from, token int
	reached     bool
}

// cut adds a piece's cut with the largest sum of scores (Viterbi): best has the
// way to each place, which is read from its end.
func (m *unigram) cut(e *encoder, piece letters) {
	text := string(piece.runes)
	starts := make([]int, 0, len(piece.runes)+1) // byte offset of each character
	for at := range text {
		starts = append(starts, at)
	}
	starts = append(starts, len(text))
	n := len(piece.runes)
	best := make([]step, n+1)
	offer := func(from, to, token int, score float64) {
		s := &best[to]
		if !s.reached || score > s.score {
			*s = step{score, from, token, true}
		}
	}
	for from := range n {
		known := false
		for to := from + 1; to <= n && starts[to]-starts[from] <= m.longest; to++ {
			id, ok := m.ids[text[starts[from]:starts[to]]]
			if ok {
				offer(from, to, id, best[from].score+m.scores[id])
				known = known || to == from+1
			}
		}
		if !known {
			offer(from, from+1, m.id, best[from].score+m.unknown)
		}
	}
	var path []step // steps of the best way, from the last to the first
	ends := make([]int, 0, n)
	for at := n; at > 0; at = best[at].from {
		s := best[at]
		last := len(path) - 1
		if last >= 0 && s.token == m.id && path[last].token == m.id {
			path[last].from = s.from // neighbouring unknown characters are one token
			continue
		}
		path = append(path, s)
		ends = append(ends, at)
	}
	for i := len(path) - 1; i >= 0; i-- {
		e.addPiece(path[i].token, piece.part(path[i].from, ends[i]).span())
	}
}
