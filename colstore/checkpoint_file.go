package colstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"unsafe"

	"pgaccel/compress"
)

// The files of a checkpoint, little-endian (docs/format.md has examples):
//
//	segment     "PGACSEG1" | uint32 columns | uint32 rows | columns x entry | pieces | CRC-32C of all before
//	entry       uint64 data at, bytes | uint64 nulls at, bytes | int64 min, max | uint64 nulls, 0
//	            (data bytes = 0: the column is not copied)
//	pieces      a column's encoded words or null bitmap, 64-byte aligned
//	dictionary  "PGACDIC1" | uint64 strings | strings x uint32 length | bytes | CRC-32C
//	packed one  "PGACDIC2" | uint64 strings | uint64 packed | uint64 bytes of blocks | uint32 bytes of symbols
//	            | uint32 padded | symbols | blocks | uint32 length of each string that is not packed | their bytes | CRC-32C
//	live        bitmaps, one after the other | CRC-32C
const (
	segmentMagic = "PGACSEG1" // the last byte is the version
	dictMagic    = "PGACDIC1"
	packedMagic  = "PGACDIC2" // some of its strings are packed
	magicBytes   = len(segmentMagic)
	headerBytes  = 16 // magic and counts, of segments and dictionaries
	packedHeader = 40 // of packed ones
	entryBytes   = 64
	sealBytes    = 4
)

// columnEntry is a column's entry in a segment's file.
type columnEntry struct {
	data, nulls place
	min, max    int64
	nullCount   int64
}

// place is where a piece lies in a file: n bytes from at on; n is 0 where there is none.
type place struct{ at, n uint64 }

// of returns the piece, false where it lies outside of b.
func (p place) of(b []byte) ([]byte, bool) {
	if p.at > uint64(len(b)) || p.n > uint64(len(b))-p.at {
		return nil, false
	}
	return b[p.at : p.at+p.n], true
}

func (c *columnEntry) put(b []byte) {
	for i, v := range []uint64{c.data.at, c.data.n, c.nulls.at, c.nulls.n, uint64(c.min), uint64(c.max), uint64(c.nullCount), 0} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
}

// entryAt returns the entry of column i of a segment's file, which has it.
func entryAt(file []byte, i int) columnEntry {
	word := func(k int) uint64 { return binary.LittleEndian.Uint64(file[headerBytes+entryBytes*i+8*k:]) }
	return columnEntry{place{word(0), word(1)}, place{word(2), word(3)}, int64(word(4)), int64(word(5)), int64(word(6))}
}

// sealed appends the checksum.
func sealed(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// unseal checks and removes the checksum.
func unseal(b []byte) ([]byte, error) {
	if len(b) < sealBytes {
		return nil, fmt.Errorf("%w: a file of %d bytes", compress.ErrCorrupt, len(b))
	}
	body := b[:len(b)-sealBytes]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(b)-sealBytes:]) {
		return nil, fmt.Errorf("%w: checksum", compress.ErrCorrupt)
	}
	return body, nil
}

func bytesOf(words []uint64) []byte {
	if len(words) == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))...)
}

// encodeSegment returns a segment's file. Columns that lie there as they are, such as
// those of a tail, are encoded.
func encodeSegment(s *Segment) []byte {
	b := append([]byte(nil), segmentMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Columns)))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Rows))
	b = append(b, make([]byte, entryBytes*len(s.Columns))...)
	piece := func(p []byte) place {
		for len(b)%alignment != 0 {
			b = append(b, 0)
		}
		b = append(b, p...)
		return place{uint64(len(b) - len(p)), uint64(len(p))}
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.Data == nil {
			continue
		}
		data := c.Data
		if data.Codec() == compress.CodecPlain {
			values := make([]int64, s.Rows)
			data.Decode(values, 0)
			data = compress.Encode(values, func(words int) []uint32 {
				return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(make([]uint64, (words+1)/2)))), words)
			})
		}
		e := columnEntry{data: piece(compress.Bytes(data)), min: c.Min, max: c.Max, nullCount: int64(c.NullCount)}
		if c.NullCount > 0 {
			e.nulls = piece(bytesOf(c.Nulls[:(s.Rows+63)/64]))
		}
		e.put(b[headerBytes+entryBytes*i:])
	}
	return sealed(b)
}

