package worker

import (
	"regexp"
	"strings"
)

var (
	missingLibrary = regexp.MustCompile(`error while loading shared libraries: ([^:\s]+): cannot open shared object file`)
	cuInit         = regexp.MustCompile(`Error in initialization, please refer to .* for details on: (\w+)(?::(\d+))?`)
)

// driverReason returns what the output of a worker that ended before its greeting means,
// where that is known: the dynamic linker's message when there is no driver, and that of
// gorgonia.org/cu's package init, which ends the process when cuInit fails.
func driverReason(output string) string {
	if m := missingLibrary.FindStringSubmatch(output); m != nil {
		if strings.HasPrefix(m[1], "libcuda.so") {
			return "no NVIDIA driver: " + m[1] + " not found"
		}
		return m[1] + " not found"
	}
	if m := cuInit.FindStringSubmatch(output); m != nil {
		return "cuInit: " + resultName(m[1], m[2])
	}
	return ""
}

// resultName returns CUDA's name of a result that gorgonia.org/cu names by its own:
// "NoDevice" is CUDA_ERROR_NO_DEVICE. Codes that cu does not know come with their number.
func resultName(name, code string) string {
	if name == "UnknownErrorCode" {
		if s, ok := laterResults[code]; ok {
			return s
		}
		return "CUresult " + code
	}
	var b strings.Builder
	b.WriteString("CUDA_ERROR")
	for _, r := range name {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToUpper(string(r)))
	}
	return b.String()
}

// laterResults are results of initialisation that are younger than gorgonia.org/cu.
var laterResults = map[string]string{
	"34":  "CUDA_ERROR_STUB_LIBRARY (the driver found is a stub for linking)",
	"46":  "CUDA_ERROR_DEVICE_UNAVAILABLE",
	"102": "CUDA_ERROR_DEVICE_NOT_LICENSED",
	"804": "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
	"805": "CUDA_ERROR_MPS_CONNECTION_FAILED",
}
