package eval

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// statusFile is in the folder of a run while a process is at work there, for those who watch. It is no part of the run.
const statusFile = ".status.json"

// Progress is a moment of a run, and what the status file holds.
type Progress struct {
	Model     string `json:"model"`
	Method    string `json:"method"`
	Sentence  int    `json:"sentence"` // number of the sentence, from 0
	Sentences int    `json:"-"`
	Step      int    `json:"step"`
	Steps     int    `json:"steps"`
	// LogLikelihood is the mean U of the chains now, in nats, null if the sampler does not know it.
	LogLikelihood *float64 `json:"log_likelihood"`
	// Done and Total count fills, a fill being one sentence by one method; Kept
	// of those done were there from an earlier start.
	Done   int `json:"done"`
	Kept   int `json:"-"`
	Total  int `json:"total"`
	Chains int `json:"-"` // of each fill
	// ChainsPerSecond is the rate of this process, 0 while no fill is done.
	ChainsPerSecond float64 `json:"chains_per_second"`
	// SecondsLeft is how long the rest will take, by what fills of each method have
	// taken so far for their blanks and tokens; null while that is not known.
	SecondsLeft *float64  `json:"seconds_left"`
	Written     time.Time `json:"written"`
	// Scoring reports that all fills are done and the scores are being computed.
	Scoring bool `json:"-"`
}

// statusPause is how often the file is written at most.
const statusPause = time.Second

// writeStatus tells those who watch where the run is, now and then. That it cannot is no reason to stop the run.
func (f *folder) writeStatus(p Progress) {
	if p.Written.Sub(f.told) < statusPause {
		return
	}
	f.told = p.Written
	text, err := json.Marshal(p)
	if err != nil {
		return
	}
	// Whole or not at all, but not synced: nobody needs it after a crash.
	path := filepath.Join(f.dir, statusFile)
	if err := os.WriteFile(path+"0", text, 0o666); err == nil {
		_ = os.Rename(path+"0", path)
	}
}

// pace tells how fast a run goes. The time left is by what fills of the same method
// took for their size, because methods differ twentyfold, and sentences too.
type pace struct {
	start, last time.Time // of the process, of the end of its last fill
	jobs        float64
	chains      int       // that ended in this process
	sizes       []float64 // of a fill by sentence; the time is about proportional
	// by model and method
	done, coming map[[2]string]effort
}

// effort is the size and the number of fills, and the seconds of those done.
type effort struct {
	size, seconds float64
	number        int
}

func (e effort) plus(size, seconds float64, number int) effort {
	return effort{e.size + size, e.seconds + seconds, e.number + number}
}

func newPace(work []key, done map[key]*Record, sizes []float64, jobs int, now time.Time) *pace {
	p := &pace{start: now, last: now, jobs: float64(jobs), sizes: sizes, done: map[[2]string]effort{},
		coming: map[[2]string]effort{}}
	for _, k := range work {
		method := [2]string{k.model, k.method}
		p.coming[method] = p.coming[method].plus(sizes[k.sentence], 0, 1)
	}
	for _, r := range done {
		p.add(r)
	}
	return p
}

func (p *pace) add(r *Record) {
	method := [2]string{r.Model, r.Method}
	p.done[method] = p.done[method].plus(p.sizes[r.Sentence], r.Seconds, 1)
}

// ended counts a fill of this process.
func (p *pace) ended(r *Record, now time.Time) {
	p.add(r)
	method := [2]string{r.Model, r.Method}
	p.coming[method] = p.coming[method].plus(-p.sizes[r.Sentence], 0, -1)
	p.chains, p.last = p.chains+len(r.Chains), now
}

// at returns the chains per second and the seconds left; nil while no fill is done.
func (p *pace) at(now time.Time) (rate float64, left *float64) {
	if elapsed := now.Sub(p.start).Seconds(); elapsed > 0 {
		rate = float64(p.chains) / elapsed
	}
	var all effort
	for _, d := range p.done {
		all = all.plus(d.size, d.seconds, d.number)
	}
	if all.number == 0 {
		return rate, nil
	}
	rest, longest := 0.0, 0.0
	for method, c := range p.coming {
		d, ok := p.done[method]
		if !ok {
			d = all
		}
		seconds := d.seconds * c.size / d.size
		rest, longest = rest+seconds, max(longest, seconds/float64(max(c.number, 1)))
	}
	// What has passed since the last end is done, but no more than one fill.
	rest -= min(p.jobs*now.Sub(p.last).Seconds(), longest)
	rest = max(rest, 0) / p.jobs
	return rate, &rest
}
