package pytorch_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/internal/pytorch"
	"infill/internal/safetensors"
)

// tensor is a tensor of a file, with its bytes.
type tensor struct {
	DType   safetensors.DType
	Shape   []int
	Content string
}

func testdata(name string) string { return filepath.Join("testdata", name) }

// contents reads a safetensors file.
func contents(t testing.TB, path string) map[string]tensor {
	t.Helper()
	file := check.Must(safetensors.Open(path))(t)
	found := map[string]tensor{}
	for _, name := range file.Names() {
		stored, _ := file.Tensor(name)
		raw := check.Must(stored.Bytes())(t)
		found[name] = tensor{stored.DType, stored.Shape, string(raw)}
	}
	return found
}

// converted converts a file and reads the tensors of the result.
func converted(t testing.TB, file *pytorch.File, wanted func(string) bool) map[string]tensor {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.safetensors")
	out := check.Must(os.Create(path))(t)
	check.OK(t, errors.Join(file.Convert(t.Context(), out, wanted), out.Close()))
	return contents(t, path)
}

func open(t testing.TB, name string) *pytorch.File {
	t.Helper()
	file := check.Must(parse(read(t, name)))(t)
	return file
}

func all(string) bool { return true }

// The converted tensors are, bit for bit, those that torch.load reads. For
// those of a model see TestImportConverts.
func TestConvert(t *testing.T) {
	for _, name := range []string{"kinds", "module", "parameters"} {
		t.Run(name, func(t *testing.T) {
			got := converted(t, open(t, name+".bin"), all)
			if diff := cmp.Diff(contents(t, testdata(name+".safetensors")), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	content := check.Must(os.ReadFile(testdata(name)))(t)
	return content
}

func parse(content []byte) (*pytorch.File, error) {
	return pytorch.Parse(bytes.NewReader(content), int64(len(content)))
}

// Pieces of pickles of protocol 2.
func global(class string) string {
	i := strings.LastIndexByte(class, '.')
	return "c" + class[:i] + "\n" + class[i+1:] + "\n"
}

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// integer is pickled as a long of 9 bytes where it needs them.
func integer(n uint64) string {
	return "\x8a\x09" + string(binary.LittleEndian.AppendUint64(nil, n)) + "\x00"
}

func small(n int) string {
	return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func tuple(items ...string) string { return "(" + strings.Join(items, "") + "t" }

func call(class string, arguments ...string) string {
	return global(class) + tuple(arguments...) + "R"
}

func storageOf(class, key string, elements int, more ...string) string {
	return tuple(append([]string{text("storage"), global(class), text(key), text("cpu"), small(elements)},
		more...)...) + "Q"
}

func tensorOf(storage string, offset int, shape, strides string) string {
	return call("torch._utils._rebuild_tensor_v2", storage, small(offset), shape, strides, "\x89",
		global("collections.OrderedDict")+")R")
}

func dict(keysAndValues ...string) string { return "}(" + strings.Join(keysAndValues, "") + "u" }

func pickled(value string) string { return "\x80\x02" + value + "." }

// plain is a state dict of one tensor, [2] of 32-bit numbers.
func plain() string {
	return pickled(dict(text("w"),
		tensorOf(storageOf("torch.FloatStorage", "0", 2), 0, tuple(small(2)), tuple(small(1)))))
}

type entry struct {
	zip.FileHeader
	content string
}

func stored(name, content string) entry { return entry{zip.FileHeader{Name: name}, content} }

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		to, err := w.CreateHeader(&e.FileHeader)
		if err == nil {
			_, err = io.WriteString(to, e.content)
		}
		check.OK(t, err)
	}
	check.OK(t, w.Close())
	return b.Bytes()
}

// archiveOf is an archive of a pickle and a storage of 8 bytes.
func archiveOf(t testing.TB, pickle string) []byte {
	return archive(t, stored("m/data.pkl", pickle), stored("m/data/0", "\x00\x00\x80\x3f\x00\x00\x00\x40"))
}

// The pieces above make files that are read, so the next test's files are
// refused for their changes.
func TestParse(t *testing.T) {
	file := check.Must(parse(archiveOf(t, plain())))(t)
	want := map[string]tensor{"w": {safetensors.F32, []int{2}, "\x00\x00\x80\x3f\x00\x00\x00\x40"}}
	if diff := cmp.Diff(want, converted(t, file, all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	one := func(tensor string) []byte { return archiveOf(t, pickled(dict(text("w"), tensor))) }
	float := storageOf("torch.FloatStorage", "0", 2)
	shaped := func(offset int, shape, strides string) []byte { return one(tensorOf(float, offset, shape, strides)) }
	raw := func(h zip.FileHeader) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, e := range []entry{stored("m/data.pkl", plain()), {h, ""}} {
			e.CRC32 = 0
			if e.content != "" {
				e.CompressedSize64, e.UncompressedSize64 = uint64(len(e.content)), uint64(len(e.content))
			}
			to, err := w.CreateRaw(&e.FileHeader)
			if err == nil {
				_, err = io.WriteString(to, e.content)
			}
			check.OK(t, err)
		}
		check.OK(t, w.Close())
		return b.Bytes()
	}
	big := strings.Repeat("x", 1<<16-1)
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty", nil, "it is no archive"},
		{"safetensors", read(t, "kinds.safetensors"), "it is no archive"},
		{"tar", append(append(make([]byte, 257), "ustar\x0000"...), make([]byte, 1000)...),
			"it is no archive as torch 1.6 and later save it"},
		{"TorchScript", read(t, "script.bin"), "is compressed"},
		{"whole module", read(t, "whole.bin"), `the pickle names "torch.nn.modules.linear.Linear"`},
		{"protocol 4", read(t, "protocol4.bin"), "pickle protocol 4 is not read"},
		{"torch 1.5", []byte("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03."),
			"load it with a newer torch and save it again"},

		{"os.system", archiveOf(t, pickled(call("os.system", text("true")))),
			`the pickle names "os.system", which is no part of a state dict of weights`},
		{"eval behind a dot", archiveOf(t, pickled("c__builtin__\nx.eval\n)R")), `"__builtin__.x.eval"`},
		{"function of torch", one(call("torch._utils._rebuild_qtensor")), `"torch._utils._rebuild_qtensor"`},
		{"instance", archiveOf(t, "\x80\x02(ios\nsystem\n."), "opcode 0x69"},
		{"class from the stack", archiveOf(t, "\x80\x02"+text("os")+text("system")+"\x93."), "opcode 0x93"},

		{"BINUNICODE claims 4 GiB", archiveOf(t, "\x80\x02X\xff\xff\xff\xff."), "4294967295 bytes claimed, 1 are left"},
		{"LONG1 cut", archiveOf(t, "\x80\x02\x8a\x08\x01."), "cut short"},
		{"nothing", archiveOf(t, ""), "cut short"},
		{"deep marks", archiveOf(t, "\x80\x02"+strings.Repeat("(", 1000)+"."), "too few values"},
		{"no mark", archiveOf(t, "\x80\x02t."), "no mark"},
		{"deep tuples", archiveOf(t, "\x80\x02)"+strings.Repeat("\x85", 1<<18)+"."), "no state dict"},
		{"many opcodes", archiveOf(t, "\x80\x02"+strings.Repeat("N", 1<<19)+"."), "more than the 524288 opcodes"},
		{"tuples that double", one(")" + strings.Repeat("q\x00h\x00\x86", 1000)), "is not a tensor"},
		{"dict in itself", archiveOf(t, pickled("}q\x00"+text("w")+"h\x00s")), `"w" is not a tensor`},
		{"odd items", archiveOf(t, pickled("}("+text("w")+"u")), "not the items of a dict"},
		{"long pickle", archiveOf(t, "\x80\x02X\x00\x00\x00\x01"+strings.Repeat("x", 1<<24)+"0."),
			"more than the 16777216 that are accepted"},

		{"call of a long tuple", archiveOf(t, pickled("("+strings.Repeat("N", 1<<18)+"t)R")),
			"a call of what is no function"},

		{"no dict", archiveOf(t, pickled("K\x01")), "no state dict"},
		{"empty dict", archiveOf(t, pickled("}")), "no tensors"},
		{"number", one("K\x01"), `"w" is not a tensor`},
		{"key is a number", archiveOf(t, pickled(dict("K\x01", "K\x01"))), "not text"},
		{"conjugate", one(
			call("torch._utils._rebuild_tensor_v2", float, small(0), ")", ")", "\x89", "N",
				dict(text("conj"), "\x88"))), "conjugated"},
		{"few arguments", one(call("torch._utils._rebuild_tensor_v2", float)), "a tensor of 1 arguments"},
		{"arguments in another order",
			one(call("torch._utils._rebuild_tensor_v2", small(0), float, ")", ")", "\x89", "N")),
			"whose arguments are not"},

		{"storage of a module", one(tuple(text("module"), text("m")) + "Q"), "a whole module"},
		{"elements below 0", one(storageOf("torch.FloatStorage", "0", -1)), "not that of a storage"},
		{"more elements than 64 bits",
			one(tuple(text("storage"), global("torch.FloatStorage"), text("0"), text("cpu"), integer(1<<63)) + "Q"),
			"a number of 9 bytes"},
		{"more elements than the file", one(storageOf("torch.FloatStorage", "0", 1<<61)), "more than a file of"},
		{"fewer elements than stored", one(tensorOf(storageOf("torch.FloatStorage", "0", 1), 0, ")", ")")),
			"has 8 bytes, its 1 elements of F32 take 4"},
		{"storage absent", one(tensorOf(storageOf("torch.FloatStorage", "1", 2), 0, ")", ")")),
			`storage "1" is not in the archive`},
		{"storage in two types",
			archiveOf(t, pickled(
				dict(text("v"), tensorOf(float, 0, ")", ")"), text("w"),
					tensorOf(storageOf("torch.IntStorage", "0", 2), 0, ")", ")")))), "described twice"},
		{"path as a key", one(tensorOf(storageOf("torch.FloatStorage", "../data.pkl", 2), 0, ")", ")")),
			"is not in the archive"},

		{"offset outside", shaped(3, ")", ")"), "offset 3 is outside"},
		{"offset at the end", shaped(2, ")", ")"), "outside the storage"},
		{"offset below 0", shaped(-1, ")", ")"), "offset -1 is outside"},
		{"offset and shape outside", shaped(1, tuple(small(2)), tuple(small(1))), "reaches outside"},
		{"sum of strides overflows",
			shaped(0, tuple(small(3), small(3), small(3)), tuple(small(1<<62), small(1<<62), small(1<<62))),
			"reaches outside"},
		{"stride below 0", shaped(1, tuple(small(2)), tuple(small(-1))), "that cannot be one"},
		{"dimension below 0", shaped(0, tuple(small(-2)), tuple(small(1))), "that cannot be one"},
		{"fewer strides", shaped(0, tuple(small(1), small(1)), tuple(small(1))), "2 dimensions and 1 strides"},
		{"many dimensions",
			shaped(0, tuple(slices.Repeat([]string{"K\x01"}, 33)...), tuple(slices.Repeat([]string{"K\x01"}, 33)...)),
			"33 dimensions"},
		{"elements beyond count", shaped(0, tuple(small(1<<40), small(1<<40)), tuple(small(0), small(0))),
			"reaches outside"},

		{"archive of something else", archive(t, stored("readme.txt", "x")), "it has no data.pkl in a folder"},
		{"pickle in no folder", archive(t, stored("data.pkl", plain())), "it has no data.pkl in a folder"},
		{"a name twice",
			archive(t, stored("m/data.pkl", plain()), stored("m/data/0", "12345678"), stored("m/data/0", "12345678")),
			"in the archive twice"},
		{"big-endian", archive(t, stored("m/data.pkl", plain()), stored("m/byteorder", "big"),
			stored("m/data/0", "12345678")), `byte order "big"`},
		{"compressed storage",
			archive(t, stored("m/data.pkl", plain()),
				entry{zip.FileHeader{Name: "m/data/0", Method: zip.Deflate}, "12345678"}), "is compressed"},
		{"bomb", archive(t,
			entry{zip.FileHeader{Name: "m/data.pkl", Method: zip.Deflate}, strings.Repeat("N", 15<<20)}),
			"is compressed"},
		{"storage of absurd size",
			raw(zip.FileHeader{Name: "m/data/0", CompressedSize64: 1 << 60, UncompressedSize64: 1 << 60}),
			"claims 1152921504606846976 bytes"},
		{"storage of two sizes", raw(zip.FileHeader{Name: "m/data/0", CompressedSize64: 1, UncompressedSize64: 8}),
			"is compressed or encrypted"},
		{"directory", archive(t, slices.Repeat([]entry{stored(big, "")}, 600)...), "directory is larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(c.content)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
				len(err.Error()) > 400 {
				t.Errorf("error %v does not say %q in one line", err, c.want)
			}
		})
	}
}

// A file that has been cut anywhere is refused.
func TestParseCut(t *testing.T) {
	for _, name := range []string{"small.bin", "module.bin"} {
		content := read(t, name)
		if _, err := parse(content); err != nil {
			t.Fatal(err)
		}
		for n := range content {
			if _, err := parse(content[:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes are read without an error", name, n, len(content))
			}
		}
	}
}

// Any byte may be any other: what is read then is whole, or refused.
func TestParseAltered(t *testing.T) {
	content := read(t, "small.bin")
	for i := range content {
		for _, other := range []byte{0, 1, '.', '(', 'R', 't', 'u', 'b', 'h', 0x7f, 0x80, 0x95, 0xff, content[i] ^ 1,
			content[i] ^ 0x80} {
			altered := slices.Clone(content)
			altered[i] = other
			use(t, altered)
		}
	}
}

// use reads and converts a file. Nothing but an error or a valid safetensors
// file may come of it.
func use(t *testing.T, content []byte) {
	t.Helper()
	file, err := parse(content)
	if err != nil {
		return
	}
	var b bytes.Buffer
	if err := file.Convert(t.Context(), &b, all); err != nil {
		return
	}
	if b.Len() > 4*len(content)+1<<20 {
		t.Errorf("%d bytes became %d", len(content), b.Len())
	}
	if _, err := safetensors.Parse(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil {
		t.Fatal(err)
	}
}

// What a file claims is not allocated. Each of these claims gigabytes.
func TestParseAllocates(t *testing.T) {
	one := func(tensor string) []byte { return archiveOf(t, pickled(dict(text("w"), tensor))) }
	for name, content := range map[string][]byte{
		"BINUNICODE": archiveOf(t, "\x80\x02X\xff\xff\xff\x7f."),
		"LONG4":      archiveOf(t, "\x80\x02\x8b\xff\xff\xff\x7f."),
		"FRAME":      archiveOf(t, "\x80\x02\x95\xff\xff\xff\xff\x00\x00\x00\x00."),
		"storage": one(
			tensorOf(storageOf("torch.FloatStorage", "0", 1<<30), 0, tuple(small(1<<30)), tuple(small(1)))),
		"shape": one(tensorOf(storageOf("torch.FloatStorage", "0", 2), 0, tuple(small(1<<30)), tuple(small(1)))),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := parse(content); err == nil {
			t.Errorf("%s: no error", name)
		}
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", name, allocated)
		}
	}
}

// counted counts the bytes that are read.
type counted struct {
	io.ReaderAt
	bytes int
}

func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, at)
	c.bytes += n
	return n, err
}

// Weights that are pieces of few storages, as DeepSpeed saves them, are read
// about twice: for the checksum, and for the pieces. Other weights may lie
// between the rows of one.
func TestFlatBuffers(t *testing.T) {
	const pieces, length = 108, 50
	var floats [2]bytes.Buffer
	var items []string
	want := map[string]tensor{}
	for i := range 2 * pieces {
		storage := i % 2
		content := bytes.Repeat([]byte{byte(i), 1, 2, 63}, length)
		offset := floats[storage].Len() / 4
		floats[storage].Write(content)
		name := fmt.Sprintf("w%03d", i)
		items = append(items, text(name), tensorOf(
			storageOf("torch.FloatStorage", fmt.Sprint(storage), pieces*length), offset,
			tuple(small(2), small(length/2)), tuple(small(length/2), small(1))))
		want[name] = tensor{safetensors.F32, []int{2, length / 2}, string(content)}
	}
	// The first column of the first piece.
	items = append(items, text("column"), tensorOf(storageOf("torch.FloatStorage", "0", pieces*length), 0,
		tuple(small(2), small(1)), tuple(small(length/2), small(1))))
	want["column"] = tensor{safetensors.F32, []int{2, 1}, "\x00\x01\x02\x3f\x00\x01\x02\x3f"}
	source := archive(t, stored("m/data.pkl", pickled(dict(items...))), stored("m/data/0", floats[0].String()),
		stored("m/data/1", floats[1].String()))
	reader := &counted{ReaderAt: bytes.NewReader(source)}
	file := check.Must(pytorch.Parse(reader, int64(len(source))))(t)
	reader.bytes = 0
	if diff := cmp.Diff(want, converted(t, file, all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if reader.bytes > 3*len(source) {
		t.Errorf("%d bytes were read of a file of %d", reader.bytes, len(source))
	}
}

// A small file must not fill the disk.
func TestConvertRefuses(t *testing.T) {
	storage := storageOf("torch.FloatStorage", "0", 2)
	var many []string
	for i := range 20000 {
		many = append(many, text(fmt.Sprint("w", i)), "h\x01")
	}
	for _, c := range []struct{ name, pickle string }{
		{"strides of 0",
			dict(text("w"), tensorOf(storage, 0, tuple(small(1<<30), small(2)), tuple(small(0), small(1))))},
		{"many names", dict(
			append([]string{text("w"),
				tensorOf(storage, 0, tuple(small(1<<13), small(2)), tuple(small(0), small(1))) + "q\x01"},
				many...)...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := check.Must(parse(archiveOf(t, pickled(c.pickle))))(t)
			var b bytes.Buffer
			if err := file.Convert(t.Context(), &b, all); err == nil ||
				!strings.Contains(err.Error(), "more than 4 times as much as the file") || b.Len() > 0 {
				t.Errorf("error %v, %d bytes written", err, b.Len())
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	file := open(t, "bundle/pytorch_model.bin")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := file.Convert(ctx, io.Discard, all); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"*.bin", "*/*.bin"} {
		names, err := filepath.Glob(testdata(pattern))
		if err != nil || names == nil {
			f.Fatal(names, err)
		}
		for _, name := range names {
			content := check.Must(os.ReadFile(name))(f)
			if len(content) < 6000 {
				f.Add(content)
			}
		}
	}
	f.Add(archiveOf(f, plain()))
	f.Add(archiveOf(f, pickled(call("os.system", text("true")))))
	f.Fuzz(use)
}

// FuzzPickle alters the pickle alone, which checksums would hide from FuzzParse.
func FuzzPickle(f *testing.F) {
	f.Add([]byte(plain()))
	for _, name := range []string{"small.bin", "module.bin", "parameters.bin", "kinds.bin"} {
		archive := check.Must(zip.OpenReader(testdata(name)))(f)
		for _, file := range archive.File {
			if strings.HasSuffix(file.Name, "data.pkl") {
				content := check.Must(file.Open())(f)
				data := check.Must(io.ReadAll(content))(f)
				f.Add(data)
			}
		}
		archive.Close()
	}
	f.Fuzz(func(t *testing.T, pickle []byte) {
		entries := []entry{stored("m/data.pkl", string(pickle))}
		for i := range 24 {
			entries = append(entries, stored(fmt.Sprint("m/data/", i), "12345678"))
		}
		use(t, archive(t, entries...))
	})
}
