package docpage

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of docs anew")

// Section compares a part of a page, a file's name in docs, with what the code says, or with -update writes it. In
// the page the part is between two comments, which what makes a site of it passes on unseen:
//
//	<!-- begin NAME -->
//	<!-- end NAME -->
func Section(t testing.TB, page, name, want string) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "docs", page)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	old, anew, err := replace(string(text), name, want)
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	if anew == string(text) {
		return
	}
	if !*update {
		t.Errorf("%s: the part %s is not what the code says (-update writes it):\n%s\nwant:\n%s", page, name, old, want)
		return
	}
	if err := os.WriteFile(file, []byte(anew), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace puts a part into a page and returns what was there.
func replace(text, name, want string) (old, anew string, err error) {
	begin, end := fmt.Sprintf("<!-- begin %s -->\n", name), fmt.Sprintf("<!-- end %s -->", name)
	before, rest, ok := strings.Cut(text, begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", fmt.Errorf("there is no part %s", name)
	}
	if strings.Contains(after, begin) {
		return "", "", fmt.Errorf("the part %s is there twice", name)
	}
	return strings.TrimSpace(old), before + begin + "\n" + strings.TrimSpace(want) + "\n\n" + end + after, nil
}

// moduleRoot is the folder above the test's that has docs.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "docs", "sql.md")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no folder above has docs/sql.md")
		}
		dir = filepath.Dir(dir)
	}
}
