package models

import (
	"fmt"
	"time"

	"infill/cmd/infill/internal/cli"
	"infill/models/hub"
)

// transfer shows the progress of a download.
type transfer struct {
	bar         *cli.Bar
	file        string
	have, total int64 // bytes
}

var _ hub.Progress = (*transfer)(nil)

func (t *transfer) Begin(file string, have, total int64) { t.file, t.have, t.total = file, have, total }

func (t *transfer) Advance(bytes int64) {
	t.have += bytes
	t.bar.Tell(t.have, t.total, func() string {
		return fmt.Sprintf("%s, %s of %s", t.file, bytesText(t.have), bytesText(t.total))
	})
}

func (t *transfer) Waiting(reason error, wait time.Duration) {
	t.bar.Say("%s; next try in %s", reason, wait.Round(100*time.Millisecond))
}

// bytesText returns a size in words.
func bytesText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
