package eval

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"time"

	"gonum.org/v1/gonum/stat"
)

// StatusFile is in the folder of a run while a process is at work there, for
// those who watch. It is no part of the run: nothing is read from it.
const StatusFile = ".status.json"

// Status is the content of StatusFile.
type Status struct {
	Model    string `json:"model"`
	Method   string `json:"method"`
	Sentence int    `json:"sentence"` // number of the sentence, from 0
	Step     int    `json:"step"`
	Steps    int    `json:"steps"`
	// LogLikelihood is the mean U of the chains now, in nats, null where the
	// sampler does not know it.
	LogLikelihood   *float64 `json:"log_likelihood"`
	Done            int      `json:"done"` // fills
	Total           int      `json:"total"`
	ChainsPerSecond float64  `json:"chains_per_second"`
	// SecondsLeft is null while it is not known.
	SecondsLeft *float64  `json:"seconds_left"`
	Written     time.Time `json:"written"`
}

// statusPause is how often the file is written at most.
const statusPause = time.Second

// status writes the file of a folder.
type status struct {
	folder *folder
	last   time.Time
}

func (f *folder) newStatus() *status { return &status{folder: f} }

// write tells where the run is. That it cannot is no reason to stop the run.
func (s *status) write(p Progress) {
	now := time.Now()
	if now.Sub(s.last) < statusPause {
		return
	}
	s.last = now
	content := Status{
		Model: p.Model, Method: p.Method, Sentence: p.Sentence, Step: p.Step, Steps: p.Steps, Done: p.Done, Total: p.Total,
		ChainsPerSecond: p.ChainsPerSecond, Written: now,
	}
	if u := stat.Mean(p.Moment.LogLikelihoods, nil); !math.IsNaN(u) && !math.IsInf(u, 0) {
		content.LogLikelihood = &u
	}
	if p.Left >= 0 {
		seconds := p.Left.Seconds()
		content.SecondsLeft = &seconds
	}
	text, err := json.Marshal(content)
	if err != nil {
		return
	}
	// Whole or not at all, but not synced: nobody needs it after a crash.
	path := filepath.Join(s.folder.dir, StatusFile)
	if err := os.WriteFile(path+"0", text, 0o666); err == nil {
		_ = os.Rename(path+"0", path)
	}
}

func (s *status) remove() {
	_ = os.Remove(filepath.Join(s.folder.dir, StatusFile))
}

// pace tells how fast a run goes. The time left is that which fills of the same
// method took on the average, because methods differ twentyfold.
type pace struct {
	start, last time.Time // of the process, of the end of its last fill
	jobs        float64
	chains      int // that ended in this process
	// seconds and number of the fills done, and number of those to come, by method
	seconds        map[[2]string]float64
	number, coming map[[2]string]int
}

func newPace(work []job, done map[key]*Record, jobs int, now time.Time) *pace {
	p := &pace{start: now, last: now, jobs: float64(jobs), seconds: map[[2]string]float64{}, number: map[[2]string]int{}, coming: map[[2]string]int{}}
	for _, j := range work {
		p.coming[[2]string{j.model.Name, j.variant.Name}]++
	}
	for _, r := range done {
		p.add(r)
	}
	return p
}

func (p *pace) add(r *Record) {
	method := [2]string{r.Model, r.Method}
	p.seconds[method] += r.Seconds
	p.number[method]++
}

// ended counts a fill of this process.
func (p *pace) ended(r *Record, now time.Time) {
	p.add(r)
	p.coming[[2]string{r.Model, r.Method}]--
	p.chains += len(r.Chains)
	p.last = now
}

// at returns chains per second and the time left; negative while no fill is done.
func (p *pace) at(now time.Time) (rate float64, left time.Duration) {
	if elapsed := now.Sub(p.start).Seconds(); elapsed > 0 {
		rate = float64(p.chains) / elapsed
	}
	seconds, number := 0.0, 0
	for method, n := range p.number {
		seconds, number = seconds+p.seconds[method], number+n
	}
	if number == 0 {
		return rate, -1
	}
	rest, longest := 0.0, 0.0
	for method, n := range p.coming {
		mean := seconds / float64(number) // of all, where the method has none yet
		if own := p.number[method]; own > 0 {
			mean = p.seconds[method] / float64(own)
		}
		rest += float64(n) * mean
		if n > 0 {
			longest = max(longest, mean)
		}
	}
	// What has passed since the last end is done, but no more than one fill.
	rest -= min(p.jobs*now.Sub(p.last).Seconds(), longest)
	return rate, time.Duration(max(rest, 0) / p.jobs * float64(time.Second))
}
