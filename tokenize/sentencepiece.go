package tokenize

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
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

var errSentencePiece = errors.New("not a SentencePiece model")

// parseSentencePieces reads a serialized ModelProto of github.com/google/sentencepiece (src/sentencepiece_model.proto).
// What it allocates is in proportion to data.
func parseSentencePieces(data []byte) (*sentencePieces, error) {
	m := &sentencePieces{model: modelUnigram}
	err := eachField(data, func(number protowire.Number, value field) error {
		if 1 <= number && number <= 3 {
			if err := value.want(protowire.BytesType, strconv.Itoa(int(number))); err != nil {
				return err
			}
		}
		switch number {
		case 1:
			if len(m.pieces) == maxVocabulary {
				return fmt.Errorf("more than %d pieces", maxVocabulary)
			}
			piece, err := parsePiece(value.bytes)
			if err != nil {
				return fmt.Errorf("piece %d: %w", len(m.pieces), err)
			}
			m.pieces = append(m.pieces, piece)
		case 2:
			return m.parseTrainer(value.bytes)
		case 3:
			return m.parseNormalizer(value.bytes)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(m.pieces) == 0:
		return nil, fmt.Errorf("%w: it has no pieces", errSentencePiece)
	}
	return m, nil
}

// field is the value of a protobuf field: bytes for what has a length, else a number.
type field struct {
	kind   protowire.Type
	number uint64
	bytes  []byte
}

// eachField calls visit for each field of a protobuf message. Fields of a kind that no part of a ModelProto read here
// has are skipped.
func eachField(data []byte, visit func(protowire.Number, field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("%w: %v", errSentencePiece, protowire.ParseError(n))
		}
		data = data[n:]
		value := field{kind: kind}
		switch kind {
		case protowire.VarintType:
			value.number, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var bits uint32
			bits, n = protowire.ConsumeFixed32(data)
			value.number = uint64(bits)
		case protowire.BytesType:
			value.bytes, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return fmt.Errorf("%w: %v", errSentencePiece, protowire.ParseError(n))
		}
		data = data[n:]
		if err := visit(number, value); err != nil {
			return err
		}
	}
	return nil
}

// want refuses a field of another kind than the format gives it.
func (f field) want(kind protowire.Type, name string) error {
	if f.kind != kind {
		return fmt.Errorf("%w: field %s of wire type %d, %d is needed", errSentencePiece, name, f.kind, kind)
	}
	return nil
}

func parsePiece(data []byte) (sentencePiece, error) {
	piece := sentencePiece{kind: pieceNormal}
	err := eachField(data, func(number protowire.Number, value field) error {
		switch number {
		case 1:
			piece.text = string(value.bytes)
			return value.want(protowire.BytesType, "piece")
		case 2:
			piece.score = float64(math.Float32frombits(uint32(value.number)))
			return value.want(protowire.Fixed32Type, "score")
		case 3:
			piece.kind = pieceType(value.number)
			return value.want(protowire.VarintType, "type")
		}
		return nil
	})
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

func (m *sentencePieces) parseTrainer(data []byte) error {
	return eachField(data, func(number protowire.Number, value field) error {
		switch number {
		case 3:
			m.model = value.number
			return value.want(protowire.VarintType, "model_type")
		case 24:
			m.suffixed = value.number != 0
			return value.want(protowire.VarintType, "treat_whitespace_as_suffix")
		case 40:
			m.unknown = int(int32(value.number))
			return value.want(protowire.VarintType, "unk_id")
		}
		return nil
	})
}

func (m *sentencePieces) parseNormalizer(data []byte) error {
	return eachField(data, func(number protowire.Number, value field) error {
		switch number {
		case 2:
			m.characterMap = value.bytes
			return value.want(protowire.BytesType, "precompiled_charsmap")
		case 5:
			m.unescaped = value.number == 0
			return value.want(protowire.VarintType, "escape_whitespaces")
		}
		return nil
	})
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
