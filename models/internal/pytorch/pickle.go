package pytorch

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf8"

	"github.com/nlpodyssey/gopickle/pickle"
	"github.com/nlpodyssey/gopickle/types"

	"infill/internal/safetensors"
)

// errCut tells of a file that ends too early.
var errCut = errors.New("damaged or cut short")

// storageClass is one of torch's classes of typed storages.
type storageClass struct{ dtype safetensors.DType }

// function stands for one of torch's functions that a state dict calls.
type function func(args ...any) (any, error)

// Call makes a function callable for the library.
func (f function) Call(args ...any) (any, error) { return f(args...) }

var _ types.Callable = function(nil)

// findClass is the list of what a file may name. All else is refused: loading such a file elsewhere calls what it
// names.
func findClass(module, name string) (any, error) {
	if module == "torch" {
		if dtype, ok := map[string]safetensors.DType{
			"FloatStorage": safetensors.F32, "DoubleStorage": safetensors.F64, "HalfStorage": safetensors.F16,
			"BFloat16Storage": safetensors.BF16,
			"LongStorage":     safetensors.Int64, "IntStorage": safetensors.Int32, "ShortStorage": safetensors.Int16,
			"CharStorage": safetensors.Int8, "ByteStorage": safetensors.Uint8, "BoolStorage": safetensors.Bool,
		}[name]; ok {
			return storageClass{dtype}, nil
		}
	}
	switch module + "." + name {
	case "collections.OrderedDict":
		return &types.OrderedDictClass{}, nil
	case "torch._utils._rebuild_tensor_v2":
		return function(rebuildTensor), nil
	case "torch._utils._rebuild_parameter":
		return function(rebuildParameter), nil
	}
	return nil, fmt.Errorf(
		"the pickle names %.200q, which is no part of a state dict of weights; it is not read further", module+"."+name)
}

// rebuilt is a tensor as the file describes it. Nothing of it has been checked.
type rebuilt struct {
	storage        *storage
	offset         int
	shape, strides *types.Tuple
}

// rebuildTensor takes a storage, an offset, shape and strides (in elements), whether a gradient is wanted, hooks, and
// perhaps metadata.
func rebuildTensor(args ...any) (any, error) {
	if len(args) != 6 && len(args) != 7 {
		return nil, fmt.Errorf("a tensor of %d arguments, not 6", len(args))
	}
	if len(args) == 7 {
		if metadata, ok := args[6].(*types.Dict); args[6] != nil && (!ok || metadata.Len() > 0) {
			return nil, errors.New("a tensor with metadata (conjugated or negated) is not read")
		}
	}
	s, ok := args[0].(*storage)
	offset, okOffset := args[1].(int)
	shape, okShape := args[2].(*types.Tuple)
	strides, okStrides := args[3].(*types.Tuple)
	if !ok || !okOffset || !okShape || !okStrides {
		return nil, errors.New("a tensor whose arguments are not a storage, an offset, a shape and strides")
	}
	return &rebuilt{s, offset, shape, strides}, nil
}

// rebuildParameter takes a tensor, whether a gradient is wanted, and hooks.
func rebuildParameter(args ...any) (any, error) {
	if len(args) == 3 {
		if t, ok := args[0].(*rebuilt); ok {
			return t, nil
		}
	}
	return nil, errors.New("a parameter that is not made from a tensor")
}

// unpickler reads the pickles of one file and gathers the storages that they name.
type unpickler struct {
	size     int64 // of the file, in bytes
	storages map[string]*storage
}

// load reads one pickle that scan has passed.
func (u *unpickler) load(data []byte) (value any, err error) {
	// scan leaves the library little to trip over; what is left (odd items, a key that cannot be one) makes it panic.
	defer func() {
		if r := recover(); r != nil {
			value, err = nil, fmt.Errorf("the pickle is not well formed: %.200v", r)
		}
	}()
	reader := pickle.NewUnpickler(bytes.NewReader(data))
	reader.FindClass = findClass
	reader.PersistentLoad = u.persistent
	if value, err = reader.Load(); err != nil {
		return nil, fmt.Errorf("the pickle is not that of a state dict: %.120w", err)
	}
	return value, nil
}

