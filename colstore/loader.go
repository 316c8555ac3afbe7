package colstore

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"pgaccel/catalog"
	"pgaccel/compress"
	"pgaccel/internal/invariant"
	"pgaccel/vector"
)

// Loader builds one version of a table from a copy. Its memory counts against the
// store's limit from the first segment on.
type Loader struct {
	store *Store
	meta  *catalog.Table
	dicts []*dictionary
	adds  []*dictLoader // to dicts
	// filed is set where the rows come from files: their codes are those that the files
	// hold, and stay.
	filed bool

	mu      sync.Mutex
	writers []*Writer
	done    bool // finished or aborted
}

// NewLoader begins a new version of a table. It ends with Finish or Abort.
func (s *Store) NewLoader(meta *catalog.Table) *Loader {
	l := &Loader{store: s, meta: meta, dicts: make([]*dictionary, len(meta.Columns)), adds: make([]*dictLoader, len(meta.Columns))}
	for i := range meta.Columns {
		if c := &meta.Columns[i]; c.Unsupported == "" && c.Type.Coded() {
			l.dicts[i] = newDictionary(s.arena)
			l.adds[i] = newDictLoader(l.dicts[i])
			l.dicts[i].ranking.memcmp = c.Type.Collation.C || c.Type.Varying()
			l.dicts[i].ranking.padded = c.Type.Kind == vector.BPChar
		}
	}
	return l
}

// NewWriter adds a writer of a table that is not partitioned.
func (l *Loader) NewWriter() *Writer { return l.NewPartWriter(l.meta.OID) }

// NewPartWriter adds a writer of a leaf partition, by its OID. Rows of one writer
// keep their order; writers' rows follow each other in the order of the calls.
func (l *Loader) NewPartWriter(part uint32) *Writer {
	w := &Writer{loader: l, part: part, columns: make([]writerColumn, len(l.meta.Columns))}
	if l.meta.HashIdentity() {
		w.columns = append(w.columns, writerColumn{copied: true}, writerColumn{copied: true})
	}
	for i := range l.meta.Columns {
		meta, c := &l.meta.Columns[i], &w.columns[i]
		c.copied = meta.Unsupported == ""
		c.cluster = &cluster{arena: l.store.arena}
		c.float = meta.Type.Kind.IsFloat()
		if l.adds[i] != nil {
			c.dict = l.adds[i].writer()
			c.recent = new([recentCount]recent)
		}
	}
	w.grow()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writers = append(l.writers, w)
	return w
}

// BufferBytes returns the bytes that one writer's buffers take on Go's heap at most.
func (l *Loader) BufferBytes() int64 {
	n := int64(0)
	for i := range l.meta.Columns {
		if l.meta.Columns[i].Unsupported == "" {
			n++
		}
	}
	if l.meta.HashIdentity() {
		n += 2
	}
	return n * (int64(l.store.segmentRows)*8 + int64(l.store.segmentRows)/8)
}

// Rows returns the rows ended so far by all writers, up to some hundred behind.
func (l *Loader) Rows() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.writers {
		n += w.rows.Load()
	}
	return n
}

// Finish returns the version, with one reference. All writers must be closed; the
// first error of one of them is Finish's. After an error, call Abort.
func (l *Loader) Finish() (*Table, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		panic("BUG: Finish of a finished loader")
	}
	t := &Table{ID: NewID(), Meta: l.meta, Dicts: make([]*Dict, len(l.dicts))}
	for _, w := range l.writers {
		if !w.closed {
			panic("BUG: Finish before a writer's Close")
		}
		if w.err != nil {
			return nil, w.err
		}
		t.Rows += w.rows.Load()
		t.Segments = append(t.Segments, w.segments...)
	}
	for i, d := range l.dicts {
		if d == nil {
			continue
		}
		if !l.filed {
			l.adds[i].finish()
		}
		t.Dicts[i] = d.version()
		if d.ranking.memcmp && d.base == nil {
			d.ranking.eager(t.Dicts[i])
		}
	}
	if !l.filed {
		l.sortCodes(t)
	}
	for _, d := range t.Dicts {
		if d != nil {
			t.bytes += d.size()
		}
	}
	for i, seg := range t.Segments {
		seg.Slot = i
		t.bytes += seg.mem.bytes.Load()
	}
	l.done = true
	segments, dicts := slices.Clone(t.Segments), slices.Clone(t.Dicts)
	t.free = func() {
		for _, seg := range segments {
			seg.mem.release()
		}
		for _, d := range dicts {
			if d != nil {
				d.release()
			}
		}
	}
	t.refs.Store(1)
	return t, nil
}

