package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// source brings published files to this machine.
type source interface {
	// bring puts the pinned file into folder. It returns when ctx ends, having ended what it started.
	bring(ctx context.Context, pin pin, folder string, show *progress) (brought, error)
}

// brought is a file, or folder, that has come and whose digest is verified if it has one.
type brought struct {
	path     string
	unpacked bool   // path is a folder in which the members lie
	sha256   string // of the file
}

func sources() map[string]source {
	return map[string]source{
		"release":         newReleasePage(),
		"pip":             pip{},
		"npm":             npm{},
		"go":              goModule{},
		"go module cache": goModule{offline: true},
	}
}

// verified checks a file's digest.
func verified(path, sha256 string) (brought, error) {
	digest, err := digestFile(path)
	if err != nil {
		return brought{}, err
	}
	if digest != sha256 {
		return brought{}, fmt.Errorf("%s: expected SHA-256 %s, found %s", filepath.Base(path), sha256, digest)
	}
	return brought{path: path, sha256: digest}, nil
}

// keep puts the pinned members into folder.
func (b brought) keep(pin pin, folder string) ([]manifestFile, error) {
	if !b.unpacked {
		return unpack(b.path, pin.members, folder)
	}
	var files []manifestFile
	for _, m := range pin.members {
		if m.sha256 == "" {
			return nil, errors.New("a file without an archive needs a pinned digest")
		}
		content, err := os.Open(filepath.Join(b.path, filepath.FromSlash(m.path)))
		if err != nil {
			return nil, err
		}
		file, err := keepMember(m, content, folder)
		content.Close() // read only
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
