package olap

import (
	"math/bits"
	"unsafe"

	"pgaccel/internal/temp"
	"pgaccel/plan"
)

// Groups that memory does not hold: the rows that radix-partitioned grouping scatters (partition.go)
// are written to a file instead of being aggregated. Once all are there one partition after the
// other is read, aggregated and made results of, so that its groups alone are in memory.

// maxSpilled bounds the partitions, and spilledGroup is about what a group takes beside its states
// until it has been written as a result.
const (
	maxSpilled   = 512
	spilledGroup = 160
)

// spilled are the rows of partitions in a file.
type spilled struct {
	file   *temp.File
	blocks [][]spilledBlock // by partition
}

type spilledBlock struct {
	at   int64
	rows int
}

// fewGroups reports whether memory holds the groups whatever the rows are: what it did not hold were
// other things.
func (by *grouping) fewGroups() bool {
	for i := range by.g.refs {
		if r := &by.g.refs[i]; r.ordered || r.distinct >= 0 {
			return false // their states grow with the rows
		}
	}
	p := by.g.p
	most := by.bound(float64(p.rowsMax()))
	return most*float64(by.g.groupBytes()+spilledGroup) <= float64(p.x.spill.work/int64(2*p.x.opt.Workers))
}

// choosePartitions plans the partitions for a query whose groups do not fit.
func (by *grouping) choosePartitions() {
	x := by.g.p.x
	most := float64(by.g.p.rowsMax())
	by.sparse = float64(by.pack.card) > 2*most
	groups := by.bound(most)
	work := x.spill.work / int64(2*x.opt.Workers)
	parts := groups * float64(by.g.groupBytes()+spilledGroup) / float64(work)
	parts = min(max(parts, 2), maxSpilled)
	// Each worker has a buffer for each partition: together they take half of the memory at most.
	buffer := 2 * tileRows * newRadix(by, 2, 0).rowBytes()
	parts = min(parts, float64(work/buffer))
	by.radix = newRadix(by, int(parts), work)
	fill := int(1.5*most) / len(by.radix.parts)
	by.radix.rows = max(min(by.radix.rows, 1<<bits.Len(uint(fill))), 2*tileRows)
	by.radix.spilled = &spilled{blocks: make([][]spilledBlock, len(by.radix.parts))}
}

// spillGroups computes a grouped query partition by partition.
func (x *execution) spillGroups(g *grouper) error {
	for i := range g.refs {
		if r := &g.refs[i]; r.ordered && r.dict != nil && r.ranks == nil {
			return errStays // values are ranked once all are there
		}
	}
	for i := range x.q.Group {
		if x.looseKey(i) {
			return errStays // no two groups may have equal texts
		}
	}
	by, d := g.bases[0], g.bases[0].radix
	file, err := x.opt.Temp.Create()
	if err != nil {
		return beyondTemp(err)
	}
	defer file.Close()
	d.spilled.file = file
	if err := g.p.run(func(*worker) sink { return by.sink() }); err != nil {
		return err
	}
	for _, s := range d.workers {
		for p, n := range s.n {
			if n == 0 {
				continue
			}
			if err := s.flush(p); err != nil {
				return err
			}
		}
		if s.n != nil {
			x.give(int64(len(d.parts)*d.rows) * d.rowBytes())
		}
	}
	d.workers = nil
	if err := g.complete(); err != nil {
		return err
	}
	if err := x.rankGroups(g); err != nil {
		return err
	}
	return x.each(len(d.parts), func(p int) error { return x.spilledPartition(g, d, p) })
}

// rankGroups looks whether the order of groups is known, and has what tells it computed.
func (x *execution) rankGroups(g *grouper) error {
	for _, k := range x.q.Order {
		key, ok := k.Expr.(plan.Key)
		if !ok {
			continue // text of aggregates has a dictionary, too, but that of the column's order
		}
		c := g.keyColumn(key.Index)
		if c.t.Collation = k.Expr.Type().Collation; !rankable(&c) {
			return errStays
		}
	}
	for _, k := range x.q.Order {
		if a, ok := k.Expr.(plan.Agg); ok && a.T.Kind.IsString() {
			c := rcol{t: k.Expr.Type(), dict: g.refs[a.Index].dict}
			if !rankable(&c) {
				return errStays
			}
		}
	}
	return nil
}

// spilledPartition aggregates a partition and writes its results.
func (x *execution) spilledPartition(g *grouper, d *radix, p int) error {
	if len(d.spilled.blocks[p]) == 0 {
		return nil
	}
	to := d.newPart(p)
	defer func() { x.give(to.taken) }()
	from := &scatterer{d: d}
	from.places(d.rows)
	b := new(batch)
	for _, k := range d.spilled.blocks[p] {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		if err := d.spilled.read(from, k); err != nil {
			return err
		}
		if err := d.aggregate(to, b, from, 0, k.rows); err != nil {
			return err
		}
	}
	o, err := g.overview([]*groups{to})
	if err != nil {
		return err
	}
	defer func() { x.give(o.taken) }()
	r, err := x.overGroups(o)
	if err != nil {
		return err
	}
	return x.spill.add(r)
}

// write writes the buffered rows of partition p, of which the caller has the lock.
func (f *spilled) write(s *scatterer, p int) error {
	from, n := p*s.d.rows, s.n[p]
	s.bytes = s.bytes[:0]
	s.each(from, n, func(b []byte) { s.bytes = append(s.bytes, b...) })
	at, err := f.file.Append(s.bytes)
	if err != nil {
		return beyondTemp(err)
	}
	f.blocks[p] = append(f.blocks[p], spilledBlock{at, n})
	s.n[p] = 0
	return nil
}

// read reads a block to the first places of s.
func (f *spilled) read(s *scatterer, k spilledBlock) (err error) {
	at := k.at
	s.each(0, k.rows, func(b []byte) {
		if err == nil {
			err = f.file.ReadAt(b, at)
		}
		at += int64(len(b))
	})
	return err
}

// each calls f with the memory of n rows from a place on, piece by piece.
func (s *scatterer) each(from, n int, f func([]byte)) {
	if n == 0 {
		return
	}
	if s.d.direct {
		f(memoryOf(s.numbers[from : from+n]))
	} else {
		w := s.d.by.pack.words
		f(memoryOf(s.keys[from*w : (from+n)*w]))
	}
	for i := range s.cols {
		c := &s.cols[i]
		if c.v != nil {
			f(memoryOf(c.v[from : from+n]))
		}
		if c.nulls != nil {
			f(c.nulls[from : from+n])
		}
		if c.out != nil {
			f(c.out[from : from+n])
		}
	}
}

// memoryOf returns the bytes of words. They mean something to this process only.
func memoryOf[T uint32 | uint64 | int64](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}
