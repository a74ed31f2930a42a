package samplers

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Streams returns one random stream per chain. A stream depends only on
// the seed, the label and the chain's number, not on the number of chains.
// The label names the purpose of the chains; different labels give
// independent streams.
func Streams(seed uint64, label string, chains int) []*rand.Rand {
	streams := make([]*rand.Rand, chains)
	for c := range streams {
		// With the label's length first, no two (seed, label, chain) share a key.
		key := binary.LittleEndian.AppendUint64(nil, seed)
		key = binary.LittleEndian.AppendUint64(key, uint64(len(label)))
		key = append(key, label...)
		key = binary.LittleEndian.AppendUint64(key, uint64(c))
		streams[c] = rand.New(rand.NewChaCha8(sha256.Sum256(key)))
	}
	return streams
}
