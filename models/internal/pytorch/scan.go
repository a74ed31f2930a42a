package pytorch

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const (
	// maxPickleBytes bounds what describes the tensors. It is some 150 bytes for each.
	maxPickleBytes = 16 << 20
	// maxOpcodes bounds what the library allocates: no opcode makes it take more than a few hundred bytes beyond its
	// argument, so a file can cost some 120 MB. torch.save writes about 40 for each tensor.
	maxOpcodes = 1 << 19
	// maxMarks bounds how deep open marks may nest. torch.save nests 4.
	maxMarks = 64
)

// operand is the form of what follows an opcode.
type operand int

const (
	unknown operand = iota
	nothing
	fixed1
	fixed2
	fixed4
	fixed8
	counted1 // a length in 1 byte, and as many bytes
	counted4 // a length in 4 bytes, and as many bytes
	lines2   // two lines
)

const (
	opStop   = '.'
	opMark   = '('
	opGlobal = 'c'
	opProto  = 0x80
	opLong1  = 0x8a
)

// operandOf knows the opcodes of protocol 2 that torch.load itself accepts with weights_only, less
// those that make sets and objects. Pickles have no jumps, so the opcodes of a file are found without running it.
func operandOf(opcode byte) operand {
	switch opcode {
	case opStop, opMark, 'N', 0x88, 0x89, // None, True, False
		')', 't', 0x85, 0x86, 0x87, // tuples
		']', 'a', 'e', '}', 's', 'u', // lists and dicts
		'R', 'b', 'Q': // reduce, build, persistent id
		return nothing
	case opProto, 'K', 'q', 'h': // protocol; integer, put and get of 1 byte
		return fixed1
	case 'M': // integer
		return fixed2
	case 'J', 'r', 'j': // integer, put and get
		return fixed4
	case 'G': // float
		return fixed8
	case opLong1, 'U': // integer, string of Python 2
		return counted1
	case 'X': // string
		return counted4
	case opGlobal:
		return lines2
	}
	return unknown
}

// scan checks the pickle at the start of data before it is given to the library, which trusts every length and knows
// more opcodes and classes than a state dict needs. It gives the pickle's length in bytes.
func scan(data []byte) (int, error) {
	at, marks := 0, 0
	for count := 0; ; count++ {
		if at >= len(data) {
			return 0, errCut
		}
		if count == maxOpcodes {
			return 0, fmt.Errorf("the pickle has more than the %d opcodes that are accepted", maxOpcodes)
		}
		opcode, rest := data[at], data[at+1:]
		var length int
		switch operandOf(opcode) {
		case unknown:
			return 0, fmt.Errorf("opcode 0x%02x at byte %d of the pickle is none that a state dict needs", opcode, at)
		case fixed1:
			length = 1
		case fixed2:
			length = 2
		case fixed4:
			length = 4
		case fixed8:
			length = 8
		case counted1:
			if len(rest) < 1 {
				return 0, errCut
			}
			length = 1 + int(rest[0])
		case counted4:
			if len(rest) < 4 {
				return 0, errCut
			}
			claimed := binary.LittleEndian.Uint32(rest)
			if uint64(claimed) > uint64(len(rest)-4) {
				return 0, fmt.Errorf("opcode 0x%02x at byte %d of the pickle claims %d bytes, %d are left: %w", opcode,
					at, claimed, len(rest)-4, errCut)
			}
			length = 4 + int(claimed)
		case lines2:
			module := bytes.IndexByte(rest, '\n')
			name := bytes.IndexByte(rest[module+1:], '\n')
			if module < 0 || name < 0 {
				return 0, errCut
			}
			length = module + 1 + name + 1
			if _, err := findClass(string(rest[:module]), string(rest[module+1:length-1])); err != nil {
				return 0, err
			}
		}
		if length > len(rest) {
			return 0, errCut
		}
		switch opcode {
		case opProto:
			if rest[0] != 2 {
				return 0, fmt.Errorf("pickle protocol %d is not read; torch.save writes 2 unless it is told otherwise",
					rest[0])
			}
		case opLong1:
			if rest[0] == 0 {
				return 0, fmt.Errorf("an integer of 0 bytes at byte %d of the pickle", at)
			}
		case opMark:
			if marks++; marks > maxMarks {
				return 0, fmt.Errorf("more than %d marks are open at byte %d of the pickle", maxMarks, at)
			}
		case 't', 'e', 'u':
			marks--
			if marks < 0 {
				return 0, fmt.Errorf("opcode 0x%02x at byte %d of the pickle has no mark", opcode, at)
			}
		}
		at += 1 + length
		if opcode == opStop {
			return at, nil
		}
	}
}
