package serve

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// numbers holds the metrics that /metrics serves.
type numbers struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	texts    prometheus.Counter
}

func newNumbers(s *Server) *numbers {
	n := &numbers{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "infill_requests_total", Help: "Requests answered, by route and status."},
			[]string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "infill_request_seconds",
				Help:    "Time from a request to its answer, waiting included.",
				Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}},
			[]string{"route"}),
		texts: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "infill_texts_total", Help: "Texts filled or scored."}),
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	counter := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
	}
	calls := func(which int) func() float64 {
		return func() (sum float64) {
			for _, f := range s.Models {
				calls, rows := f.Calls()
				sum += float64([]int64{calls, rows}[which])
			}
			return sum
		}
	}
	n.registry.MustRegister(n.requests, n.seconds, n.texts,
		gauge("infill_requests_at_work", "Requests at work.", func() float64 { return float64(s.gate.inside.Load()) }),
		gauge("infill_requests_waiting", "Requests that wait for their turn.",
			func() float64 { return float64(s.gate.waiting.Load()) }),
		counter("infill_requests_refused_total", "Requests refused because too many were there.",
			func() float64 { return float64(s.gate.refused.Load()) }),
		counter("infill_model_calls_total", "Calls of the model; rows by calls is the mean size of a batch.", calls(0)),
		counter("infill_model_rows_total", "Rows that went through the model.", calls(1)),
		gauge("infill_models", "Models that are served.", func() float64 { return float64(len(s.Models)) }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return n
}

func (n *numbers) handler() http.Handler {
	return promhttp.HandlerFor(n.registry, promhttp.HandlerOpts{})
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the writer below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// observed counts requests, and keeps a panic in one of them from ending the others.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, seen := time.Now(), &recorder{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				if s.Log != nil {
					s.Log(fmt.Sprintf("panic at %s: %v\n%s", r.URL.Path, p, debug.Stack()))
				}
				if seen.status == 0 {
					writeProblem(seen,
						&Problem{status: http.StatusInternalServerError, Message: "the server failed at this request"})
				}
			}
			// A route of its own for each path that someone tries would fill the memory.
			route := r.Pattern
			if route == "" || route == "/" {
				route = "other"
			}
			n := s.numbers
			n.requests.WithLabelValues(route, strconv.Itoa(seen.status)).Inc()
			n.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
		}()
		next.ServeHTTP(seen, r)
	})
}
