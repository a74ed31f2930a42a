package library

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

// Version is the first of the onnxruntime releases that Fetch downloads. Its
// library for CUDA is made for CUDA 13.
const Version = "1.31.1"

// The digests of pip's and of npm's files are from downloads in November 2026.
// Those of the publisher's archives are the ones that five repositories name,
// which pin them independently.
//
//go:embed pins.json
var pinned []byte

// pins has, by the folder of a platform, what brings its library, in the order
// in which to try, and the library that the binding's module brings for its
// tests.
var pins = sync.OnceValue(func() (list map[string]pin) {
	err := json.Unmarshal(pinned, &list)
	if err != nil {
		panic(err) // never happens: TestCarriers reads them
	}
	return list
})

type pin struct {
	Carriers []struct {
		By, Name, Tag, Version string
		Size                   int64
		SHA256                 string
		Members                []member
	}
	Module *member
}

// carriers returns what brings the library, in the order in which to try.
func (p pin) carriers() (list []carrier) {
	for _, c := range p.Carriers {
		by := map[string]source{"pip": pip{c.Name, c.Tag}, "release": release{c.Name}, "npm": npm{c.Name}}[c.By]
		list = append(list, carrier{by, c.Version, c.Size, c.SHA256, c.Members})
	}
	return list
}

// A carrier brings a library in an archive.
type carrier struct {
	source  source
	version string // onnxruntime's release
	size    int64  // of the archive in bytes; 0 if it is not known
	sha256  string // of the archive; "" if it is not known, and members have their own
	members []member
}

// A member is a file in an archive.
type member struct {
	Path   string // in the archive
	Name   string // in the cache
	SHA256 string // "" if the archive's digest is enough
}

type platform struct {
	os, arch string // as Go names them
	cuda     bool
}

// String returns a name for messages, such as "linux/amd64 with CUDA".
func (p platform) String() string {
	if p.cuda {
		return fmt.Sprintf("%s/%s with CUDA", p.os, p.arch)
	}
	return p.os + "/" + p.arch
}

// folder returns the name of the cache's folder, such as "linux-amd64-cuda".
func (p platform) folder() string {
	if p.cuda {
		return p.os + "-" + p.arch + "-cuda"
	}
	return p.os + "-" + p.arch
}
