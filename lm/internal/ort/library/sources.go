package library

import (
	"context"
	"fmt"
	"infill/internal/regular"
	"path/filepath"
)

// source brings published files to this machine.
type source interface {
	// bring puts the pinned file into folder. It returns when ctx ends, having ended what it started.
	bring(ctx context.Context, pin pin, folder string, show *progress) (brought, error)
}

// brought is a file that has come and whose digest is verified.
type brought struct {
	path   string
	sha256 string
}

func sources(version string) map[string]source {
	return map[string]source{
		"release": newReleasePage(version),
		"pip":     pip{},
	}
}

// verified checks a file's digest.
func verified(path, sha256 string) (brought, error) {
	digest, err := regular.SHA256(path)
	if err != nil {
		return brought{}, err
	}
	if digest != sha256 {
		return brought{}, fmt.Errorf("%s: expected SHA-256 %s, found %s", filepath.Base(path), sha256, digest)
	}
	return brought{path: path, sha256: digest}, nil
}
