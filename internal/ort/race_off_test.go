//go:build !race

package ort

const raceDetector = false
