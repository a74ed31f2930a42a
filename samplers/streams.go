package samplers

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Streams returns one random stream per chain, a function of the seed, the label and
// the chain's number alone: it is the same however many chains run beside it. The
// label names what the chains belong to; different labels give independent streams.
func Streams(seed uint64, label string, chains int) []*rand.Rand {
	streams := make([]*rand.Rand, chains)
	for c := range streams {
		// The label's length goes before it, so that no two (seed, label, chain) share a key.
		key := binary.LittleEndian.AppendUint64(nil, seed)
		key = binary.LittleEndian.AppendUint64(key, uint64(len(label)))
		key = append(key, label...)
		key = binary.LittleEndian.AppendUint64(key, uint64(c))
		streams[c] = rand.New(rand.NewChaCha8(sha256.Sum256(key)))
	}
	return streams
}
