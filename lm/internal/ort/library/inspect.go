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

// Inspect reads the version and the platform of an onnxruntime library from the records that its linker left in the file:
// the symbol version VERS_x.y.z (ELF), the dylib's current version (Mach-O), the version resource and constant (PE).
// It does not load the library: loading a foreign, truncated or wrong file can end the process, which no caller could recover.
// For the same reason a file that is shorter than its own headers say is an error here.
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
	switch {
	case string(magic) == elf.ELFMAG:
		err = info.readELF(file)
	case string(magic[:2]) == "MZ":
		err = info.readPE(file)
	case bytes.Equal(magic, []byte{0xcf, 0xfa, 0xed, 0xfe}), bytes.Equal(magic, []byte{0xca, 0xfe, 0xba, 0xbe}):
		err = info.readMachO(file)
	default:
		err = fmt.Errorf("not a shared library: it begins with %q", magic)
	}
	if err != nil {
		return info, fmt.Errorf("%s: %w", path, err)
	}
	return info, nil
}

func (info *Info) readELF(file io.ReaderAt) error {
	f, err := elf.NewFile(file)
	if err != nil {
		return damaged(err)
	}
	defer f.Close()
	if f.Type != elf.ET_DYN {
		return fmt.Errorf("not a shared library: its ELF type is %v", f.Type)
	}
	info.OS = "linux"
	switch f.Machine {
	case elf.EM_X86_64:
		info.Arch = "amd64"
	case elf.EM_AARCH64:
		info.Arch = "arm64"
	default:
		info.Arch = strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
	}
	for _, segment := range f.Progs {
		// The loader maps what the headers promise and dies of SIGBUS where the file ends earlier.
		if end := segment.Off + segment.Filesz; end < segment.Off || end > uint64(info.Size) {
			return fmt.Errorf("truncated: %d bytes long, its headers ask for at least %d", info.Size, end)
		}
	}
	for _, section := range f.Sections {
		if end := section.Offset + section.FileSize; section.Type != elf.SHT_NOBITS && (end < section.Offset || end > uint64(info.Size)) {
			return fmt.Errorf("truncated: %d bytes long, its headers ask for at least %d", info.Size, end)
		}
	}
	if info.Needs, err = f.ImportedLibraries(); err != nil {
		return damaged(err)
	}
	if f.SectionByType(elf.SHT_GNU_VERDEF) == nil {
		return nil // a library may do without; its version stays unknown
	}
	versions, err := f.DynamicVersions()
	if err != nil {
		return damaged(err)
	}
	for _, version := range versions {
		if name, found := strings.CutPrefix(version.Name, "VERS_"); found {
			info.Version = name
		}
	}
	return nil
}

func (info *Info) readMachO(file io.ReaderAt) error {
	var f *macho.File
	if fat, err := macho.NewFatFile(file); err == nil {
		defer fat.Close()
		// A universal library serves each of its machines; arm64 is asked first because that is the Mac we fetch for.
		f = fat.Arches[0].File
		for _, arch := range fat.Arches {
			if arch.Cpu == macho.CpuArm64 {
				f = arch.File
			}
		}
	} else if f, err = macho.NewFile(file); err != nil {
		return damaged(err)
	} else {
		defer f.Close()
	}
	if f.Type != macho.TypeDylib {
		return fmt.Errorf("not a shared library: its Mach-O type is %v", f.Type)
	}
	info.OS = "darwin"
	switch f.Cpu {
	case macho.CpuAmd64:
		info.Arch = "amd64"
	case macho.CpuArm64:
		info.Arch = "arm64"
	default:
		info.Arch = strings.ToLower(strings.TrimPrefix(f.Cpu.String(), "Cpu"))
	}
	for _, load := range f.Loads {
		if segment, ok := load.(*macho.Segment); ok {
			if end := segment.Offset + segment.Filesz; end < segment.Offset || end > uint64(info.Size) {
				return fmt.Errorf("truncated: %d bytes long, its headers ask for at least %d", info.Size, end)
			}
		}
		const idDylib = 0xd // LC_ID_DYLIB: command, size, name, timestamp, current version, compatible version
		raw := load.Raw()
		if len(raw) >= 24 && f.ByteOrder.Uint32(raw) == idDylib {
			v := f.ByteOrder.Uint32(raw[16:])
			info.Version = fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff)
		}
	}
	var err error
	if info.Needs, err = f.ImportedLibraries(); err != nil {
		return damaged(err)
	}
	return nil
}

func (info *Info) readPE(file io.ReaderAt) error {
	f, err := pe.NewFile(file)
	if err != nil {
		return damaged(err)
	}
	defer f.Close()
	if f.Characteristics&pe.IMAGE_FILE_DLL == 0 {
		return errors.New("not a shared library: a Windows program, not a DLL")
	}
	info.OS = "windows"
	switch f.Machine {
	case pe.IMAGE_FILE_MACHINE_AMD64:
		info.Arch = "amd64"
	case pe.IMAGE_FILE_MACHINE_ARM64:
		info.Arch = "arm64"
	default:
		info.Arch = fmt.Sprintf("machine %#x", f.Machine)
	}
	for _, section := range f.Sections {
		if end := int64(section.Offset) + int64(section.Size); end > info.Size {
			return fmt.Errorf("truncated: %d bytes long, its headers ask for at least %d", info.Size, end)
		}
		if section.Name != ".rsrc" {
			continue
		}
		resources, err := section.Data()
		if err != nil {
			return damaged(err)
		}
		// VS_FIXEDFILEINFO: signature, structure version 1.0, file version in two words of two halves.
		fixed := []byte{0xbd, 0x04, 0xef, 0xfe, 0, 0, 1, 0}
		if at := bytes.Index(resources, fixed); at >= 0 && at+16 <= len(resources) {
			high := binary.LittleEndian.Uint32(resources[at+8:])
			info.Version = fmt.Sprintf("%d.%d", high>>16, high&0xffff)
		}
	}
	// The third number of the resource is a build date; the release's own stands among the constants, as the C string that
	// GetVersionString returns.
	if constants := f.Section(".rdata"); constants != nil && info.Version != "" {
		data, err := constants.Data()
		if err != nil {
			return damaged(err)
		}
		text := regexp.MustCompile(`\x00(` + regexp.QuoteMeta(info.Version) + `\.[0-9]+)\x00`)
		if match := text.FindSubmatch(data); match != nil {
			info.Version = string(match[1])
		}
	}
	if info.Needs, err = f.ImportedLibraries(); err != nil {
		return damaged(err)
	}
	return nil
}

func damaged(err error) error {
	return fmt.Errorf("damaged, or not a shared library: %w", err)
}
