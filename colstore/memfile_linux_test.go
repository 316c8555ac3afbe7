package colstore

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestColumnsAreNotDumped: the mappings of column memory have the flag dd (do not dump)
// in /proc/self/smaps, all of them.
func TestColumnsAreNotDumped(t *testing.T) {
	var f memoryFile
	defer f.close()
	for range 2 {
		mem, err := f.grow(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer unmap(mem)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	found, ours := 0, false
	for line := range strings.Lines(string(smaps)) {
		if first, _, _ := strings.Cut(line, " "); !strings.HasSuffix(first, ":") {
			ours = strings.Contains(line, "pgaccel-columns")
		} else if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && ours {
			found++
			if !slices.Contains(strings.Fields(flags), "dd") {
				t.Errorf("VmFlags:%s", flags)
			}
		}
	}
	if found == 0 {
		t.Error("no mapping of columns in smaps")
	}
}
