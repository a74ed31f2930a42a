package tokenize_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"infill/internal/check"
	"infill/tokenize"
)

var errDisk = errors.New("input/output error")

// A faultyDisk fails at the operation at which left reaches 0.
type faultyDisk struct {
	fs.FS
	left *int
}

var (
	_ fs.StatFS     = faultyDisk{}
	_ fs.ReadLinkFS = faultyDisk{}
)

func (d faultyDisk) step() error {
	*d.left--
	if *d.left == 0 {
		return errDisk
	}
	return nil
}

func (d faultyDisk) Open(name string) (fs.File, error) {
	if wrong := d.step(); wrong != nil {
		return nil, wrong
	}
	file, err := d.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return faultyFile{file, d}, nil
}

func (d faultyDisk) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(d.FS, name)
	if wrong := d.step(); wrong != nil {
		return nil, wrong
	}
	return info, err
}

func (d faultyDisk) Lstat(name string) (fs.FileInfo, error) {
	info, err := fs.Lstat(d.FS, name)
	if wrong := d.step(); wrong != nil {
		return nil, wrong
	}
	return info, err
}

func (d faultyDisk) ReadLink(name string) (string, error) { return fs.ReadLink(d.FS, name) }

type faultyFile struct {
	fs.File
	disk faultyDisk
}

func (f faultyFile) Read(p []byte) (int, error) {
	if err := f.disk.step(); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

// TestFaultyDisk: whichever operation of the disk fails, Load returns the error.
// It takes no file for absent that it could not look at.
func TestFaultyDisk(t *testing.T) {
	vocabulary := fstest.MapFS{}
	for _, name := range []string{"vocab.txt", "tokenizer_config.json"} {
		vocabulary[name] = &fstest.MapFile{Data: check.Must(os.ReadFile(mini + "/" + name))(t)}
	}
	folders := map[string]fs.FS{"mini": os.DirFS(mini), "vocabulary": vocabulary, "byte pairs": unconvertedFiles(t),
		"nothing": fstest.MapFS{}}
	for _, name := range familyNames {
		folders[name] = fstest.MapFS{"tokenizer.json": {Data: familyFile(t, name+".tokenizer.json")}}
	}
	for name, folder := range folders {
		t.Run(name, func(t *testing.T) {
			_, whole := tokenize.Load(folder)
			for n := 1; ; n++ {
				left := n
				_, err := tokenize.Load(faultyDisk{folder, &left})
				if left > 0 {
					if n < 8 {
						t.Errorf("only %d operations", n-1)
					}
					if name != "nothing" {
						check.OK(t, errors.Join(err, whole))
					}
					return
				}
				if !errors.Is(err, errDisk) {
					t.Fatalf("the fault of operation %d came out as %v", n, err)
				}
			}
		})
	}
}
