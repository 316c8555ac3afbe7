package colstore

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"

	"pgaccel/catalog"
	"pgaccel/compress"
	"pgaccel/internal/invariant"
)

// Loader builds one version of a table from a copy. Its memory counts against the
// store's limit from the first segment on.
type Loader struct {
	store *Store
	meta  *catalog.Table
	dicts []*Dict

	mu      sync.Mutex
	writers []*Writer
	done    bool // finished or aborted
}

// NewLoader begins a new version of a table. It ends with Finish or Abort.
func (s *Store) NewLoader(meta *catalog.Table) *Loader {
	l := &Loader{store: s, meta: meta, dicts: make([]*Dict, len(meta.Columns))}
	for i := range meta.Columns {
		if c := &meta.Columns[i]; c.Unsupported == "" && c.Type.Kind.IsText() {
			l.dicts[i] = &Dict{purse: purse{arena: &s.arena}}
		}
	}
	return l
}

// NewWriter adds a writer. Rows of one writer keep their order; writers' rows
// follow each other in the order of the NewWriter calls.
func (l *Loader) NewWriter() *Writer {
	w := &Writer{loader: l, purse: purse{arena: &l.store.arena}, columns: make([]writerColumn, len(l.meta.Columns))}
	for i := range w.columns {
		meta, c := &l.meta.Columns[i], &w.columns[i]
		c.copied = meta.Unsupported == ""
		c.float = meta.Type.Kind.IsFloat()
		if c.dict = l.dicts[i]; c.dict != nil {
			c.recent = new([recentCount]recent)
		}
	}
	w.grow()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writers = append(l.writers, w)
	return w
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
	t := &Table{Meta: l.meta, Dicts: l.dicts}
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
		if l.meta.Columns[i].Type.Collation.C && d.ranks == nil {
			if err := d.rank(); err != nil {
				return nil, err
			}
		}
	}
	l.done = true
	purses := l.purses()
	for _, p := range purses {
		t.bytes += p.bytes()
	}
	t.free = func() {
		for _, p := range purses {
			p.empty()
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
	for _, p := range l.purses() {
		p.empty()
	}
}

func (l *Loader) purses() (all []*purse) {
	for _, w := range l.writers {
		all = append(all, &w.purse)
	}
	for _, d := range l.dicts {
		if d != nil {
			all = append(all, &d.purse)
		}
	}
	return all
}

// Writer takes rows of one stream of a copy. It belongs to one goroutine. Between
// two EndRow calls every copied column is set once, by Null, Int or Text, in any
// order; columns that are Unsupported are never written.
type Writer struct {
	loader   *Loader
	purse    purse
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
	dict      *Dict
	recent    *[recentCount]recent
}

// recent remembers a string's code, so that the dictionary and its lock are needed
// for new strings only, nearly. kept is the dictionary's own copy.
type recent struct {
	hash uint64
	kept []byte
	code int64
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
	hash := maphash.Bytes(hashSeed, b)
	r := &c.recent[hash%recentCount]
	if r.hash != hash || r.kept == nil || string(r.kept) != string(b) {
		code, kept, err := c.dict.add(b, hash)
		if err != nil {
			w.fail(err)
			return
		}
		*r = recent{hash: hash, kept: kept, code: int64(code)}
	}
	c.values[w.n] = r.code
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
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
	w.columns = nil
	return w.err
}

// flush encodes the buffered rows as a segment.
func (w *Writer) flush() {
	seg := &Segment{Rows: w.n, Columns: make([]Column, len(w.columns))}
	alloc := func(words int) []uint32 {
		mem, err := w.purse.alloc(4 * words)
		if err != nil {
			w.fail(err)
			return nil
		}
		return view[uint32](mem)
	}
	for i := range w.columns {
		c := &w.columns[i]
		if !c.copied {
			continue
		}
		col := &seg.Columns[i]
		values := c.values[:w.n]
		if col.Data = compress.EncodeAs(w.loader.store.codec, values, alloc); col.Data == nil {
			return
		}
		col.Min, col.Max = c.zone(values)
		c.previous = values[w.n-1]
		if c.nullCount > 0 {
			words := c.nulls[:(w.n+63)/64]
			mem, err := w.purse.alloc(8 * len(words))
			if err != nil {
				w.fail(err)
				return
			}
			col.Nulls = view[uint64](mem)[:len(words)]
			copy(col.Nulls, words)
			col.NullCount = c.nullCount
			clear(words)
			c.nullCount = 0
		}
	}
	w.segments = append(w.segments, seg)
	w.n = 0
}

// zone returns the bounds of the values that are not null.
func (c *writerColumn) zone(values []int64) (lo, hi int64) {
	lo, hi = math.MaxInt64, math.MinInt64
	if c.nullCount == 0 && !c.float {
		for _, v := range values {
			lo, hi = min(lo, v), max(hi, v)
		}
		return lo, hi
	}
	for i, v := range values {
		if c.nulls[i>>6]>>(uint(i)&63)&1 != 0 {
			continue
		}
		if c.float {
			v = compress.FloatKey(v)
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}