// Abort gives back all memory. It may be called at any time after the writers
// have stopped; after a successful Finish it does nothing.
func (l *Loader) Abort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	l.done = true
	for _, w := range l.writers {
		for _, seg := range w.segments {
			seg.mem.release()
		}
		w.scatter()
	}
	for _, d := range l.dicts {
		if d != nil {
			d.close()
		}
	}
}

// Writer takes rows of one stream of a copy. It belongs to one goroutine. Between
// two EndRow calls every copied column is set once, by Null, Int or Text, in any
// order; columns that are Unsupported are never written.
type Writer struct {
	loader   *Loader
	part     uint32
	columns  []writerColumn
	segments []*Segment
	n        int // rows in the buffers
	room     int // rows that the buffers hold
	ended    int64
	rows     atomic.Int64 // ended, for other goroutines
	closed   bool
	err      error // the first, for good
}

// writerColumn buffers one column of the segment at hand.
type writerColumn struct {
	values    []int64
	nulls     []uint64 // of as many rows
	nullCount int
	previous  int64 // value before values[0]
	copied    bool
	float     bool
	set       int64 // row last written +1, where invariants are checked
	dict      *dictWriter
	recent    *[recentCount]recent
	cluster   *cluster // of its segments
}

// recent remembers a string's code, so that the dictionary is needed for new
// strings only, nearly. kept is the dictionary's own copy.
type recent struct {
	key  textKey
	kept []byte
	code int64
}

// textKey is, together with its length, all of a string of up to shortText bytes, and
// a hash of a longer one.
type textKey struct{ first, last uint64 }

const shortText = 16

func textKeyOf(b []byte) textKey {
	switch n := len(b); {
	case n > shortText:
		return textKey{first: maphash.Bytes(hashSeed, b)}
	case n >= 8:
		return textKey{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])}
	case n >= 4:
		return textKey{uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))}
	case n > 0:
		return textKey{uint64(b[0]), uint64(b[n/2])<<8 | uint64(b[n-1])}
	}
	return textKey{}
}

// slot is where a string is remembered.
func (k textKey) slot() uint64 {
	hi, lo := bits.Mul64(k.first^0x9e3779b97f4a7c15, k.last^0xd6e8feb86659fd93)
	return (hi ^ lo) % recentCount
}

// is reports whether b, with key k, is the string that r remembers.
func (r *recent) is(k textKey, b []byte) bool {
	return r.key == k && len(r.kept) == len(b) && r.kept != nil && (len(b) <= shortText || string(r.kept) == string(b))
}

const (
	recentCount  = 1024
	bufferRows   = 1024 // at first; doubled up to a segment
	progressRows = 256  // how often Rows is told
)

func (w *Writer) grow() {
	w.room = max(bufferRows, min(2*w.room, w.loader.store.segmentRows))
	for i := range w.columns {
		if c := &w.columns[i]; c.copied {
			values, nulls := c.values, c.nulls
			c.values, c.nulls = make([]int64, w.room), make([]uint64, w.room/64)
			copy(c.values, values)
			copy(c.nulls, nulls)
		}
	}
}

func (w *Writer) at(col int) *writerColumn {
	c := &w.columns[col]
	if invariant.Enabled {
		invariant.Check(c.copied, "column %d is not copied", col)
		invariant.Check(c.set == w.ended, "column %d is set twice in row %d", col, w.ended)
		c.set = w.ended + 1
	}
	return c
}

// Null sets column col (a position in meta.Columns) of the row at hand to null.
func (w *Writer) Null(col int) {
	c := w.at(col)
	c.nulls[w.n>>6] |= 1 << (uint(w.n) & 63)
	c.nullCount++
	if w.n > 0 {
		c.values[w.n] = c.values[w.n-1]
	} else {
		c.values[0] = c.previous
	}
}

// Int sets a column that is not text, in vector's 64-bit representation.
func (w *Writer) Int(col int, v int64) {
	w.at(col).values[w.n] = v
}

