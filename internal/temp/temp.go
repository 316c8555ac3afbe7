package temp

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// errLimit says that the files of a Space would take more than its limit.
var errLimit = errors.New("temporary files would exceed their limit")

// Space is where temporary files are.
type Space struct {
	dir   string
	limit int64
	used  atomic.Int64 // bytes of the files that are open
	files atomic.Int64
	total atomic.Int64
}

// Open returns the space in a folder, which it makes where it is missing. A file is made, and goes,
// to see that this works.
func Open(dir string, limit int64) (*Space, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Space{dir: dir, limit: limit}
	f, err := s.create()
	if err != nil {
		return nil, err
	}
	return s, f.Close()
}

// Limit returns the most bytes that all files may have.
func (s *Space) Limit() int64 { return s.limit }

// Usage returns the files that are open, their bytes, and the bytes written so far to all there have been.
func (s *Space) Usage() (files, bytes, written int64) {
	return s.files.Load(), s.used.Load(), s.total.Load()
}

func (s *Space) create() (*os.File, error) {
	const own = 0o600
	if fd, err := unix.Open(s.dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, own); err == nil {
		return os.NewFile(uintptr(fd), s.dir), nil
	}
	// Not every file system has files without a name.
	f, err := os.CreateTemp(s.dir, "pgaccel-*.tmp")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Create makes a file. Whoever has it closes it.
func (s *Space) Create() (*File, error) {
	f, err := s.create()
	if err != nil {
		return nil, err
	}
	s.files.Add(1)
	return &File{of: s, f: f}, nil
}

// File is a temporary file.
type File struct {
	of     *Space
	f      *os.File
	end    atomic.Int64
	held   atomic.Int64
	closed atomic.Bool
}

// Append writes p to the end, and returns where that was.
func (f *File) Append(p []byte) (at int64, err error) {
	n := int64(len(p))
	if f.of.used.Add(n) > f.of.limit {
		f.of.used.Add(-n)
		return 0, errLimit
	}
	f.held.Add(n)
	at = f.end.Add(n) - n
	if _, err := f.f.WriteAt(p, at); err != nil {
		return 0, fmt.Errorf("temporary file: %w", err)
	}
	f.of.total.Add(n)
	return at, nil
}

// ReadAt reads what was written to [at, at+len(p)).
func (f *File) ReadAt(p []byte, at int64) error {
	if _, err := f.f.ReadAt(p, at); err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	return nil
}

// Ahead says that [at, at+n) will be read soon.
func (f *File) Ahead(at, n int64) {
	_ = unix.Fadvise(int(f.f.Fd()), at, n, unix.FADV_WILLNEED) // an advice
}

// Close lets the file go. It may be called more than once, by any goroutine, when nobody writes or
// reads any more.
func (f *File) Close() {
	if f.closed.Swap(true) {
		return
	}
	f.of.files.Add(-1)
	f.of.used.Add(-f.held.Swap(0))
	go f.f.Close() // the kernel frees the pages, tens of milliseconds: who closes has other sessions to serve
}
