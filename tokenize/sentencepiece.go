package tokenize

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"infill/internal/wire"
)

// pieceType is what a piece of a SentencePiece model is for.
type pieceType uint64

// The types, with the numbers of sentencepiece_model.proto.
const (
	pieceNormal pieceType = iota + 1
	pieceUnknown
	pieceControl
	pieceUserDefined
	pieceUnused
	pieceByte
)

// sentencePiece is a token of a SentencePiece model.
type sentencePiece struct {
	text  string
	score float64
	kind  pieceType
}

// sentencePieces is what a SentencePiece model file says, as far as the converted tokenizer depends on it.
// What the conversion has its own rules for is left unread: whether white space is squeezed and a blank put before a
// text (always), and whether unknown characters become bytes (never).
type sentencePieces struct {
	pieces       []sentencePiece
	model        uint64 // how pieces are chosen: modelUnigram
	unknown      int    // index of the unknown piece
	characterMap []byte // parseCharacterMap's
	unescaped    bool   // blanks are not written as ▁
	suffixed     bool   // ▁ ends a word
}

// modelUnigram is the one model that is taken.
const modelUnigram = 1

// longestPiece bounds a piece in bytes. Cutting a text takes time in proportion to it; SentencePiece itself makes 16
// characters.
const longestPiece = 1 << 10

// parseSentencePieces reads a serialized ModelProto of github.com/google/sentencepiece (src/sentencepiece_model.proto).
// What it allocates is in proportion to data.
func parseSentencePieces(data []byte) (*sentencePieces, error) {
	m := &sentencePieces{model: modelUnigram}
	escaped, suffixed := uint64(1), uint64(0)
	parsePiece := pieceReader()
	err := wire.Open(bytes.NewReader(data), int64(len(data)), "a SentencePiece model").Message(wire.Fields{
		1: func(f wire.Field) error {
			if len(m.pieces) == maxVocabulary {
				return fmt.Errorf("more than %d pieces", maxVocabulary)
			}
			piece, err := parsePiece(f)
			if err != nil {
				return fmt.Errorf("piece %d: %w", len(m.pieces), err)
			}
			m.pieces = append(m.pieces, piece)
			return nil
		},
		2: func(f wire.Field) error { // of training
			return f.Message(wire.Fields{3: wire.Int(&m.model), 24: wire.Int(&suffixed), 40: wire.Int(&m.unknown)})
		},
		3: func(f wire.Field) error { // of normalising
			return f.Message(wire.Fields{5: wire.Int(&escaped), 2: func(f wire.Field) (err error) {
				m.characterMap, err = f.Bytes(int64(len(data)))
				return err
			}})
		},
	})
	m.unescaped, m.suffixed = escaped == 0, suffixed != 0
	if err == nil && len(m.pieces) == 0 {
		err = errors.New("not a SentencePiece model: it has no pieces")
	}
	return m, err
}

// pieceReader reads pieces, hundreds of thousands of them, by one table.
func pieceReader() func(wire.Field) (sentencePiece, error) {
	var text []byte
	var score uint32
	var kind pieceType
	fields := wire.Fields{2: wire.Bits(&score), 3: wire.Int(&kind), 1: func(f wire.Field) (err error) {
		text, err = f.Bytes(maxFile)
		return err
	}}
	return func(f wire.Field) (sentencePiece, error) {
		text, score, kind = nil, 0, pieceNormal
		err := f.Message(fields)
		piece := sentencePiece{string(text), float64(math.Float32frombits(score)), kind}
		switch {
		case err != nil:
			return piece, err
		case len(piece.text) > longestPiece:
			return piece, fmt.Errorf("%d bytes long, at most %d are taken", len(piece.text), longestPiece)
		case piece.text == "" || !utf8.ValidString(piece.text):
			return piece, fmt.Errorf("%q is not a piece of text", piece.text)
		case math.IsNaN(piece.score) || math.IsInf(piece.score, 0):
			return piece, fmt.Errorf("%q has the score %g", piece.text, piece.score)
		case piece.kind < pieceNormal || piece.kind > pieceByte:
			return piece, fmt.Errorf("%q has the type %d, which is not known", piece.text, piece.kind)
		}
		return piece, nil
	}
}

// check refuses models that the Unigram of this package cannot stand for.
func (m *sentencePieces) check() error {
	names := map[uint64]string{2: "BPE", 3: "WORD", 4: "CHAR"}
	switch {
	case m.model != modelUnigram && names[m.model] != "":
		return fmt.Errorf("model_type %s; UNIGRAM is needed", names[m.model])
	case m.model != modelUnigram:
		return fmt.Errorf("model_type %d; UNIGRAM is needed", m.model)
	case m.unescaped:
		return errors.New("escape_whitespaces false")
	case m.suffixed:
		return errors.New("treat_whitespace_as_suffix true")
	}
	return nil
}
