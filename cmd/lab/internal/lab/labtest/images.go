package labtest

import (
	"slices"
	"testing"
)

// GreyImages writes 2 × 2 pixels in IDX, even or fading from left to right.
func GreyImages(t *testing.T) string {
	t.Helper()
	return SmallImages(t, 0, 0, 0, 0, 128, 128, 128, 128, 255, 255, 255, 255, 0, 128, 0, 128, 128, 255, 128, 255)
}

// SmallImages writes images of 2 × 2 pixels in IDX, each ten times.
func SmallImages(t *testing.T, pixels ...byte) string {
	t.Helper()
	pixels = slices.Repeat(pixels, 10)
	head := []byte{0, 0, 8, 3, 0, 0, 0, byte(len(pixels) / 4), 0, 0, 0, 2, 0, 0, 0, 2}
	return Saved(t, "file", string(append(head, pixels...)))
}
