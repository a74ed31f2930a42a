//go:build race

package ort

// raceDetector: its bookkeeping grows with the goroutines and memory that a
// program has ever used.
const raceDetector = true
