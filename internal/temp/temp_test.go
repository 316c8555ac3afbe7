package temp

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func open(t *testing.T, limit int64) (*Space, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sub", "tmp")
	s, err := Open(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// TestFiles: what was appended, by several goroutines, is read again; no file has a name; what they
// held is given back once.
func TestFiles(t *testing.T) {
	s, dir := open(t, 1<<20)
	f, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for n := range 50 {
				p := make([]byte, n)
				for i := range p {
					p[i] = byte(k*n + i)
				}
				at, err := f.Append(p)
				if err != nil {
					t.Error(err)
					return
				}
				f.Ahead(at, int64(n))
				got := make([]byte, n)
				if err := f.ReadAt(got, at); err != nil || string(got) != string(p) {
					t.Errorf("%d bytes at %d: %v", n, at, err)
				}
			}
		})
	}
	all.Wait()
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if files, bytes, written := s.Usage(); files != 1 || bytes != 4900 || written != 4900 {
		t.Errorf("%d files, %d bytes, %d written", files, bytes, written)
	}
	if err := f.ReadAt(make([]byte, 1), 4900); err == nil {
		t.Error("read behind the end")
	}
	f.Close()
	f.Close()
	if files, bytes, written := s.Usage(); files != 0 || bytes != 0 || written != 4900 {
		t.Errorf("%d files, %d bytes, %d written", files, bytes, written)
	}
}

// TestLimit: it is one of all files, and there is room again when one goes.
func TestLimit(t *testing.T) {
	s, _ := open(t, 100)
	a, _ := s.Create()
	b, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(make([]byte, 41)); !errors.Is(err, errLimit) {
		t.Fatal(err)
	}
	if _, err := b.Append(make([]byte, 40)); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if _, err := b.Append(make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	b.Close()
}

// TestNoFolder: a folder that cannot be is an error at once.
func TestNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, 1); err == nil {
		t.Error("a file is no folder")
	}
}
