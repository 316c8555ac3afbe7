package arch

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// linesMax is where a file surely holds more than one idea.
const linesMax = 900

// goFiles calls f for each Go file of this module and of bench/duckdb.
func goFiles(t *testing.T, f func(path string, src []byte)) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "build" || d.Name() == "bin" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err == nil {
			f(path, src)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	described := map[string]bool{}
	goFiles(t, func(path string, src []byte) {
		dir := filepath.Dir(path)
		described[dir] = described[dir] || false
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Error(err)
			return
		}
		if file.Doc == nil {
			return
		}
		described[dir] = true
		if base := filepath.Base(path); file.Name.Name != "main" && base != "doc.go" && !strings.HasSuffix(base, "_test.go") {
			t.Errorf("%s: the package comment belongs into doc.go", path)
		}
	})
	for dir, ok := range described {
		if !ok {
			t.Errorf("%s: no package comment", dir)
		}
	}
}

func TestFilesAreOfReadableSize(t *testing.T) {
	goFiles(t, func(path string, src []byte) {
		if n := bytes.Count(src, []byte("\n")); n > linesMax && !bytes.Contains(src[:min(len(src), 200)], []byte("DO NOT EDIT")) {
			t.Errorf("%s has %d lines", path, n)
		}
	})
}
