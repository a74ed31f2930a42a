package tui

import (
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"infill/infill"
)

// BenchmarkView draws the pages of a finished run: what a key costs.
func BenchmarkView(b *testing.B) {
	c, filler := testConfig(b, two)
	s, err := request{filler: filler, template: two, options: c.Options}.run(b.Context(), make(chan *snapshot, 1),
		time.Now)
	if err != nil {
		b.Fatal(err)
	}
	for page := range runsView {
		for _, size := range [][2]int{{80, 24}, {240, 70}} {
			b.Run(fmt.Sprintf("%s-%dx%d", page, size[0], size[1]), func(b *testing.B) {
				m := newModel(b.Context(), c)
				m.run.snapshot = s
				m.width, m.height, m.view = size[0], size[1], page
				m.list()
				b.ReportAllocs()
				for b.Loop() {
					m.frame = ""
					m.screen()
				}
			})
		}
	}
}

// BenchmarkResize changes the size at every frame.
func BenchmarkResize(b *testing.B) {
	c, filler := testConfig(b, two)
	s, err := request{filler: filler, template: two, options: c.Options}.run(b.Context(), make(chan *snapshot, 1),
		time.Now)
	if err != nil {
		b.Fatal(err)
	}
	m := newModel(b.Context(), c)
	m.run.snapshot = s
	m.list()
	i := 0
	for b.Loop() {
		i++
		m.Update(tea.WindowSizeMsg{Width: 60 + i%150, Height: 16 + i%50})
		m.screen()
	}
}

// BenchmarkSnapshot is what a frame costs the run: of a short one, and of one with
// many fills.
func BenchmarkSnapshot(b *testing.B) {
	_, filler := testConfig(b, two)
	for _, slots := range []string{two, "she [MASK] the [MASK] and [MASK] [MASK] ."} {
		template, err := filler.Template(slots)
		if err != nil {
			b.Fatal(err)
		}
		for _, steps := range []int{50, 2000} {
			o := chainOptions()
			o.Steps = steps
			r := newRecorder(template, o, time.Now)
			if _, err := filler.Fill(b.Context(), slots, o, func(p infill.Progress) { r.add(p) }); err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("slots=%d/steps=%d/fills=%d", len(template.Slots), steps, r.snap().Distinct),
				func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						r.snap()
					}
				})
		}
	}
}
