package arch

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// slow are the packages that start what make quick does without: a PostgreSQL server, a
// C++ compiler for the emulated device.
var slow = []string{"internal/pgserver", "gpu/emulator"}

// importsOf returns the packages of this module that a folder's files import; its tests'
// files are read where tests is set.
func importsOf(t *testing.T, dir string, tests bool) (list []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	for _, path := range files {
		if !tests && strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if dep, ours := strings.CutPrefix(name, "pgaccel/"); ours {
				list = append(list, dep)
			}
		}
	}
	return list
}

// TestQuickIsQuick: what make quick tests starts nothing slow, itself or by what it imports.
func TestQuickIsQuick(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^QUICK\s*:=((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile has no QUICK")
	}
	packages := strings.Fields(strings.ReplaceAll(string(m[1]), "\\\n", " "))
	if len(packages) < 10 {
		t.Fatalf("make quick tests %d packages", len(packages))
	}
	for _, name := range packages {
		dir := strings.TrimPrefix(name, "./")
		seen := []string{dir}
		todo := importsOf(t, dir, true)
		for len(todo) > 0 {
			dep := todo[0]
			todo = todo[1:]
			if slices.Contains(slow, dep) {
				t.Errorf("make quick tests %s, which imports %s", dir, dep)
			}
			if !slices.Contains(seen, dep) {
				seen = append(seen, dep)
				todo = append(todo, importsOf(t, dep, false)...)
			}
		}
		if slices.Contains(slow, dir) {
			t.Errorf("make quick tests %s", dir)
		}
	}
}
