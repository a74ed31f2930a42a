package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/internal/safetensors"
)

func init() { check.SameDraws() }

// raw builds a file from a header as it is given and a number of data bytes.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	return append(b, make([]byte, data)...)
}

func parse(b []byte) (*safetensors.File, error) {
	return safetensors.Parse(bytes.NewReader(b), int64(len(b)))
}

func TestParse(t *testing.T) {
	header := `{"__metadata__":{"format":"pt"},` +
		`"b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},` +
		`"a":{"data_offsets":[0,4],"shape":[2],"dtype":"F16"},` +
		`"none":{"dtype":"I64","shape":[0,7],"data_offsets":[28,28]},` +
		`"scalar":{"dtype":"U8","shape":[],"data_offsets":[28,29]}}  `
	file := check.Must(parse(raw(header, 29)))(t)
	start := int64(8 + len(header))
	var found []safetensors.Tensor
	for _, name := range file.Names() {
		tensor, ok := file.Tensor(name)
		if !ok {
			t.Fatalf("Tensor(%q) is not there, but Names lists it", name)
		}
		found = append(found, tensor)
	}
	want := []safetensors.Tensor{
		{Name: "a", DType: safetensors.F16, Shape: []int{2}, Offset: start, Length: 4},
		{Name: "b", DType: safetensors.F32, Shape: []int{2, 3}, Offset: start + 4, Length: 24},
		{Name: "none", DType: safetensors.Int64, Shape: []int{0, 7}, Offset: start + 28},
		{Name: "scalar", DType: safetensors.Uint8, Shape: []int{}, Offset: start + 28, Length: 1},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("tensors (-want +found):\n%s", diff)
	}
	if _, ok := file.Tensor("c"); ok {
		t.Error("Tensor finds a name that is not in the file")
	}
}

