package checkedfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

const magic = "a test's file 1\n"

func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "file")
	if _, err := Read(path, magic); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for _, content := range []string{"", "x", "the second\nof two"} {
		if err := Write(path, magic, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path, magic); string(got) != content || err != nil {
			t.Errorf("%q, %v, want %q", got, err, content)
		}
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, path: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if left, err := os.ReadDir(dir); len(left) != 1 || err != nil {
		t.Errorf("the folder has %v, %v", left, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := func(b []byte, want error) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path, magic); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", b, err, want)
		}
	}
	for n := range whole {
		damaged(whole[:n], errChecksum)
		flipped, want := slices.Clone(whole), errChecksum
		if flipped[n] ^= 1; n < len(magic) {
			want = ErrMagic
		}
		damaged(flipped, want)
	}
	damaged(append(slices.Clone(whole), 0), errChecksum)
}

// TestWriteFails: what cannot be written leaves nothing behind.
func TestWriteFails(t *testing.T) {
	if err := Write("/dev/null/folder/file", magic, nil); err == nil {
		t.Error("a folder was made in a device")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, magic, nil); err == nil {
		t.Error("a file took the place of a folder")
	}
	if left, err := os.ReadDir(dir); len(left) != 1 || err != nil {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// TestRemoveUnfinished: what a write has left that was ended goes, but not a write that may be under way, nor a file.
func TestRemoveUnfinished(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "file"), "magic\n", []byte("content")); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"new-1", "new-2"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "new-1"} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	RemoveUnfinished(dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != "file" || left[1].Name() != "new-2" {
		t.Errorf("left are %v, %v", left, err)
	}
}
