package nvrtc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Target returns the option for the architecture of a device ("sm_90") and whether the
// result is PTX: where the library is older than the device, the driver compiles the rest.
func (l *Library) Target(arch string) (option string, ptx bool, err error) {
	number, err := strconv.Atoi(strings.TrimPrefix(arch, "sm_"))
	if err != nil || !strings.HasPrefix(arch, "sm_") {
		return "", false, fmt.Errorf("%q is no architecture", arch)
	}
	if slices.Contains(l.Archs, number) {
		return "--gpu-architecture=" + arch, false, nil
	}
	newest := 0
	for _, a := range l.Archs {
		if a < number {
			newest = max(newest, a)
		}
	}
	if newest == 0 {
		return "", false, fmt.Errorf("%s does not compile for %s", l.Version(), arch)
	}
	return fmt.Sprintf("--gpu-architecture=compute_%d", newest), true, nil
}

// Options returns the options that pgaccel's sources are compiled with, besides Target's. None makes it faster: of 173 ms
// of a core that a query's kernels take on average (NVRTC 11.8, sm_90) an empty source takes 69, the included files 1 to 3,
// ptxas 58, at -O1 as at -O3, and -std=c++14 as much as 17.
// relocatable is for sources that launch kernels themselves.
func (l *Library) Options(defines []string, lineInfo, relocatable bool) []string {
	options := []string{"-std=c++17", "-default-device"}
	if l.Major >= 12 {
		options[0] = "-std=c++20"
	}
	if lineInfo {
		options = append(options, "-lineinfo")
	}
	if relocatable {
		options = append(options, "--relocatable-device-code=true")
	}
	for _, d := range defines {
		options = append(options, "-D"+d)
	}
	return options
}
