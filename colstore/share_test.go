//go:build linux

package colstore

import (
	"bytes"
	"testing"
	"unsafe"

	"pgaccel/catalog"
	"pgaccel/compress"
	"pgaccel/vector"

	"golang.org/x/sys/unix"
)

// TestShare reads a column through the shared file, and memory that was freed.
func TestShare(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	f, offset, err := s.Memory().Share()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := s.NewLoader(&catalog.Table{OID: 1, Columns: []catalog.Column{{Name: "c", Type: vector.TypeOf(vector.Int8)}}})
	w := l.NewWriter()
	for i := range 200000 {
		if i%7 == 0 {
			w.Null(0)
		} else {
			w.Int(0, int64(i)*int64(i))
		}
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	table, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	read := func(at int64, n int) []byte {
		b := make([]byte, n)
		if _, err := f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		return b
	}
	var places []int64
	var contents [][]byte
	for i, seg := range table.Segments {
		words := compress.Bytes(seg.Columns[0].Data)
		nulls := unsafe.Slice((*byte)(unsafe.Pointer(&seg.Columns[0].Nulls[0])), 8*len(seg.Columns[0].Nulls))
		for _, mem := range [][]byte{words, nulls} {
			at, ok := offset(mem)
			if !ok || !bytes.Equal(read(at, len(mem)), mem) {
				t.Fatalf("segment %d: %d, %v", i, at, ok)
			}
			places, contents = append(places, at), append(contents, bytes.Clone(mem))
		}
	}
	if _, ok := offset(make([]byte, 8)); ok {
		t.Error("memory of Go's heap has a place in the file")
	}
	// The descriptor is one of its own, closed on exec.
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %x, %v", flags, err)
	}
	table.Release()
	for i, at := range places {
		if len(contents[i]) < returnBytesMin {
			continue
		}
		got := read(at, len(contents[i]))
		if bytes.Equal(got, make([]byte, len(got))) {
			t.Errorf("freed pages at %d were given back", at)
		}
	}
}