// decodeSegment reads a segment's file into column memory. text gives the dictionary
// lengths of text columns, -1 for others.
func decodeSegment(file []byte, rows int, text []int, alloc func(int) ([]byte, error)) (*Segment, error) {
	b, err := unseal(file)
	if err != nil {
		return nil, err
	}
	corrupt := func(what string) error { return fmt.Errorf("%w: segment: %s", compress.ErrCorrupt, what) }
	if len(b) < headerBytes || string(b[:magicBytes]) != segmentMagic {
		return nil, corrupt("no segment")
	}
	columns := int(binary.LittleEndian.Uint32(b[8:]))
	if int(binary.LittleEndian.Uint32(b[12:])) != rows || rows <= 0 || columns != len(text) || len(b) < headerBytes+entryBytes*columns {
		return nil, corrupt("another shape")
	}
	s := &Segment{Rows: rows, Columns: make([]Column, columns)}
	piece := func(p place) ([]byte, error) {
		from, ok := p.of(b)
		if !ok {
			return nil, corrupt("a piece lies outside")
		}
		mem, err := alloc(len(from))
		if err != nil {
			return nil, err
		}
		return mem[:copy(mem, from)], nil
	}
	for i := range s.Columns {
		e := entryAt(b, i)
		if e.data.n == 0 {
			continue
		}
		c := &s.Columns[i]
		c.ID = NewID()
		mem, err := piece(e.data)
		if err != nil {
			return nil, err
		}
		if c.Data, err = compress.ParseBytes(mem); err != nil {
			return nil, err
		}
		if c.Data.Len() != rows {
			return nil, corrupt("a column of another length")
		}
		c.Min, c.Max, c.NullCount = e.min, e.max, int(e.nullCount)
		if c.NullCount < 0 || c.NullCount > rows || text[i] >= 0 && c.Min <= c.Max && (c.Min < 0 || c.Max >= int64(text[i])) {
			return nil, corrupt("bounds")
		}
		if c.NullCount > 0 {
			if mem, err = piece(e.nulls); err != nil {
				return nil, err
			}
			if len(mem) != (rows+63)/64*8 {
				return nil, corrupt("a null bitmap of another length")
			}
			c.Nulls = view[uint64](mem)
		}
	}
	return s, nil
}

// LoadTable reads one table of the last checkpoint into the store's memory, as a
// finished copy at the checkpoint's snapshot. Rows that did not live are dead in it.
func (d *Disk) LoadTable(s *Store, saved *SavedTable) (t *Table, err error) {
	snapshot, err := ParseSnapshot(d.last.Snapshot)
	if err != nil {
		return nil, err
	}
	l := s.NewLoader(saved.Meta)
	l.filed = true
	defer l.Abort() // nothing after Finish
	var w *Writer
	text := make([]int, 0, len(saved.Meta.Columns)+2)
	for i, dict := range l.dicts {
		text = append(text, -1)
		if dict == nil {
			continue
		}
		file, err := d.read(kindDict, saved.Dicts[i])
		if err != nil {
			return nil, err
		}
		if err := decodeDict(file, dict, s.packedMin); err != nil {
			return nil, err
		}
		text[i] = dict.n
	}
	if saved.Meta.HashIdentity() {
		text = append(text, -1, -1)
	}
	var live []byte
	if saved.Live.Size > 0 {
		if live, err = d.read(kindLive, saved.Live); err == nil {
			live, err = unseal(live)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, f := range saved.Segments {
		file, err := d.read(kindSegment, f.File)
		if err != nil {
			return nil, err
		}
		mem := newBlock(s.arena)
		seg, err := decodeSegment(file, f.Rows, text, mem.alloc)
		if err != nil {
			mem.release()
			return nil, err
		}
		seg.part, seg.mem = f.Part, mem
		if f.Live {
			words := (f.Rows + 63) / 64
			if len(live) < 8*words {
				mem.release()
				return nil, fmt.Errorf("%w: live rows", compress.ErrCorrupt)
			}
			seg.Live, seg.LiveID = make([]uint64, words), NewID()
			for i := range seg.Live {
				seg.Live[i] = binary.LittleEndian.Uint64(live[8*i:])
			}
			live = live[8*words:]
		}
		if w == nil || w.part != f.Part {
			w = &Writer{loader: l, part: f.Part, closed: true}
			l.writers = append(l.writers, w)
		}
		w.segments = append(w.segments, seg)
	}
	if t, err = l.Finish(); err != nil {
		return nil, err
	}
	t.Rows, t.Snapshot = saved.Rows, snapshot
	for i, seg := range t.Segments {
		d.segments[seg.firstData()] = saved.Segments[i].File
	}
	for i, dict := range t.Dicts {
		if dict != nil {
			d.dicts[dictKey{t.Meta.OID, i}] = savedDict{saved.Dicts[i], dict.Len(), dict.source}
		}
	}
	return t, nil
}

func (d *Disk) read(kind byte, f SavedFile) ([]byte, error) {
	b, err := os.ReadFile(d.path(kind, f))
	if err == nil && int64(len(b)) != f.Size {
		err = fmt.Errorf("%w: %s has %d bytes, not %d", compress.ErrCorrupt, f.name(kind), len(b), f.Size)
	}
	return b, err
}
