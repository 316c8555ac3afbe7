package olap

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"pgaccel/internal/temp"
	"pgaccel/plan"
	"pgaccel/vector"
)

// mergedRuns bounds the runs that are read at a time.
const mergedRuns = 64

// run is a sequence of rows in a file, in order where there is an ORDER BY. A row is the length of
// its key, the key, the length of its values, the values.
type run struct{ blocks []block }

// block is a piece of a run: whole rows.
type block struct {
	at   int64
	size int
}

// runWriter writes a run: blocks, several of them at once.
type runWriter struct {
	file  *temp.File
	block int
	buf   []byte
	from  int // in buf, of the block that is not full
	sizes []int
	run   run
}

func (s *spiller) writer(file *temp.File) *runWriter {
	w := &runWriter{file: file, block: s.block}
	if b, ok := s.bufs.Get().(*[]byte); ok {
		w.buf = *b
	} else {
		w.buf = make([]byte, 0, (writtenBlocks+1)*s.block) // the last row may be longer
	}
	return w
}

// end writes what there is, and lets the buffer go.
func (s *spiller) end(w *runWriter) error {
	err := w.flush()
	buf := w.buf[:0]
	s.bufs.Put(&buf)
	w.buf = nil
	return err
}

// writtenBlocks is how many blocks are written at once.
const writtenBlocks = 16

func (w *runWriter) row(key, values []byte) error {
	w.buf = binary.AppendUvarint(w.buf, uint64(len(key)))
	w.buf = append(w.buf, key...)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(values)))
	w.buf = append(w.buf, values...)
	if len(w.buf)-w.from < w.block {
		return nil
	}
	w.sizes = append(w.sizes, len(w.buf)-w.from)
	w.from = len(w.buf)
	if len(w.sizes) < writtenBlocks {
		return nil
	}
	return w.flush()
}

// flush writes what there is.
func (w *runWriter) flush() error {
	if w.from < len(w.buf) {
		w.sizes = append(w.sizes, len(w.buf)-w.from)
	}
	if len(w.sizes) == 0 {
		return nil
	}
	at, err := w.file.Append(w.buf)
	if err != nil {
		return beyondTemp(err)
	}
	for _, n := range w.sizes {
		w.run.blocks = append(w.run.blocks, block{at, n})
		at += int64(n)
	}
	w.buf, w.sizes, w.from = w.buf[:0], w.sizes[:0], 0
	return nil
}

// runReader reads a run. key and values are the current row's, until next is called.
type runReader struct {
	file        *temp.File
	blocks      []block
	buf         []byte
	rest        []byte
	key, values []byte
}

// next goes on to the next row; ok is false where there is none.
func (r *runReader) next() (ok bool, err error) {
	if len(r.rest) == 0 {
		if len(r.blocks) == 0 {
			return false, nil
		}
		b := r.blocks[0]
		if r.blocks = r.blocks[1:]; len(r.blocks) > 0 {
			r.file.Ahead(r.blocks[0].at, int64(r.blocks[0].size))
		}
		if cap(r.buf) < b.size {
			r.buf = make([]byte, b.size)
		}
		r.rest = r.buf[:b.size]
		if err := r.file.ReadAt(r.rest, b.at); err != nil {
			return false, err
		}
	}
	if r.key, r.rest, ok = sized(r.rest); ok {
		r.values, r.rest, ok = sized(r.rest)
	}
	if !ok {
		return false, errDamaged
	}
	return true, nil
}

// sized takes bytes behind their length.
func sized(b []byte) (data, rest []byte, ok bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, false
	}
	return b[k : k+int(n)], b[k+int(n):], true
}

// merger yields the rows of runs: in the order of their keys, those with equal keys in the order of
// the runs; or one run after the other.
type merger struct {
	ordered bool
	readers []*runReader // ordered: a heap, the first row on top
	places  []int        // of readers among the runs
	begun   bool
}

func (s *spiller) merger(runs []run, ordered bool) *merger {
	m := &merger{ordered: ordered}
	for i := range runs {
		m.readers = append(m.readers, &runReader{file: s.file, blocks: runs[i].blocks})
		m.places = append(m.places, i)
	}
	return m
}

// bytes is about what the merger holds.
func (m *merger) bytes(block int) int64 {
	if !m.ordered {
		return int64(block)
	}
	return int64(len(m.readers)) * int64(block)
}

func (m *merger) before(i, j int) bool {
	if c := bytes.Compare(m.readers[i].key, m.readers[j].key); c != 0 {
		return c < 0
	}
	return m.places[i] < m.places[j]
}

// down moves a reader to its place in the heap.
func (m *merger) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(m.readers) {
			return
		}
		if c+1 < len(m.readers) && m.before(c+1, c) {
			c++
		}
		if !m.before(c, i) {
			return
		}
		m.readers[i], m.readers[c] = m.readers[c], m.readers[i]
		m.places[i], m.places[c] = m.places[c], m.places[i]
		i = c
	}
}

// next returns the reader whose row is the next, nil at the end.
func (m *merger) next() (*runReader, error) {
	if m.ordered && !m.begun {
		m.begun = true
		for _, r := range m.readers { // a run has rows
			if ok, err := r.next(); err != nil || !ok {
				return nil, orDamaged(err)
			}
		}
		for i := len(m.readers)/2 - 1; i >= 0; i-- {
			m.down(i)
		}
		return m.top(), nil
	}
	for len(m.readers) > 0 {
		ok, err := m.readers[0].next()
		if err != nil {
			return nil, err
		}
		if ok {
			break
		}
		last := len(m.readers) - 1
		switch {
		case m.ordered:
			m.readers[0], m.places[0] = m.readers[last], m.places[last]
			m.readers = m.readers[:last]
		default:
			if last > 0 {
				m.readers[1].buf = m.readers[0].buf
			}
			m.readers = m.readers[1:]
			continue
		}
		m.down(0)
		return m.top(), nil
	}
	if m.ordered {
		m.down(0)
	}
	return m.top(), nil
}

