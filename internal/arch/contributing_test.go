package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	codeSpan = regexp.MustCompile("`([A-Za-z0-9_./-]+)`")
	target   = regexp.MustCompile(`\]\(([^):]+)\)`)
	filename = regexp.MustCompile(`/|\.(go|md|sh|txt|yml|mod|cuh)$`)
)

// TestContributingNamesFiles: each path that CONTRIBUTING.md names is there.
func TestContributingNamesFiles(t *testing.T) {
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range append(codeSpan.FindAllSubmatch(text, -1), target.FindAllSubmatch(text, -1)...) {
		path := string(m[1])
		if path == "doc.go" || !filename.MatchString(path) {
			continue // a name that every package has; a command, a word
		}
		named++
		if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
			t.Errorf("CONTRIBUTING.md names %s, which is not there", path)
		}
	}
	if named < 50 {
		t.Errorf("CONTRIBUTING.md names %d files: what it calls one has changed", named)
	}
}
