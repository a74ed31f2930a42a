package infill

// MaxBytes estimates how much memory Fill needs at most for so many model rows, in bytes, without the model.
func (p *Plan) MaxBytes(rows int) float64 {
	o, vocabulary := &p.Options, p.filler.tokenizer.VocabularySize()
	n, r, texts := float64(p.Slots()), float64(rows), float64(1+len(o.Together))
	candidates := float64(o.Candidates)
	switch {
	case o.Candidates == AutoCandidates:
		candidates = defaultCandidates
	case o.Candidates == 0:
		candidates = float64(vocabulary)
	}
	const (
		rememberedRows = 64 << 20 // of a target, see package lm
		conditional    = 4 << 10  // of a node of the search, with what leads to it
		category       = 48       // of a map
		state          = 512      // beside its slots
	)
	bytes := float64(4*o.Top+64) * (state + 16*n)
	if o.Together != nil {
		bytes += rememberedRows
	}
	switch {
	case o.searches():
		// The first slot of an order has one node, and one list of categories.
		return bytes + r*conditional + 2*texts*((n-1)*min(r*conditional/8, float64(vocabulary))+conditional/8)*category
	case o.draws():
		return bytes + float64(o.Chains)*(state+2*n*(state+8*n))
	}
	bytes += min(rememberedRows, 4*r*n*candidates) * 3 / 2
	if o.weighs() { // neighbours of what is known, and conditionals of the states at work
		return bytes + 2*drawnAtOnce*n*n*8*candidates + r*state
	}
	chains := float64(o.Chained().Chains) * float64(max(1, len(o.Ladder)))
	return bytes + chains*n*candidates*8*6 + chains*float64(o.Steps+1)*4 + r/n*(state+8*n)
}