// Text sets a text column. b is copied.
func (w *Writer) Text(col int, b []byte) {
	c := w.at(col)
	key := textKeyOf(b)
	r := &c.recent[key.slot()]
	if !r.is(key, b) {
		hash := key.first
		if len(b) <= shortText {
			hash = maphash.Bytes(hashSeed, b)
		}
		code, kept, err := c.dict.add(b, hash)
		if err != nil {
			w.fail(err)
			return
		}
		*r = recent{key: key, kept: kept, code: int64(code)}
	}
	c.values[w.n] = r.code
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Identity sets the hash of the row's identity columns that are not copied, where
// meta.HashIdentity(): once for each row, as a column.
func (w *Writer) Identity(hash [2]uint64) {
	n := len(w.loader.meta.Columns)
	w.Int(n, int64(hash[0]))
	w.Int(n+1, int64(hash[1]))
}

// EndRow ends the row. The error is a *MemoryError (errors.As) where the limit is
// reached; it stays, and further rows are lost.
func (w *Writer) EndRow() error {
	if w.err != nil {
		return w.err
	}
	w.n++
	w.ended++
	if invariant.Enabled {
		for i := range w.columns {
			c := &w.columns[i]
			invariant.Check(!c.copied || c.set == w.ended, "column %d of row %d is not set", i, w.ended-1)
		}
	}
	if w.n%progressRows == 0 {
		w.rows.Store(w.ended)
	}
	if w.n == w.room {
		if w.room < w.loader.store.segmentRows {
			w.grow()
		} else {
			w.flush()
		}
	}
	return w.err
}

// Close encodes the rows that are left. Its error is that of the last EndRow, or
// its own.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	if w.n > 0 && w.err == nil {
		w.flush()
	}
	w.rows.Store(w.ended)
	w.scatter()
	w.columns = nil
	return w.err
}

// scatter gives back what is left of the columns' clusters, and ends additions to
// dictionaries.
func (w *Writer) scatter() {
	for i := range w.columns {
		if cl := w.columns[i].cluster; cl != nil {
			cl.close()
		}
		if w.columns[i].dict != nil {
			w.columns[i].dict.close()
		}
	}
}

// flush encodes the buffered rows as a segment.
func (w *Writer) flush() {
	s := w.loader.store
	seg := &Segment{Rows: w.n, Columns: make([]Column, len(w.columns)), part: w.part, mem: newBlock(s.arena)}
	for i := range w.columns {
		c := &w.columns[i]
		if !c.copied {
			continue
		}
		values := c.values[:w.n]
		z := c.zone(values)
		if err := seg.encode(i, s.codec, c.float, values, c.nulls[:(w.n+63)/64], z, c.cluster); err != nil {
			seg.mem.release()
			w.fail(err)
			return
		}
		c.previous = values[w.n-1]
		if c.nullCount > 0 {
			clear(c.nulls[:(w.n+63)/64])
			c.nullCount = 0
		}
	}
	w.segments = append(w.segments, seg)
	w.n = 0
}

// encode makes column i of values, in the segment's memory, its words in the cluster.
func (seg *Segment) encode(i int, codec compress.Codec, float bool, values []int64, nulls []uint64, z zone, cl *cluster) (err error) {
	col := &seg.Columns[i]
	alloc := func(words int) []uint32 {
		var mem []byte
		if mem, err = seg.mem.allocIn(cl, 4*words); err != nil {
			return nil
		}
		return view[uint32](mem)
	}
	if float && codec == compress.CodecAuto {
		col.Data = compress.EncodeFloats(values, alloc)
	} else {
		col.Data = compress.EncodeAs(codec, values, alloc)
	}
	if err != nil {
		return err
	}
	col.ID, col.Min, col.Max = NewID(), z.lo, z.hi
	if z.nulls > 0 {
		mem, err := seg.mem.alloc(8 * len(nulls))
		if err != nil {
			return err
		}
		col.Nulls = view[uint64](mem)[:len(nulls)]
		copy(col.Nulls, nulls)
		col.NullCount = z.nulls
	}
	return nil
}

// zone is a zone map: bounds of the values that are not null, and how many are.
type zone struct {
	lo, hi int64
	nulls  int
}

var emptyZone = zone{lo: math.MaxInt64, hi: math.MinInt64}

// zone returns the zone map of the buffered values.
func (c *writerColumn) zone(values []int64) zone {
	z := zoneOf(values, c.nulls, c.nullCount > 0, c.float)
	z.nulls = c.nullCount
	return z
}

// zoneOf returns the zone map of values; nulls are looked at where there are some.
func zoneOf(values []int64, nulls []uint64, some, float bool) zone {
	z := emptyZone
	if !some && !float {
		// Two pairs of bounds, in registers, that do not wait for each other.
		lo, hi := z.lo, z.hi
		for ; len(values) >= 2; values = values[2:] {
			lo, hi = min(lo, values[0]), max(hi, values[0])
			z.lo, z.hi = min(z.lo, values[1]), max(z.hi, values[1])
		}
		for _, v := range values {
			lo, hi = min(lo, v), max(hi, v)
		}
		z.lo, z.hi = min(z.lo, lo), max(z.hi, hi)
		return z
	}
	for i, v := range values {
		if some && nulls[i>>6]>>(uint(i)&63)&1 != 0 {
			z.nulls++
			continue
		}
		if float {
			v = vector.FloatKey(v)
		}
		z.lo, z.hi = min(z.lo, v), max(z.hi, v)
	}
	return z
}