func TestParseRefuses(t *testing.T) {
	// entry is a header of one tensor "t".
	entry := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"t":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	length := func(n uint64, rest int) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, n), make([]byte, rest)...)
	}
	for _, c := range []struct {
		name string
		file []byte
		want string // part of the error
	}{
		{"empty file", nil, "0 bytes are too few"},
		{"header length past the end", length(100, 50), "claims 100 bytes, the file has 50"},
		{"header length of 2^64-1", length(math.MaxUint64, 50), "the file has 50"},
		{"empty header", raw("", 0), "does not begin with {"},
		{"cut JSON", raw(`{"t":{"dtype":"F32"`, 0), "not valid JSON"},
		{"second object", raw(`{}{}`, 0), "not valid JSON"},
		{"invalid UTF-8", raw("{\"\xff\":1}", 0), "not valid UTF-8"},
		{"tensor is an array", raw(`{"t":[]}`, 0), "not a type, a shape and two offsets"},
		{"deep nesting", raw(`{"t":`+strings.Repeat("[", 100000)+strings.Repeat("]", 100000)+`}`, 0),
			"exceeded max depth"},
		{"metadata is text", raw(`{"__metadata__":"pt"}`, 0), "__metadata__"},
		{"tensor twice",
			raw(`{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), "no tensor holds the bytes"},
		{"no shape", raw(`{"t":{"dtype":"U8","data_offsets":[0,1]}}`, 1), "shape is missing"},
		{"no offsets", raw(`{"t":{"dtype":"U8","shape":[1]}}`, 1), "data_offsets has 0 numbers"},
		{"unknown type", raw(entry("F24", "[1]", "[0,3]"), 3), `element type "F24" is not known`},
		{"negative dimension", raw(entry("U8", "[-1]", "[0,1]"), 1), "negative dimension"},
		{"fraction", raw(entry("U8", "[1.5]", "[0,1]"), 1), "number 1.5"},
		{"dimension of 2^64", raw(entry("U8", "[18446744073709551616]", "[0,0]"), 0),
			"number 18446744073709551616"},
		{"product of 2^64", raw(entry("U8", "[4294967296,4294967296]", "[0,0]"), 0), "more than 64 bits can count"},
		{"product that wraps to 4", raw(entry("F32", "[4611686018427387905]", "[0,4]"), 4),
			"more than 64 bits can count"},
		{"overflow hidden by a zero", raw(entry("U8", "[4294967296,4294967296,0]", "[0,0]"), 0),
			"more than 64 bits can count"},
		{"too many dimensions", raw(entry("U8", "["+strings.Repeat("1,", 40)+"1]", "[0,1]"), 1),
			"shape: more than 32 numbers"},
		{"three offsets", raw(entry("U8", "[1]", "[0,1,2]"), 1), "data_offsets has 3 numbers"},
		{"offsets reversed", raw(entry("U8", "[1]", "[1,0]"), 1), "outside the file"},
		{"offsets of 2^62", raw(entry("U8", "[1]", "[4611686018427387904,4611686018427387905]"), 1),
			"outside the file"},
		{"shape and offsets disagree", raw(entry("F32", "[2]", "[0,4]"), 4), "takes 8 bytes, data_offsets give 4"},
		{"hole in the middle",
			raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3), `before tensor "b"`},
		{"overlap", raw(
			`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`,
			3), `tensor "b" begins at byte`},
		{"bytes after the last tensor", raw(entry("U8", "[1]", "[0,1]"), 2), "the tensors end at byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := parse(c.file)
			if err == nil {
				t.Fatalf("no error; tensors: %q", file.Names())
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
				t.Errorf("error is not one short line: %q", err)
			}
		})
	}
}

// endless claims to be a very large file, and counts what is read of it.
type endless struct {
	head []byte
	read int
}

func (e *endless) ReadAt(p []byte, offset int64) (int, error) {
	e.read += len(p)
	n := 0
	if offset < int64(len(e.head)) {
		n = copy(p, e.head[offset:])
	}
	clear(p[n:])
	return len(p), nil
}

func TestParseRefusesLargeHeaderUnread(t *testing.T) {
	e := &endless{head: binary.LittleEndian.AppendUint64(nil, 1<<40)}
	_, err := safetensors.Parse(e, 1<<50)
	check.Says(t, err, "claims 1099511627776 bytes, more than the 4194304")
	if e.read != 8 {
		t.Errorf("%d bytes were read, want only the 8 of the length", e.read)
	}
}

// A large tensor that the file really has room for is only located, never read.
func TestParseLeavesDataUnread(t *testing.T) {
	const size = 1 << 45
	header := fmt.Sprintf(`{"t":{"dtype":"F64","shape":[%d],"data_offsets":[0,%d]}}`, size/8, size)
	e := &endless{head: raw(header, 0)}
	file := check.Must(safetensors.Parse(e, int64(len(e.head))+size))(t)
	if tensor, _ := file.Tensor("t"); tensor.Length != size {
		t.Errorf("length %d, want %d", tensor.Length, int64(size))
	}
	if e.read != len(e.head) {
		t.Errorf("%d bytes were read, want the %d of length and header", e.read, len(e.head))
	}
}

// F32 and F64 are read in single precision; for the others see below.
func TestFloats(t *testing.T) {
	exact := []float64{0, 1, -2.5, 0x1p-149, math.MaxFloat32, 1.0000001192092896, math.Inf(-1), math.Copysign(0, -1)}
	data := []safetensors.Data{{Name: "I8", DType: safetensors.Int8, Shape: []int{1},
		Content: modelstest.Bytes([]byte{1})}}
	for _, dtype := range []safetensors.DType{safetensors.F32, safetensors.F64} {
		var content []byte
		for _, x := range exact {
			if dtype == safetensors.F32 {
				content = binary.LittleEndian.AppendUint32(content, math.Float32bits(float32(x)))
			} else {
				content = binary.LittleEndian.AppendUint64(content, math.Float64bits(x))
			}
		}
		data = append(data, safetensors.Data{Name: string(dtype), DType: dtype, Shape: []int{len(exact)},
			Content: modelstest.Bytes(content)})
	}
	file := store(t, data...)
	for _, name := range []string{"F32", "F64"} {
		got, err := file.Float32s(name)
		for i, want := range exact {
			if err != nil || math.Float32bits(got[i]) != math.Float32bits(float32(want)) {
				t.Errorf("%s: element %d is not %g: %v", name, i, want, err)
			}
		}
	}
	for name, want := range map[string]string{"I8": `tensor "I8" holds I8`, "none": `no tensor "none"`} {
		_, err := file.Float32s(name)
		check.Says(t, err, want)
	}
}

// Every F16 and BF16 pattern widens to the number that the formats define,
// sign · 2^exponent · fraction.
func TestHalfPrecisionByDefinition(t *testing.T) {
	for _, c := range []struct {
		dtype    safetensors.DType
		fraction int // bits
		bias     int
	}{{safetensors.F16, 10, 15}, {safetensors.BF16, 7, 127}} {
		t.Run(string(c.dtype), func(t *testing.T) {
			var content []byte
			for b := range 1 << 16 {
				content = binary.LittleEndian.AppendUint16(content, uint16(b))
			}
			file := store(t,
				safetensors.Data{Name: "x", DType: c.dtype, Shape: []int{256, 256}, Content: modelstest.Bytes(content)})
			found := check.Must(file.Float32s("x"))(t)
			top := 1<<(15-c.fraction) - 1
			for b, single := range found {
				got := float64(single) // exactly
				exponent, fraction := b>>c.fraction&top, float64(b&(1<<c.fraction-1))/float64(int(1)<<c.fraction)
				want := math.Ldexp(1+fraction, exponent-c.bias)
				switch {
				case exponent == 0:
					want = math.Ldexp(fraction, 1-c.bias)
				case exponent == top && fraction == 0:
					want = math.Inf(1)
				case exponent == top:
					if !math.IsNaN(got) {
						t.Fatalf("%04x = %g, want NaN", b, got)
					}
					continue
				}
				if b>>15 == 1 {
					want = -want
				}
				if math.Float64bits(got) != math.Float64bits(want) {
					t.Fatalf("%04x = %g, want %g", b, got, want)
				}
			}
		})
	}
}

// store writes tensors into a file and opens it.
func store(t testing.TB, tensors ...safetensors.Data) *safetensors.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.safetensors")
	var b bytes.Buffer
	check.OK(t, safetensors.Write(&b, nil, tensors))
	check.OK(t, os.WriteFile(path, b.Bytes(), 0o644))
	file := check.Must(safetensors.Open(path))(t)
	return file
}

func TestWriteReadsBack(t *testing.T) {
	dtypes := []safetensors.DType{"BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "U16", "I16", "F16", "BF16", "U32", "I32",
		"F32", "U64", "I64", "F64"}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(
			rapid.String().Filter(
				func(s string) bool { return s != "__metadata__" && strings.ToValidUTF8(s, "") == s }),
			rapid.ID[string]).Draw(t, "names")
		metadata := rapid.MapOf(rapid.StringMatching(`[a-zé"\\]{0,8}`), rapid.StringMatching(`[a-zé"\\<]{0,8}`)).Draw(t,
			"metadata")
		contents := map[string][]byte{}
		var tensors []safetensors.Data
		for _, name := range names {
			d := safetensors.Data{Name: name, DType: rapid.SampledFrom(dtypes).Draw(t, "dtype"),
				Shape: rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(t, "shape")}
			n := int(d.DType.Size())
			for _, s := range d.Shape {
				n *= s
			}
			contents[name] = rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "content")
			d.Content = modelstest.Bytes(contents[name])
			tensors = append(tensors, d)
		}
		var b bytes.Buffer
		if err := safetensors.Write(&b, metadata, tensors); err != nil {
			t.Fatal(err)
		}
		file, err := parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if len(file.Names()) != len(tensors) {
			t.Fatalf("%d tensors were written, %d read", len(tensors), len(file.Names()))
		}
		for _, d := range tensors {
			found, ok := file.Tensor(d.Name)
			if !ok || found.DType != d.DType || !slices.Equal(found.Shape, d.Shape) {
				t.Fatalf("tensor %q: found %+v, wrote %+v", d.Name, found, d)
			}
			if got := b.Bytes()[found.Offset : found.Offset+found.Length]; !bytes.Equal(got, contents[d.Name]) {
				t.Fatalf("tensor %q: other bytes came back", d.Name)
			}
			if found.Length > 0 && found.Offset%found.DType.Size() != 0 {
				t.Fatalf("tensor %q lies at %d, which is not aligned to %s", d.Name, found.Offset, found.DType)
			}
		}
	})
}

func TestWriteRefuses(t *testing.T) {
	one := func(name string, dtype safetensors.DType, shape []int, content string) safetensors.Data {
		return safetensors.Data{Name: name, DType: dtype, Shape: shape, Content: modelstest.Bytes([]byte(content))}
	}
	for _, c := range []struct {
		name    string
		tensors []safetensors.Data
		want    string
	}{
		{"content too short", []safetensors.Data{one("a", safetensors.Uint8, []int{3}, "xy")},
			`tensor "a": content of 2 bytes where its shape [3] takes 3`},
		{"content too long", []safetensors.Data{one("a", safetensors.Uint8, []int{1}, "xy")},
			`tensor "a": content of 2 bytes where its shape [1] takes 1`},
		{"given twice", []safetensors.Data{one("a", safetensors.Uint8, []int{1}, "x"),
			one("a", safetensors.F16, []int{1}, "xy")}, `tensor "a" is given twice`},
		{"reserved name", []safetensors.Data{one("__metadata__", safetensors.Uint8, []int{1}, "x")},
			"cannot be named __metadata__"},
		{"unknown type", []safetensors.Data{one("a", "F24", []int{1}, "xyz")}, `element type "F24" is not known`},
		{"negative", []safetensors.Data{one("a", safetensors.Uint8, []int{-1}, "")}, "negative dimension"},
		{"overflow", []safetensors.Data{one("a", safetensors.Uint8, []int{1 << 40, 1 << 40}, "")},
			"more than 64 bits can count"},
		{"overflow of the sum",
			[]safetensors.Data{one("a", safetensors.Uint8, []int{1 << 62}, ""),
				one("b", safetensors.Uint8, []int{1 << 62}, "")},
			`tensor "b": shape [4611686018427387904] of U8 is more than 64 bits can count`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := safetensors.Write(io.Discard, nil, c.tensors)
			check.Says(t, err, c.want)
		})
	}
}

// FuzzParse: whatever the bytes, parsing ends without a panic, and what is
// accepted holds together.
func FuzzParse(f *testing.F) {
	f.Add(raw(`{}`, 0))
	f.Add(raw(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}   `, 8))
	f.Add(raw(`{"t":{"dtype":"U8","shape":[0,9],"data_offsets":[0,0]}}`, 0))
	f.Add(raw(`{"t":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parse(b)
		if err != nil {
			return
		}
		covered := make([]bool, len(b))
		first := int64(8) + int64(binary.LittleEndian.Uint64(b))
		for _, name := range file.Names() {
			tensor, ok := file.Tensor(name)
			if !ok || tensor.Name != name {
				t.Fatalf("Names lists %q, Tensor gives %+v", name, tensor)
			}
			length := tensor.DType.Size()
			for _, d := range tensor.Shape {
				length *= int64(d)
			}
			if tensor.Length != length {
				t.Fatalf("%+v: the length is not that of the shape", tensor)
			}
			for i := tensor.Offset; i < tensor.Offset+tensor.Length; i++ {
				if i < first || covered[i] {
					t.Fatalf("%+v: byte %d is of the header or of another tensor", tensor, i)
				}
				covered[i] = true
			}
		}
		for i := first; i < int64(len(b)); i++ {
			if !covered[i] {
				t.Fatalf("byte %d belongs to no tensor", i)
			}
		}
	})
}
