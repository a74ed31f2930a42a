package ort

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/cpu"
)

// useOpenVINO has OpenVINO compute, on the CPU or Intel's GPU, or says what is missing. It ends with a run.
func (r *Runtime) useOpenVINO(ctx context.Context, gpu int) error {
	provider := filepath.Join(filepath.Dir(r.library), "libonnxruntime_providers_openvino.so")
	if _, err := os.Stat(provider); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("openvino: %s has no OpenVINO provider: %s is not beside it; run `infill setup "+
			"--openvino`, or use --device cpu", r.library, filepath.Base(provider))
	} else if err != nil {
		return err
	}
	device := "openvino"
	r.openVINO = "CPU"
	if gpu > 0 {
		device, r.openVINO = "openvino:gpu", "GPU"
	}
	if err := r.try(ctx, r.settings); err != nil {
		r.openVINO = ""
		return fmt.Errorf("openvino: OpenVINO's %s does not compute here: %w", map[int]string{0: "CPU", 1: "GPU"}[gpu],
			err)
	}
	r.device = device
	return nil
}

// BFloat16 says why products are not computed in bfloat16 here; nil: they are. On processors without it OpenVINO takes
// single precision, and says nothing.
func (r *Runtime) BFloat16() error {
	switch {
	case r.openVINO == "":
		return fmt.Errorf("it runs on OpenVINO, not on %s: give the device openvino", r.device)
	case r.openVINO == "CPU" && !cpu.X86.HasAVX512F && !cpu.X86.HasAVXVNNIInt8:
		return errors.New("this processor has neither AVX-512 nor AVX-NE-CONVERT, without which OpenVINO computes in " +
			"single precision: take fp32")
	}
	return nil
}

// openVINOOptions are the provider's. Snippets are OpenVINO's own fused kernels: with them bfloat16 does not compile on
// some processors (2025.4, "BrgemmCopyB expression is not found"), and is off by nats on others.
func openVINOOptions(device string, threads int, bfloat16 bool) map[string]string {
	config := map[string]string{"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
	if bfloat16 {
		config["INFERENCE_PRECISION_HINT"], config["SNIPPETS_MODE"] = "bf16", "DISABLE"
	}
	encoded, err := json.Marshal(map[string]map[string]string{device: config})
	if err != nil {
		panic(err) // strings can be encoded
	}
	options := map[string]string{"device_type": device, "load_config": string(encoded)}
	if device == "CPU" {
		options["num_of_threads"] = strconv.Itoa(threads)
	}
	return options
}
