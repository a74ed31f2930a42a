package samplers_test

import (
	"context"
	"testing"

	"infill/samplers"
)

// flat gives each of its categories the same in every slot.
type flat struct{ asked int }

func (f *flat) PartialConditionals(_ context.Context, asked []samplers.Partial, take func(int, []float32)) error {
	f.asked += len(asked)
	for i := range asked {
		take(i, []float32{-1.4, -1.4, -1.4, -1.4})
	}
	return nil
}

// Where what may be asked for ends before a state is found, the search takes the shortest way
// to one: it asks for no more than it may, or than tell that state's probability.
func TestSearchOfManySlots(t *testing.T) {
	const slots = 80
	forth, back := make([]int, slots), make([]int, slots)
	for i := range slots {
		forth[i], back[i] = i, slots-1-i
	}
	for _, room := range []int{1, 300} {
		target := &flat{}
		s, err := samplers.NewSearch([]samplers.Law{{Target: target, Orders: [][]int{forth, back}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context(), 5, func() int { return max(0, room-target.asked) }, nil); err != nil {
			t.Fatal(err)
		}
		if most := max(room, 2*slots); len(s.Found()) == 0 || s.Proven() || target.asked > most+8 {
			t.Errorf("%d may be asked for: %d were, %d found, proven %v", room, target.asked, len(s.Found()),
				s.Proven())
		}
	}
}
