package pytorch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"infill/internal/safetensors"
)

const (
	// maxPickleBytes bounds a pickle: each tensor takes some 150 bytes.
	maxPickleBytes = 16 << 20
	// maxOpcodes bounds a pickle's memory: each takes some hundred bytes.
	// torch.save writes about 40 for each tensor.
	maxOpcodes = 1 << 19
)

// These are the types of a pickle's values, apart from nil, bool, int, string,
// and safetensors.DType for classes.
type (
	tuple    []any
	dict     struct{ items tuple } // a key, its value, the next key
	function string                // name of a function that the pickle of a state dict calls
)

const (
	orderedDict       function = "collections.OrderedDict"
	tensorFunction    function = "torch._utils._rebuild_tensor_v2"
	parameterFunction function = "torch._utils._rebuild_parameter"
)

// classes maps torch's classes of typed storages to their element types.
var classes = map[string]safetensors.DType{
	"torch.FloatStorage": safetensors.F32, "torch.DoubleStorage": safetensors.F64,
	"torch.HalfStorage": safetensors.F16, "torch.BFloat16Storage": safetensors.BF16,
	"torch.LongStorage": safetensors.Int64, "torch.IntStorage": safetensors.Int32,
	"torch.ShortStorage": safetensors.Int16, "torch.CharStorage": safetensors.Int8,
	"torch.ByteStorage": safetensors.Uint8, "torch.BoolStorage": safetensors.Bool,
}

// maxRank is the largest number of dimensions of a tensor, as in the safetensors reader.
const maxRank = 32

// rebuildTensor makes a tensor from a storage, an offset, shape and strides (in
// elements), a Boolean for gradients, hooks, and perhaps metadata. If an
// element is outside the storage, it returns an error.
func rebuildTensor(arguments tuple) (*tensor, error) {
	if len(arguments) != 6 && len(arguments) != 7 {
		return nil, fmt.Errorf("a tensor of %d arguments, not 6", len(arguments))
	}
	if len(arguments) == 7 {
		metadata, ok := arguments[6].(*dict)
		if arguments[6] != nil && (!ok || len(metadata.items) > 0) {
			return nil, errors.New("a tensor with metadata (conjugated or negated) is not read")
		}
	}
	s, ok := arguments[0].(*storage)
	offset, okOffset := arguments[1].(int)
	shape, okShape := arguments[2].(tuple)
	strides, okStrides := arguments[3].(tuple)
	if !ok || !okOffset || !okShape || !okStrides {
		return nil, errors.New("a tensor whose arguments are not a storage, an offset, a shape and strides")
	}
	if len(shape) > maxRank || len(shape) != len(strides) {
		return nil, fmt.Errorf("a tensor of %d dimensions and %d strides", len(shape), len(strides))
	}
	if offset < 0 || int64(offset) > s.elements {
		return nil, fmt.Errorf("a tensor's offset %d is outside the storage, which has %d elements", offset, s.elements)
	}
	t := &tensor{storage: s, offset: int64(offset), elements: 1}
	last := float64(offset) // a float does not overflow, and is exact up to the size of any file
	fits := true
	for i := range shape {
		dimension, ok := shape[i].(int)
		stride, okStride := strides[i].(int)
		if !ok || !okStride || dimension < 0 || stride < 0 {
			return nil, fmt.Errorf("dimension %d of a tensor has a size or a stride that cannot be one", i)
		}
		t.shape = append(t.shape, dimension)
		t.strides = append(t.strides, int64(stride))
		last += float64(max(dimension-1, 0)) * float64(stride)
		// With strides of 0, a shape can be larger than its storage.
		fits = fits && float64(t.elements)*float64(dimension) < 1<<56
		t.elements *= int64(dimension)
	}
	if !fits || t.elements > 0 && last >= float64(s.elements) {
		return nil, fmt.Errorf("shape %v with strides %v reaches outside the storage, which has %d elements", t.shape,
			t.strides, s.elements)
	}
	return t, nil
}

