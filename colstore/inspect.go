package colstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"unsafe"

	"pgaccel/compress"
)

// What follows reads files of a checkpoint one by one, for who looks at them (package
// internal/inspect). Unlike LoadTable it goes on where something is damaged, and says
// all that is.

// Damage is something in a file that cannot be, and where.
type Damage struct {
	Offset int64 // bytes from the file's begin
	What   string
}

// FileState says whether a file is whole.
type FileState struct {
	ChecksumOK bool
	Damage     []Damage // a wrong checksum included
}

// SegmentFile is what a segment's file holds, as far as it can be read.
type SegmentFile struct {
	FileState
	Rows    int
	Columns []ColumnFile
}

// ColumnFile is one column of a segment's file.
type ColumnFile struct {
	Copied    bool            // else all others are zero
	Data      compress.Column // nil where it cannot be read
	Offset    int64           // of the encoded words, in bytes from the file's begin
	Bytes     int64           // of the encoded words and the null bitmap
	NullCount int64
	Min, Max  int64 // as Column's
}

// DictFile is what a dictionary's file holds, as far as it can be read.
type DictFile struct {
	FileState
	Strings           int
	Packed            int // those that are packed, the first ones
	TextBytes         int64
	Shortest, Longest int // bytes
}

// LiveFile is what a file of live bitmaps holds.
type LiveFile struct {
	FileState
	Words []uint64 // the bitmaps, one after the other
}

// fileReader finds out the state of one file.
type fileReader struct {
	*FileState
	b []byte // without the checksum
}

func (r *fileReader) bad(offset int, format string, args ...any) {
	r.Damage = append(r.Damage, Damage{int64(offset), fmt.Sprintf(format, args...)})
}

// open checks the checksum, and where there is a magic, that the file begins with it.
// It reports whether the rest can be read.
func (r *fileReader) open(file []byte, magic string) bool {
	least := sealBytes
	if magic != "" {
		least += headerBytes
	}
	if len(file) < least {
		r.bad(len(file), "the file ends in its header")
		return false
	}
	if magic != "" && string(file[:magicBytes]) != magic {
		if n := magicBytes - 1; string(file[:n]) == magic[:n] {
			r.bad(n, "format version %q, this pgaccel reads %q", file[n], magic[n])
		} else {
			r.bad(0, "the file begins with %q, not %q", file[:magicBytes], magic)
		}
		return false
	}
	r.b = file[:len(file)-sealBytes]
	got, want := crc32.Checksum(r.b, castagnoli), binary.LittleEndian.Uint32(file[len(r.b):])
	if r.ChecksumOK = got == want; !r.ChecksumOK {
		r.bad(len(r.b), "checksum is %08x, that of the bytes before is %08x", want, got)
	}
	return true
}

// ReadSegmentFile reads a segment's file.
func ReadSegmentFile(file []byte) *SegmentFile {
	s := &SegmentFile{}
	r := &fileReader{FileState: &s.FileState}
	if !r.open(file, segmentMagic) {
		return s
	}
	columns, rows := uint64(binary.LittleEndian.Uint32(r.b[8:])), binary.LittleEndian.Uint32(r.b[12:])
	s.Rows = int(rows)
	if most := uint64(len(r.b)-headerBytes) / entryBytes; columns > most {
		r.bad(8, "%d columns, the file has room for %d", columns, most)
		return s
	}
	if rows == 0 || rows > segmentRowsMax {
		r.bad(12, "%d rows", rows)
		return s
	}
	s.Columns = make([]ColumnFile, columns)
	for i := range s.Columns {
		if e := entryAt(r.b, i); e.data.n > 0 {
			s.Columns[i] = r.column(i, e, s.Rows)
		}
	}
	return s
}

