package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"infill/internal/hub"
)

// MirrorVariable is the name of the environment variable with the address that
// takes the place of the publisher's.
const MirrorVariable = "INFILL_ONNXRUNTIME_MIRROR"

// publisher has onnxruntime's releases, each in a folder of its tag.
const publisher = "https://github.com/microsoft/onnxruntime/releases/download"

// A source brings archives.
type source interface {
	// String returns a name for messages.
	String() string
	// bring leaves the archive of c in folder, and returns its path.
	bring(ctx context.Context, c *carrier, folder string, progress Progress) (archive string, err error)
}

var _, _, _ source = pip{}, release{}, npm{}

// pip brings a wheel by Python's pip, which knows registry and proxies.
type pip struct{ name, tag string } // of the package, and of the platform

func (pip) String() string { return "pip" }

func (s pip) bring(ctx context.Context, c *carrier, folder string, _ Progress) (string, error) {
	words, err := run(ctx, folder, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
		"--no-input", "--no-deps", "--only-binary", ":all:", "--python-version", "3.12", "--implementation", "cp",
		"--abi", "cp312", "--platform", s.tag, "--retries", "1", "--timeout", "10", "--dest", ".",
		s.name+"=="+c.version)
	switch {
	case err == nil:
		return only(folder, "*.whl")
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("there is no python3")
	}
	// pip's error says that it found nothing, and a warning before why.
	for line := range strings.Lines(words) {
		line = strings.TrimSpace(line)
		if _, broken, found := strings.Cut(line, "connection broken by "); found {
			return "", fmt.Errorf("it cannot reach the package index: %.160s", broken)
		}
		if strings.HasPrefix(line, "ERROR: ") || strings.Contains(line, "No module named pip") {
			return "", fmt.Errorf("%.200s", strings.TrimPrefix(line, "ERROR: "))
		}
	}
	return "", err
}

// npm brings a package by Node's npm, which knows registry and proxies.
type npm struct{ name string }

func (npm) String() string { return "npm" }

func (s npm) bring(ctx context.Context, c *carrier, folder string, _ Progress) (string, error) {
	words, err := run(ctx, folder, "npm", "pack", "--silent", "--ignore-scripts", "--fetch-retries=1",
		s.name+"@"+c.version)
	switch {
	case err == nil:
		return only(folder, "*.tgz")
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("there is no npm")
	}
	for line := range strings.Lines(words) {
		for _, start := range []string{"npm error ", "npm ERR! "} {
			message, found := strings.CutPrefix(strings.TrimSpace(line), start)
			if found && !strings.HasPrefix(message, "code ") {
				return "", fmt.Errorf("%.200s", message)
			}
		}
	}
	return "", err
}

// release brings an archive that onnxruntime's publisher offers.
type release struct{ file string }

func (release) String() string {
	address, err := url.Parse(mirror())
	if err != nil {
		return "the publisher's release"
	}
	return address.Host
}

func (s release) bring(ctx context.Context, c *carrier, folder string, progress Progress) (string, error) {
	path := filepath.Join(folder, s.file)
	err := hub.Download(ctx, hub.Plain{Address: mirror() + "/v" + c.version + "/" + s.file, Size: c.size,
		SHA256: c.sha256}, path, hub.Options{Progress: progress, Attempts: 3})
	if err != nil && os.Getenv(MirrorVariable) != "" {
		err = fmt.Errorf("%w (%s)", err, MirrorVariable)
	}
	return path, err
}

// mirror returns the address under which the releases lie.
func mirror() string {
	return strings.TrimRight(cmp.Or(os.Getenv(MirrorVariable), publisher), "/")
}

// run runs a program in folder, which is also its temporary folder, and returns
// what it writes. Python would execute a pip.py that lies in the user's current
// folder, and npm would read an .npmrc there.
func run(ctx context.Context, folder, program string, arguments ...string) (words string, err error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = folder
	// PIP_REQUIRE_VIRTUALENV=0 overrides the user's setting, because nothing is
	// installed here.
	command.Env = append(os.Environ(), "TMPDIR="+folder, "TEMP="+folder, "TMP="+folder, "PIP_REQUIRE_VIRTUALENV=0")
	command.WaitDelay = 2 * time.Second
	output, err := command.CombinedOutput()
	return string(output), err
}

// only returns the one file in folder whose name matches pattern.
func only(folder, pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("it left %d files %s, expected one", len(found), pattern)
	}
	return found[0], nil
}