// unpickler runs a pickle of torch.save, protocol 2, which has no jumps.
type unpickler struct {
	size     int64 // of the whole file, in bytes
	storages map[string]*storage

	data  []byte // the part of the pickle that is not yet read
	stack tuple
	marks []int // heights of the stack at the marks
	memo  map[int]any
	err   error // the first error
}

func (u *unpickler) fail(format string, arguments ...any) {
	u.err = cmp.Or(u.err, fmt.Errorf(format, arguments...))
}

// load runs the pickle at the start of data, and returns the value that it makes.
func (u *unpickler) load(data []byte) (any, error) {
	u.data = data
	u.memo = map[int]any{}
	u.storages = map[string]*storage{}
	for range maxOpcodes {
		opcode := byte(u.number(1))
		if u.err == nil && opcode == '.' {
			return u.pop(1)[0], u.err
		}
		u.step(opcode)
		if u.err != nil {
			return nil, u.err
		}
	}
	return nil, fmt.Errorf("the pickle has more than the %d opcodes that are accepted", maxOpcodes)
}

func (u *unpickler) step(opcode byte) {
	switch opcode {
	case 0x80:
		n := u.number(1)
		if n != 2 {
			u.fail("pickle protocol %d is not read; torch.save writes 2 unless it is told otherwise", n)
		}
	case 'N':
		u.push(nil)
	case 0x88, 0x89:
		u.push(opcode == 0x88)
	case 'K':
		u.push(u.number(1))
	case 'M':
		u.push(u.number(2))
	case 'J':
		u.push(int(int32(u.number(4))))
	case 0x8a:
		u.push(u.long(u.number(1)))
	case 'X':
		u.push(string(u.take(u.number(4))))
	case 'q', 'r':
		u.memo[u.number(map[byte]int{'q': 1, 'r': 4}[opcode])] = u.push(u.pop(1)[0])
	case 'h', 'j':
		u.push(u.memo[u.number(map[byte]int{'h': 1, 'j': 4}[opcode])])
	case '(':
		u.marks = append(u.marks, len(u.stack))
	case ')':
		u.push(tuple{})
	case 't':
		u.push(u.popMark())
	case 0x85, 0x86, 0x87:
		u.push(u.pop(int(opcode - 0x84)))
	case '}':
		u.push(&dict{})
	case 's':
		u.setItems(u.pop(2))
	case 'u':
		u.setItems(u.popMark())
	case 'b': // the metadata of an OrderedDict
		u.pop(1)
	case 'c':
		u.push(u.global(u.line() + "." + u.line()))
	case 'R':
		u.call(u.pop(2))
	case 'Q':
		u.push(u.storage(u.pop(1)[0]))
	default:
		u.fail("opcode 0x%02x of the pickle is none that a state dict needs", opcode)
	}
}

// global returns the class or function of a known name. Any other name is an
// error, as Python would call it.
func (u *unpickler) global(name string) any {
	dtype, ok := classes[name]
	if ok {
		return dtype
	}
	switch f := function(name); f {
	case orderedDict, tensorFunction, parameterFunction:
		return f
	}
	u.fail("the pickle names %.200q, which is no part of a state dict of weights; it is not read further", name)
	return nil
}

func (u *unpickler) take(n int) []byte {
	if n > len(u.data) {
		u.fail("the pickle: %d bytes claimed, %d are left: %w", n, len(u.data), errCut)
		return make([]byte, min(n, 4))
	}
	taken := u.data[:n]
	u.data = u.data[n:]
	return taken
}

// number reads an unsigned number of size bytes, up to 4.
func (u *unpickler) number(size int) int {
	var wide [4]byte
	copy(wide[:], u.take(size))
	return int(binary.LittleEndian.Uint32(wide[:]))
}

// long reads a signed number of n bytes, up to 8.
func (u *unpickler) long(n int) int {
	var wide [8]byte
	if n > len(wide) {
		u.fail("the pickle has a number of %d bytes", n)
	}
	copy(wide[:], u.take(n))
	return int(binary.LittleEndian.Uint64(wide[:]))
}

