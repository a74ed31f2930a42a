package regular

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// Digest reads to the end and gives the number of bytes and their SHA-256 in hexadecimal digits.
func Digest(r io.Reader) (int64, string, error) {
	h := sha256.New()
	// In pieces that are large enough for system calls not to count.
	n, err := io.CopyBuffer(h, struct{ io.Reader }{r}, make([]byte, 256<<10))
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// SHA256 is the SHA-256 of a file, in hexadecimal digits.
func SHA256(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	_, sum, err := Digest(file)
	return sum, err
}