// persistent resolves ("storage", class, key, device, elements).
func (u *unpickler) persistent(id any) (any, error) {
	tuple, ok := id.(*types.Tuple)
	if !ok || tuple.Len() == 0 {
		return nil, errors.New("a persistent id is not a tuple")
	}
	if tuple.Get(0) == "module" {
		return nil, errors.New("it holds a whole module, with its code, and not a state dict of weights")
	}
	if tuple.Get(0) != "storage" || tuple.Len() != 5 {
		return nil, errors.New("a persistent id is not that of a storage")
	}
	class, okClass := tuple.Get(1).(storageClass)
	key, okKey := tuple.Get(2).(string)
	elements, okElements := tuple.Get(4).(int)
	if !okClass || !okKey || !okElements || elements < 0 {
		return nil, errors.New("a persistent id is not that of a storage")
	}
	if int64(elements) > u.size/class.dtype.Size() {
		return nil, fmt.Errorf("storage %.40q claims %d elements of %s, more than a file of %d bytes can hold", key,
			elements, class.dtype, u.size)
	}
	s, ok := u.storages[key]
	if !ok {
		s = &storage{key: key, dtype: class.dtype, elements: int64(elements)}
		u.storages[key] = s
	}
	if s.dtype != class.dtype || s.elements != int64(elements) {
		return nil, fmt.Errorf("storage %.40q is described twice, and differently", key)
	}
	return s, nil
}

// tensors checks the tensors of a state dict and gives them in its order.
func tensors(state any) ([]Tensor, error) {
	var list []Tensor
	index := map[string]int{}
	add := func(key, value any) error {
		name, ok := key.(string)
		if !ok || !utf8.ValidString(name) {
			return errors.New("a key of the state dict is not text")
		}
		r, ok := value.(*rebuilt)
		if !ok {
			return fmt.Errorf("%.100q is not a tensor: the file is not a plain state dict of weights", name)
		}
		t, err := r.tensor(name)
		if err != nil {
			return fmt.Errorf("tensor %.100q: %w", name, err)
		}
		if i, ok := index[name]; ok {
			list[i] = t // as in Python, the last counts
			return nil
		}
		index[name] = len(list)
		list = append(list, t)
		return nil
	}
	switch state := state.(type) {
	case *types.OrderedDict:
		for e := state.List.Front(); e != nil; e = e.Next() {
			entry := e.Value.(*types.OrderedDictEntry)
			if err := add(entry.Key, entry.Value); err != nil {
				return nil, err
			}
		}
	case *types.Dict:
		for _, entry := range *state {
			if err := add(entry.Key, entry.Value); err != nil {
				return nil, err
			}
		}
	default:
		return nil, errors.New("it holds no state dict")
	}
	if len(list) == 0 {
		return nil, errors.New("it holds no tensors")
	}
	return list, nil
}

// maxRank is that of the safetensors reader.
const maxRank = 32

// tensor checks that every element lies in the storage.
func (r *rebuilt) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name, DType: r.storage.dtype, storage: r.storage}
	if r.shape.Len() > maxRank || r.shape.Len() != r.strides.Len() {
		return t, fmt.Errorf("%d dimensions and %d strides", r.shape.Len(), r.strides.Len())
	}
	if r.offset < 0 || int64(r.offset) > r.storage.elements {
		return t, fmt.Errorf("offset %d is outside the storage, which has %d elements", r.offset, r.storage.elements)
	}
	t.offset = int64(r.offset)
	empty := false
	for i := range r.shape.Len() {
		dimension, okDimension := r.shape.Get(i).(int)
		stride, okStride := r.strides.Get(i).(int)
		if !okDimension || !okStride || dimension < 0 || stride < 0 {
			return t, fmt.Errorf("dimension %d has a size or a stride that cannot be one", i)
		}
		t.Shape = append(t.Shape, dimension)
		t.strides = append(t.strides, int64(stride))
		empty = empty || dimension == 0
	}
	if empty {
		return t, nil
	}
	last, elements := uint64(r.offset), uint64(1)
	for i, d := range t.Shape {
		high, reach := bits.Mul64(uint64(d-1), uint64(t.strides[i]))
		var carry uint64
		last, carry = bits.Add64(last, reach, 0)
		if high != 0 || carry != 0 || last >= uint64(r.storage.elements) {
			return t, fmt.Errorf("shape %v with strides %v reaches outside the storage, which has %d elements", t.Shape,
				t.strides, r.storage.elements)
		}
		// Strides of 0 let a shape be larger than its storage.
		if high, elements = bits.Mul64(elements, uint64(d)); high != 0 || elements > 1<<56 {
			return t, fmt.Errorf("shape %v has more elements than can be counted", t.Shape)
		}
	}
	if last >= uint64(r.storage.elements) {
		return t, fmt.Errorf("an element lies outside the storage, which has %d elements", r.storage.elements)
	}
	t.span = int64(last) - int64(r.offset) + 1
	return t, nil
}
