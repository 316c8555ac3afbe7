package colstore

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"pgaccel/compress"
)

// sortCodes gives the strings of a finished copy codes in their order, where that is
// the bytes' own (C collations): a range of strings is a range of codes then, for filters
// on encoded columns and for zone maps. Strings that are many are sorted by their bytes
// under any collation, and packed. Strings that the stream adds later get codes
// behind these, in any order. Where memory is short all stays as it is.
func (l *Loader) sortCodes(t *Table) {
	orders := make([][]int32, len(l.dicts)) // ranks by code
	for i, d := range l.dicts {
		switch {
		case d == nil:
		case d.ranking.memcmp:
			orders[i] = t.Dicts[i].Ranks()
		case d.n >= l.store.packedMin:
			orders[i] = d.ranking.bytewise(t.Dicts[i])
		}
	}
	recoded := l.recode(t, orders)
	for i, d := range l.dicts {
		if orders[i] == nil {
			continue
		}
		if !inOrder(orders[i]) {
			if !recoded {
				continue
			}
			d.reorder(orders[i])
		}
		// Without memory the strings stay as they are.
		if d.n >= l.store.packedMin && d.pack() == nil {
			t.Dicts[i] = d.version()
		}
	}
}

// recode gives columns the codes that orders has for their old ones, nil for columns that
// keep theirs. False where memory is short: then nothing has changed.
func (l *Loader) recode(t *Table, orders [][]int32) bool {
	var work []recoded
	for i, to := range orders {
		if inOrder(to) {
			continue
		}
		cl := &cluster{arena: l.store.arena}
		defer cl.close()
		for _, seg := range t.Segments {
			work = append(work, recoded{seg: seg, col: i, to: to, cluster: cl})
		}
	}
	if len(work) == 0 {
		return true
	}
	var next atomic.Int64
	var short atomic.Bool
	var wg sync.WaitGroup
	locks := make(map[*block]*sync.Mutex) // one goroutine at a time allocates of a block
	for _, seg := range t.Segments {
		locks[seg.mem] = &sync.Mutex{}
	}
	for range min(runtime.GOMAXPROCS(0), len(work)) {
		wg.Go(func() {
			values := make([]int64, l.store.segmentRows)
			for !short.Load() {
				i := int(next.Add(1) - 1)
				if i >= len(work) {
					return
				}
				if !work[i].encode(l.store.codec, values, locks[work[i].seg.mem]) {
					short.Store(true)
				}
			}
		})
	}
	wg.Wait()
	for i := range work {
		w := &work[i]
		switch old := &w.seg.Columns[w.col]; {
		case !short.Load():
			w.seg.mem.free(compress.Bytes(old.Data))
			old.ID, old.Data, old.Min, old.Max = NewID(), w.data, w.zone.lo, w.zone.hi
		case w.data != nil:
			w.seg.mem.free(compress.Bytes(w.data))
		}
	}
	return !short.Load()
}

// inOrder reports whether every code is its string's rank.
func inOrder(ranks []int32) bool {
	for code, rank := range ranks {
		if int(rank) != code {
			return false
		}
	}
	return true
}

// recoded is one column of one segment under new codes.
type recoded struct {
	seg     *Segment
	col     int
	to      []int32  // by old code
	cluster *cluster // of the new codes
	data    compress.Column
	zone    zone
}

// encode makes the column; false where there is no memory for it.
func (w *recoded) encode(codec compress.Codec, values []int64, lock *sync.Mutex) bool {
	c := &w.seg.Columns[w.col]
	values = values[:w.seg.Rows]
	c.Data.Decode(values, 0)
	for i, v := range values {
		values[i] = int64(w.to[v])
	}
	w.zone = zoneOf(values, c.Nulls, c.NullCount > 0, false)
	w.data = compress.EncodeAs(codec, values, func(words int) []uint32 {
		lock.Lock()
		defer lock.Unlock()
		mem, err := w.seg.mem.allocIn(w.cluster, 4*words)
		if err != nil {
			return nil
		}
		return view[uint32](mem)
	})
	return w.data != nil
}

// reorder makes to[code] the code of each string. Nobody else may use the dictionary.
func (d *dictionary) reorder(to []int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries := slices.Clone(d.entries[:d.n])
	inRanges(d.n, func(from, upTo int) {
		for code := from; code < upTo; code++ {
			d.entries[to[code]] = entries[code]
		}
	})
	inRanges(len(d.slots), func(from, upTo int) {
		for i, taken := range d.slots[from:upTo] {
			if taken != 0 {
				d.slots[from+i] = uint32(to[taken-1]) + 1
			}
		}
	})
	if d.ranking.memcmp {
		d.ranking.mu.Lock()
		defer d.ranking.mu.Unlock()
		d.ranking.ranks = identity(d.n)
	}
}