func (u *unpickler) line() string {
	end := bytes.IndexByte(u.data, '\n')
	if end < 0 {
		u.fail("%w", errCut)
		return ""
	}
	return string(u.take(end + 1)[:end])
}

func (u *unpickler) push(value any) any {
	u.stack = append(u.stack, value)
	return value
}

// pop takes the last n values off the stack, above the last mark or not at all.
func (u *unpickler) pop(n int) tuple {
	bottom := 0
	if len(u.marks) > 0 {
		bottom = u.marks[len(u.marks)-1]
	}
	from := len(u.stack) - n
	if from < bottom {
		u.fail("the pickle is not well formed: too few values")
		return make(tuple, n)
	}
	values := append(tuple(nil), u.stack[from:]...)
	u.stack = u.stack[:from]
	return values
}

// popMark takes all values above the last mark off the stack, and removes the mark.
func (u *unpickler) popMark() tuple {
	last := len(u.marks) - 1
	if last < 0 {
		u.fail("the pickle is not well formed: no mark")
		return nil
	}
	values := u.pop(len(u.stack) - u.marks[last])
	u.marks = u.marks[:last]
	return values
}

// setItems adds values, alternately keys and values, to the dict on top of the stack.
func (u *unpickler) setItems(values tuple) {
	d, ok := u.push(u.pop(1)[0]).(*dict)
	if !ok || len(values)%2 != 0 {
		u.fail("the pickle is not well formed: not the items of a dict")
		return
	}
	d.items = append(d.items, values...)
}

// call calls the function values[0] with the tuple of arguments values[1].
func (u *unpickler) call(values tuple) {
	f, _ := values[0].(function)
	arguments, ok := values[1].(tuple)
	switch {
	case f == orderedDict && ok:
		u.push(&dict{})
	case f == tensorFunction && ok:
		value, err := rebuildTensor(arguments)
		u.push(value)
		if err != nil {
			u.fail("%w", err)
		}
	case f == parameterFunction && ok && len(arguments) == 3: // a tensor, a Boolean for gradients, and hooks
		u.push(arguments[0])
	default:
		u.fail("the pickle is not well formed: a call of what is no function")
	}
}

// storage returns that of an id ("storage", class, key, device, elements).
func (u *unpickler) storage(id any) *storage {
	t, _ := id.(tuple)
	if len(t) != 5 || t[0] != any("storage") {
		t = make(tuple, 5)
	}
	dtype, ok := t[1].(safetensors.DType)
	key, okKey := t[2].(string)
	elements, okElements := t[4].(int)
	if !ok || !okKey || !okElements || elements < 0 {
		u.fail("a persistent id is not that of a storage, but perhaps of a whole module with its code")
		return nil
	}
	if int64(elements) > u.size/dtype.Size() {
		u.fail("storage %.40q claims %d elements of %s, more than a file of %d bytes can hold", key, elements,
			dtype, u.size)
	}
	s, ok := u.storages[key]
	if !ok {
		s = &storage{dtype: dtype, elements: int64(elements)}
		u.storages[key] = s
	}
	if s.dtype != dtype || s.elements != int64(elements) {
		u.fail("storage %.40q is described twice, and differently", key)
	}
	return s
}

func tensors(state any) ([]tensor, error) {
	d, ok := state.(*dict)
	if !ok {
		return nil, errors.New("it holds no state dict")
	}
	var list []tensor
	seen := map[string]bool{}
	for pair := range slices.Chunk(d.items, 2) {
		name, ok := pair[0].(string)
		if !ok || !utf8.ValidString(name) || seen[name] {
			return nil, errors.New("a key of the state dict is not text, or is there twice")
		}
		seen[name] = true
		t, ok := pair[1].(*tensor)
		if !ok {
			return nil, fmt.Errorf("%.100q is not a tensor: the file is not a plain state dict of weights", name)
		}
		named := *t
		named.name = name
		list = append(list, named)
	}
	if len(list) == 0 {
		return nil, errors.New("it holds no tensors")
	}
	return list, nil
}