func (m *merger) top() *runReader {
	if len(m.readers) == 0 {
		return nil
	}
	return m.readers[0]
}

func orDamaged(err error) error {
	if err == nil {
		err = errDamaged
	}
	return err
}

// write writes rows of r as a run, in their order. by are the keys of the ORDER BY, of the same
// rows: nil for none.
func (s *spiller) write(r *result, rows []uint32, by []rcol) error {
	if len(rows) == 0 {
		return nil
	}
	w := s.writer(s.file)
	bounds := make([]worst, len(r.output))
	var key, values []byte
	for _, i := range rows {
		key, values = key[:0], values[:0]
		for k := range by {
			var err error
			if key, err = by[k].appendKey(key, i, s.x.q.Order[k]); err != nil {
				return err
			}
		}
		for k := range r.output {
			values = r.output[k].appendValue(values, i, s.x.q.Output[k].Type(), &bounds[k])
		}
		if err := w.row(key, values); err != nil {
			return err
		}
	}
	if err := s.end(w); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, w.run)
	s.rows += len(rows)
	for k := range bounds {
		s.worst[k].join(&bounds[k])
	}
	return nil
}

// rewrite has f write the rows of the runs anew, to another file.
func (s *spiller) rewrite(f func(w func() *runWriter) error) error {
	file, err := s.x.opt.Temp.Create()
	if err != nil {
		return beyondTemp(err)
	}
	var writers []*runWriter
	if err = f(func() *runWriter {
		w := s.writer(file)
		writers = append(writers, w)
		return w
	}); err != nil {
		file.Close()
		return err
	}
	s.file.Close()
	s.file, s.runs = file, nil
	for _, w := range writers {
		if len(w.run.blocks) > 0 {
			s.runs = append(s.runs, w.run)
		}
	}
	return nil
}

// mergeRuns makes one run of each mergedRuns.
func (s *spiller) mergeRuns() error {
	return s.rewrite(func(writer func() *runWriter) error {
		for from := 0; from < len(s.runs); from += mergedRuns {
			m, w := s.merger(s.runs[from:min(from+mergedRuns, len(s.runs))], true), writer()
			for n := 0; ; n++ {
				if err := s.pause(n); err != nil {
					return err
				}
				r, err := m.next()
				if err != nil {
					return err
				}
				if r == nil {
					break
				}
				if err := w.row(r.key, r.values); err != nil {
					return err
				}
			}
			if err := s.end(w); err != nil {
				return err
			}
		}
		return nil
	})
}

// pause is called for each row that is copied.
func (s *spiller) pause(n int) error {
	if n%tileRows != 0 {
		return nil
	}
	return s.x.ctx.Err()
}

// cut leaves the rows of OFFSET and LIMIT, as one run. All rows that tie with a cut must look alike,
// as in cutRows.
func (s *spiller) cut(ordered bool) error {
	n := int64(s.rows)
	from := min(s.x.offset, n)
	to := n
	if s.x.limited && s.x.limit < n-from {
		to = from + s.x.limit
	}
	err := s.rewrite(func(writer func() *runWriter) error {
		m, w := s.merger(s.runs, ordered), writer()
		var key, values []byte // of the first of the rows that tie
		first, alike := int64(0), true
		for i := int64(0); ; i++ {
			if err := s.pause(int(i)); err != nil {
				return err
			}
			r, err := m.next()
			if err != nil {
				return err
			}
			if r == nil || i == 0 || !bytes.Equal(r.key, key) {
				if !alike && (first < from && from < i || first < to && to < i) {
					return forward(plan.ReasonTies, "")
				}
				if r == nil || i >= to {
					return s.end(w)
				}
				key, values, first, alike = append(key[:0], r.key...), append(values[:0], r.values...), i, true
			} else if !bytes.Equal(r.values, values) {
				alike = false
			}
			if from <= i && i < to {
				if err := w.row(nil, r.values); err != nil {
					return err
				}
			}
		}
	})
	s.rows = int(to - from)
	return err
}

// worst are the values of a column that say whether its rows can be written.
type worst struct {
	some   bool
	lo, hi int64
	wide   bool // there is text that is not ASCII
}

func (w *worst) word(v int64) {
	if !w.some {
		w.some, w.lo, w.hi = true, v, v
	}
	w.lo, w.hi = min(w.lo, v), max(w.hi, v)
}

func (w *worst) text(s []byte) {
	for i := 0; i < len(s) && !w.wide; i++ {
		w.wide = s[i] >= utf8.RuneSelf
	}
}

func (w *worst) join(o *worst) {
	w.wide = w.wide || o.wide
	if o.some {
		w.word(o.lo)
		w.word(o.hi)
	}
}

// column returns a column with the values.
func (w *worst) column(t vector.Type) vector.Column {
	c := vector.Column{Type: t}
	switch {
	case t.Kind.IsString():
		if c.Strs = []string{"", ""}; w.wide {
			c.Strs[0] = "\u00e9"
		}
	case t.Kind == vector.Numeric:
		c.Decimals = make([]vector.Decimal, 2)
	default:
		c.Ints = []int64{w.lo, w.hi}
	}
	return c
}
