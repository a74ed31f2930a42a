package lm

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"

	"infill/models"
)

// CheckInt8 returns an error if models in int8 do not run on this machine's
// processor.
func CheckInt8() error { return checkInt8(runtime.GOARCH, cpu.X86.HasAVX512VNNI || cpu.X86.HasAVXVNNI) }

// checkInt8 does what CheckInt8 does, for a processor of the given architecture,
// with or without VNNI.
func checkInt8(arch string, vnni bool) error {
	switch {
	case arch != "amd64":
		return fmt.Errorf("models in int8 were not tried on processors of the kind %s", arch)
	case !vnni: // sums of bytes are cut off at 16 bits
		return errors.New("this processor has no VNNI (AVX-512 or AVX), and computes wrong numbers of models in int8")
	}
	return nil
}

// int8Device returns the device for a model in int8, of which device is wanted.
func int8Device(b *models.Bundle, device string) (string, error) {
	if strings.HasPrefix(device, "cuda") {
		return "", fmt.Errorf("model %s is in int8, which is for processors: use --device cpu, or %s", b.Name,
			inFloat(b))
	}
	if err := CheckInt8(); err != nil {
		return "", fmt.Errorf("model %s is in int8: %w; use %s", b.Name, err, inFloat(b))
	}
	return "cpu", nil
}

// inFloat names the model of which b is a copy in int8, if b says which.
func inFloat(b *models.Bundle) string {
	return strings.TrimSpace("the model in float " + b.Manifest.Float)
}
