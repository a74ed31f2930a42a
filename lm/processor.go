package lm

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// Processor names the instructions of this machine's processor by which
// onnxruntime chooses its kernels, such as "AVX-512, VNNI". Other kernels add in
// another order, so that the last digits of a number depend on them. It returns
// "" for a processor that has none of them.
func Processor() string {
	var names []string
	for _, kind := range []struct {
		name string
		has  bool
	}{
		{"AVX-512", cpu.X86.HasAVX512F},
		{"AVX2", cpu.X86.HasAVX2 && !cpu.X86.HasAVX512F},
		{"AVX", cpu.X86.HasAVX && !cpu.X86.HasAVX2},
		{"VNNI", hasVNNI()},
		{"AMX", cpu.X86.HasAMXInt8},
		{"NEON", cpu.ARM64.HasASIMD},
		{"dot products", cpu.ARM64.HasASIMDDP},
		{"I8MM", cpu.ARM64.HasI8MM},
		{"SVE", cpu.ARM64.HasSVE},
	} {
		if kind.has {
			names = append(names, kind.name)
		}
	}
	return strings.Join(names, ", ")
}

func hasVNNI() bool { return cpu.X86.HasAVX512VNNI || cpu.X86.HasAVXVNNI }

// CheckInt8 returns an error if int8 does not run on this processor.
func CheckInt8() error { return checkInt8(runtime.GOARCH) }

// checkInt8 does what CheckInt8 does, for a processor of the given architecture.
func checkInt8(arch string) error {
	if arch != "amd64" {
		return fmt.Errorf("models in int8 were not tried on processors of the kind %s", arch)
	}
	return nil
}
