package library

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// Info is what the bytes of a shared library say about it.
type Info struct {
	Path    string   // as given
	Size    int64    // bytes
	OS      string   // in Go's names: "linux", "darwin", "windows"
	Arch    string   // in Go's names: "amd64", "arm64"; the machine's own name when Go has none
	Version string   // "1.24.1"; empty when the file records none
	Needs   []string // names of the libraries it asks the loader for
}

// Inspect reads the version and the platform of an onnxruntime library from the records that its linker left in the
// file: the symbol version VERS_x.y.z (ELF), the dylib's current version (Mach-O), the version resource and constant
// (PE). It does not load the library: loading a foreign, truncated or wrong file can end the process, which no caller
// could recover. For the same reason a file that is shorter than its own headers say is an error here.
func Inspect(path string) (Info, error) {
	info := Info{Path: path}
	file, err := os.Open(path)
	if err != nil {
		return info, err // *fs.PathError names the path and the reason
	}
	defer file.Close()
	status, err := file.Stat()
	if err != nil {
		return info, err
	}
	if !status.Mode().IsRegular() {
		return info, fmt.Errorf("%s: not a file", path)
	}
	info.Size = status.Size()

	magic := make([]byte, 4)
	if _, err := io.ReadFull(file, magic); err != nil {
		return info, fmt.Errorf("%s: not a shared library: %d bytes long", path, info.Size)
	}
	read := func(io.ReaderAt) (imports, error) {
		return nil, fmt.Errorf("not a shared library: it begins with %q", magic)
	}
	switch {
	case string(magic) == elf.ELFMAG:
		read = info.readELF
	case string(magic[:2]) == "MZ":
		read = info.readPE
	case bytes.Equal(magic, []byte{0xcf, 0xfa, 0xed, 0xfe}), bytes.Equal(magic, []byte{0xca, 0xfe, 0xba, 0xbe}):
		read = info.readMachO
	}
	f, err := read(file)
	if err == nil {
		if info.Needs, err = f.ImportedLibraries(); err != nil {
			err = damaged(err)
		}
	}
	if err != nil {
		return info, fmt.Errorf("%s: %w", path, err)
	}
	return info, nil
}

// imports is a file of any of the three formats.
type imports interface{ ImportedLibraries() ([]string, error) }

// holds refuses a file that ends before end, in bytes: the loader maps what the headers promise and dies of SIGBUS
// where there is less.
func (info *Info) holds(start, length uint64) error {
	if end := start + length; end < start || end > uint64(info.Size) {
		return fmt.Errorf("truncated: %d bytes long, its headers ask for at least %d", info.Size, end)
	}
	return nil
}

// machine is a machine in Go's name, or in its own where Go has none.
func machine[M comparable](m, amd64, arm64 M, own string) string {
	switch m {
	case amd64:
		return "amd64"
	case arm64:
		return "arm64"
	}
	return own
}

func (info *Info) readELF(file io.ReaderAt) (imports, error) {
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, damaged(err)
	}
	if f.Type != elf.ET_DYN {
		return nil, fmt.Errorf("not a shared library: its ELF type is %v", f.Type)
	}
	info.OS, info.Arch = "linux",
		machine(f.Machine, elf.EM_X86_64, elf.EM_AARCH64,
			strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_")))
	for _, segment := range f.Progs {
		if err := info.holds(segment.Off, segment.Filesz); err != nil {
			return nil, err
		}
	}
	for _, section := range f.Sections {
		if section.Type == elf.SHT_NOBITS {
			continue
		}
		if err := info.holds(section.Offset, section.FileSize); err != nil {
			return nil, err
		}
	}
	if f.SectionByType(elf.SHT_GNU_VERDEF) == nil {
		return f, nil // a library may do without; its version stays unknown
	}
	versions, err := f.DynamicVersions()
	if err != nil {
		return nil, damaged(err)
	}
	for _, version := range versions {
		if name, found := strings.CutPrefix(version.Name, "VERS_"); found {
			info.Version = name
		}
	}
	return f, nil
}

func (info *Info) readMachO(file io.ReaderAt) (imports, error) {
	var f *macho.File
	if fat, err := macho.NewFatFile(file); err == nil {
		// A universal library serves each of its machines; arm64 is asked first because that is the Mac we fetch for.
		f = fat.Arches[0].File
		for _, arch := range fat.Arches {
			if arch.Cpu == macho.CpuArm64 {
				f = arch.File
			}
		}
	} else if f, err = macho.NewFile(file); err != nil {
		return nil, damaged(err)
	}
	if f.Type != macho.TypeDylib {
		return nil, fmt.Errorf("not a shared library: its Mach-O type is %v", f.Type)
	}
	info.OS, info.Arch = "darwin",
		machine(f.Cpu, macho.CpuAmd64, macho.CpuArm64, strings.ToLower(strings.TrimPrefix(f.Cpu.String(), "Cpu")))
	for _, load := range f.Loads {
		if segment, ok := load.(*macho.Segment); ok {
			if err := info.holds(segment.Offset, segment.Filesz); err != nil {
				return nil, err
			}
		}
		const idDylib = 0xd // LC_ID_DYLIB: command, size, name, timestamp, current version, compatible version
		raw := load.Raw()
		if len(raw) >= 24 && f.ByteOrder.Uint32(raw) == idDylib {
			v := f.ByteOrder.Uint32(raw[16:])
			info.Version = fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff)
		}
	}
	return f, nil
}

func (info *Info) readPE(file io.ReaderAt) (imports, error) {
	f, err := pe.NewFile(file)
	if err != nil {
		return nil, damaged(err)
	}
	if f.Characteristics&pe.IMAGE_FILE_DLL == 0 {
		return nil, errors.New("not a shared library: a Windows program, not a DLL")
	}
	info.OS, info.Arch = "windows",
		machine(f.Machine, pe.IMAGE_FILE_MACHINE_AMD64, pe.IMAGE_FILE_MACHINE_ARM64,
			fmt.Sprintf("machine %#x", f.Machine))
	for _, section := range f.Sections {
		if err := info.holds(uint64(section.Offset), uint64(section.Size)); err != nil {
			return nil, err
		}
		if section.Name != ".rsrc" {
			continue
		}
		resources, err := section.Data()
		if err != nil {
			return nil, damaged(err)
		}
		// VS_FIXEDFILEINFO: signature, structure version 1.0, file version in two words of two halves.
		fixed := []byte{0xbd, 0x04, 0xef, 0xfe, 0, 0, 1, 0}
		if at := bytes.Index(resources, fixed); at >= 0 && at+16 <= len(resources) {
			high := binary.LittleEndian.Uint32(resources[at+8:])
			info.Version = fmt.Sprintf("%d.%d", high>>16, high&0xffff)
		}
	}
	// The third number of the resource is a build date; the release's own stands among the constants, as the C string
	// that GetVersionString returns.
	if constants := f.Section(".rdata"); constants != nil && info.Version != "" {
		data, err := constants.Data()
		if err != nil {
			return nil, damaged(err)
		}
		text := regexp.MustCompile(`\x00(` + regexp.QuoteMeta(info.Version) + `\.[0-9]+)\x00`)
		if match := text.FindSubmatch(data); match != nil {
			info.Version = string(match[1])
		}
	}
	return f, nil
}

func damaged(err error) error {
	return fmt.Errorf("damaged, or not a shared library: %w", err)
}
