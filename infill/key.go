package infill

import "encoding/binary"

// appendKey writes what numbers are kept by in a map.
func appendKey(key []byte, numbers []int) []byte {
	for _, number := range numbers {
		key = binary.AppendUvarint(key, uint64(number))
	}
	return key
}
