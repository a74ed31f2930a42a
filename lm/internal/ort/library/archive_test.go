package library

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnpack(t *testing.T) {
	library := []byte(strings.Repeat("library ", 1000))
	const inside = "onnxruntime-linux-x64-1.24.1/lib/libonnxruntime.so.1.24.1"
	wanted := member{path: inside, as: "libonnxruntime.so", size: int64(len(library)), sha256: digestOf(library)}
	good := entry{name: inside, data: library}
	escaping := entry{name: "../../../../escaped", data: []byte("x")}
	for _, test := range []struct {
		name    string
		entries []entry
		member  member
		want    string // "" for success
	}{
		{"good", []entry{{name: "LICENSE", data: []byte("x")}, good, {name: "later", data: []byte("x")}}, wanted, ""},
		{"dot slash", []entry{{name: "./" + inside, data: library}}, wanted, ""},
		{"size and digest unpinned", []entry{good}, member{path: inside, as: wanted.as}, ""},
		{"names that escape are not ours", []entry{escaping, {name: "/etc/escaped", data: []byte("x")}, good}, wanted,
			""},
		{"no such member", []entry{{name: "LICENSE"}}, wanted, "holds no file " + inside},
		{"only its path escapes", []entry{{name: "../" + inside, data: library}}, wanted, "holds no file " + inside},
		{"a link", []entry{{name: inside, data: []byte("/etc/passwd"), mode: fs.ModeSymlink}}, wanted,
			"holds no file " + inside},
		{"twice", []entry{good, good}, wanted, "holds " + inside + " twice"},
		{"shorter", []entry{{name: inside, data: library[1:]}}, wanted, "7999 bytes, expected 8000"},
		{"longer", []entry{{name: inside, data: append([]byte("x"), library...)}}, wanted, "larger than 8000 bytes"},
		{"altered", []entry{{name: inside, data: bytes.ToUpper(library)}}, wanted,
			"expected SHA-256 " + digestOf(library)},
	} {
		for extension, pack := range map[string]func(testing.TB, ...entry) []byte{".tgz": tarred, ".tar.gz": tarred,
			".zip": zipped, ".whl": zipped} {
			t.Run(test.name+extension, func(t *testing.T) {
				folder := t.TempDir()
				archive, out := filepath.Join(folder, "a"+extension), filepath.Join(folder, "deep", "er", "out")
				write(t, archive, pack(t, test.entries...))
				if err := os.MkdirAll(out, 0o755); err != nil {
					t.Fatal(err)
				}
				files, err := unpack(archive, []member{test.member}, out)
				if test.want != "" {
					wantOneLine(t, err, "a"+extension, test.want)
				} else {
					if err != nil {
						t.Fatal(err)
					}
					if len(files) != 1 ||
						files[0] != (manifestFile{Name: wanted.as, Size: wanted.size, SHA256: wanted.sha256}) {
						t.Errorf("files %+v", files)
					}
					if data, err := os.ReadFile(filepath.Join(out, wanted.as)); err != nil ||
						!bytes.Equal(data, library) {
						t.Errorf("the file differs: %v", err)
					}
				}
				// Nothing but the one member, under our name, was written anywhere.
				filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
					if err != nil {
						t.Error(err)
					} else if !entry.IsDir() && path != archive && path != filepath.Join(out, wanted.as) {
						t.Errorf("written: %s", path)
					}
					return nil
				})
			})
		}
	}
}

func TestUnpackDamagedArchives(t *testing.T) {
	library := make([]byte, 20000)
	for i := range library {
		library[i] = byte(i * i >> 3)
	}
	wanted := []member{{path: "lib", as: "lib", size: int64(len(library)), sha256: digestOf(library)}}
	for extension, archive := range map[string][]byte{".tgz": tarred(t, entry{name: "lib", data: library}),
		".zip": zipped(t, entry{name: "lib", data: library})} {
		folder := t.TempDir()
		try := func(what string, data []byte) {
			path := filepath.Join(folder, "a"+extension)
			write(t, path, data)
			out := t.TempDir()
			if _, err := unpack(path, wanted, out); err != nil {
				return
			}
			// The end of an archive holds nothing of the member's; whatever comes out must be right.
			if data, err := os.ReadFile(filepath.Join(out, "lib")); err != nil || !bytes.Equal(data, library) {
				t.Errorf("%s of %s came out wrong: %v", what, extension, err)
			}
		}
		for cut := 0; cut < len(archive); cut += 97 {
			try("a beginning", archive[:cut])
			flipped := append([]byte{}, archive...)
			flipped[cut] ^= 0x40
			try("a flipped bit", flipped)
		}
	}
}