// column reads column i of a segment's file.
func (r *fileReader) column(i int, e columnEntry, rows int) ColumnFile {
	at := headerBytes + entryBytes*i
	c := ColumnFile{Copied: true, Offset: int64(e.data.at), Bytes: int64(e.data.n + e.nulls.n), NullCount: e.nullCount, Min: e.min, Max: e.max}
	if e.nullCount < 0 || e.nullCount > int64(rows) {
		r.bad(at+48, "column %d: %d nulls in %d rows", i, e.nullCount, rows)
	} else if words, ok := e.nulls.of(r.b); !ok {
		r.bad(at+16, "column %d: null bitmap of %d bytes at %d, outside of the file", i, e.nulls.n, e.nulls.at)
	} else if want := (rows + 63) / 64 * 8; e.nullCount > 0 && len(words) != want {
		r.bad(at+24, "column %d: null bitmap of %d bytes, not %d", i, len(words), want)
	} else if n := count(wordsOf(words)); int64(n) != e.nullCount {
		r.bad(int(e.nulls.at), "column %d: %d bits in the null bitmap, not %d", i, n, e.nullCount)
	}
	data, ok := e.data.of(r.b)
	if !ok {
		r.bad(at, "column %d: %d bytes at %d, outside of the file", i, e.data.n, e.data.at)
		return c
	}
	parsed, err := compress.ParseBytes(aligned(data))
	if err != nil {
		r.bad(int(e.data.at), "column %d: %v", i, err)
	} else if parsed.Len() != rows {
		r.bad(int(e.data.at)+4, "column %d: %d rows, not %d", i, parsed.Len(), rows)
	} else {
		c.Data = parsed
	}
	return c
}

// aligned returns a copy of b that begins where words may: b lies anywhere if its place is
// damaged.
func aligned(b []byte) []byte {
	words := make([]uint64, (len(b)+7)/8)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(b))
	copy(mem, b)
	return mem
}

// ReadDictFile reads a dictionary's file.
func ReadDictFile(file []byte) *DictFile {
	d := &DictFile{}
	r := &fileReader{FileState: &d.FileState}
	magic := dictMagic
	if len(file) >= magicBytes && string(file[:magicBytes]) == packedMagic {
		magic = packedMagic
	}
	if !r.open(file, magic) {
		return d
	}
	f, at, wrong := cutDict(r.b)
	if wrong != "" {
		r.bad(at, "%s", wrong)
		return d
	}
	d.Strings, d.Packed = f.strings, f.packed
	seen := make(map[string]int, d.Strings)
	add := func(code int, s []byte, at int) {
		if code == 0 {
			d.Shortest = len(s)
		}
		d.Shortest, d.Longest, d.TextBytes = min(d.Shortest, len(s)), max(d.Longest, len(s)), d.TextBytes+int64(len(s))
		if first, twice := seen[string(s)]; twice {
			r.bad(at, "codes %d and %d are the same string", first, code)
		}
		seen[string(s)] = code
	}
	if f.packed > 0 {
		a := &arena{limit: math.MaxInt64}
		defer a.close()
		p, err := parsePacked(a, f.packed, f.blocks, f.symbols, f.padded)
		if err != nil {
			r.bad(packedHeader, "%v", err)
			return d
		}
		p.each(0, f.packed, func(code int, s []byte) bool {
			add(code, s, packedHeader+len(f.symbols)+int(p.starts[code/blockStrings]))
			return true
		})
	}
	size, begin := 0, f.lengthsAt+len(f.lengths)
	for i := range f.strings - f.packed {
		size += f.length(i)
	}
	if size != len(f.text) {
		r.bad(begin, "strings of %d bytes, the file has %d", size, len(f.text))
		return d
	}
	for i, at := 0, 0; i < f.strings-f.packed; i++ {
		add(f.packed+i, f.text[at:at+f.length(i)], begin+at)
		at += f.length(i)
	}
	return d
}

// ReadLiveFile reads a file of live bitmaps.
func ReadLiveFile(file []byte) *LiveFile {
	l := &LiveFile{}
	r := &fileReader{FileState: &l.FileState}
	if !r.open(file, "") {
		return l
	}
	if len(r.b)%8 != 0 {
		r.bad(len(r.b)&^7, "%d bytes, which are no words", len(r.b))
	}
	l.Words = wordsOf(r.b)
	return l
}

// wordsOf reads little-endian words; the rest of a last one that is not whole is left out.
func wordsOf(b []byte) []uint64 {
	words := make([]uint64, len(b)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return words
}

// LiveRows counts the rows that live by the segment's bitmap, which begins words, and
// returns the words behind it; ok is false where words end in it.
func (s SavedSegment) LiveRows(words []uint64) (n int, rest []uint64, ok bool) {
	size := (max(s.Rows, 0) + 63) / 64
	if size > len(words) {
		return 0, nil, false
	}
	return count(words[:size]), words[size:], true
}
