package nvrtc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PathVariable is the environment variable that names the library to use.
const PathVariable = "PGACCEL_NVRTC"

// names are the library's, of CUDA 13 down to 11.2.
var names = []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"}

// dirs are where toolkits lie that the dynamic linker was not told of.
var dirs = []string{
	"/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/usr/local/cuda*/targets/*/lib", "/opt/cuda/lib64",
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
}

// Find opens the newest NVRTC whose code a driver for CUDA major takes (0: any driver):
// the one that PGACCEL_NVRTC names, or else one that the dynamic linker finds or that lies
// beside this program, in ../lib of it, in $CUDA_HOME or where toolkits are installed.
func Find(major int) (*Library, error) {
	if path := os.Getenv(PathVariable); path != "" {
		l, err := open(path)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", PathVariable, path, err)
		}
		return l, nil
	}
	candidates := slices.Clone(names)
	places := slices.Clone(dirs)
	if home := os.Getenv("CUDA_HOME"); home != "" {
		places = append([]string{filepath.Join(home, "lib64")}, places...)
	}
	if self, err := os.Executable(); err == nil {
		dir := filepath.Dir(self)
		places = append([]string{dir, filepath.Join(dir, "..", "lib")}, places...)
	}
	for _, place := range places {
		for _, name := range names {
			found, _ := filepath.Glob(filepath.Join(place, name))
			candidates = append(candidates, found...)
		}
	}
	var best *Library
	var why []string
	for _, path := range candidates {
		l, err := open(path)
		if err != nil {
			if !strings.HasSuffix(err.Error(), "No such file or directory") {
				why = append(why, err.Error())
			}
			continue
		}
		if best == nil || l.better(best, major) {
			best = l
		}
	}
	if best == nil && len(why) == 0 {
		return nil, fmt.Errorf("no NVRTC: none of %s found; %s names one", strings.Join(names, ", "), PathVariable)
	}
	if best == nil {
		return nil, fmt.Errorf("no NVRTC: %s", strings.Join(why, "; "))
	}
	return best, nil
}

// better says whether l is to be preferred to o: one that the driver takes to one that it
// may not, and of those the newer.
func (l *Library) better(o *Library, major int) bool {
	if fits, other := major == 0 || l.Major <= major, major == 0 || o.Major <= major; fits != other {
		return fits
	}
	return l.Major > o.Major || l.Major == o.Major && l.Minor > o.Minor
}
