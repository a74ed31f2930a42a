// Command release builds the files of a release: a wheel for a platform,
// and its SHA-256 sum. `go version -m` lists the modules in the program
// inside the wheel.
//
//	go run ./cmd/release                                  # for this platform, into dist
//	go run ./cmd/release -platform linux/arm64 -cc aarch64-linux-gnu-gcc
//	go run ./cmd/release -platform windows/amd64 -cc x86_64-w64-mingw32-gcc
//
// Debian has both compilers. macOS needs a Mac: run it there without flags.
//
// To try the other platforms on Debian 12: run arm64 under qemu-aarch64. Its -L
// names a folder with the libraries of arm64 as lib, and the text of an arm64
// machine as proc/cpuinfo, without which onnxruntime does not start. Run
// Windows under wine 8 with a bcryptprimitives.dll that has ProcessPrng, which
// Go needs and newer versions of wine have.
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var r release
	flag.StringVar(&r.platform, "platform", runtime.GOOS+"/"+runtime.GOARCH,
		"`OS/ARCH` to build for; another one needs -cc")
	flag.StringVar(&r.compiler, "cc", "", "the C `COMPILER` for the platform")
	flag.StringVar(&r.out, "out", "dist", "`FOLDER` to write into")
	flag.Parse()
	err := r.run(ctx)
	if flag.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type release struct {
	platform, out, compiler, os, arch string
}

type file struct {
	name    string
	content []byte
	program bool // whether the file is executable
}

func (r *release) run(ctx context.Context) error {
	var ok bool
	r.os, r.arch, ok = strings.Cut(r.platform, "/")
	if !ok ||
		!slices.Contains([]string{"linux", "darwin", "windows"}, r.os) {
		return fmt.Errorf("-platform %s: write linux, darwin or windows, and amd64 or arm64: linux/amd64", r.platform)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "infill-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	program := file{name: "infill", program: true}
	if r.os == "windows" {
		program.name = "infill.exe"
	}
	path := filepath.Join(folder, program.name)
	if err := r.build(ctx, path); err != nil {
		return err
	}
	program.content, err = os.ReadFile(path)
	if err != nil {
		return err
	}
	tag, err := r.wheelTag(path)
	if err != nil {
		return err
	}
	wheel, err := wheel(program, tag)
	if err != nil {
		return err
	}
	path = filepath.Join(r.out, wheel.name)
	if err := os.WriteFile(path, wheel.content, 0o644); err != nil {
		return err
	}
	fmt.Println(path)
	return os.WriteFile(path+".sha256", fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(wheel.content), wheel.name), 0o644)
}

// build builds the program. The program contains no path and no time, so that
// two builds are equal byte for byte.
func (r *release) build(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -buildid= -X infill/infill.commit="+commit(ctx), "-o", path, "./cmd/infill")
	cmd.Stdout = os.Stderr
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOOS="+r.os, "GOARCH="+r.arch)
	if r.compiler != "" {
		cmd.Env = append(cmd.Env, "CC="+r.compiler)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build for %s: %w", r.platform, err)
	}
	return nil
}

// commit returns the commit of the build, or "" outside a checkout.
func commit(ctx context.Context) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12")
	name, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSpace(string(name)), "-", ".")
}
