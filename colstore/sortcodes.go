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
// on encoded columns and for zone maps. Strings that the stream adds later get codes
// behind these, in any order. Where memory is short all stays as it is.
func (l *Loader) sortCodes(t *Table) {
	var work []recoded
	for i, d := range l.dicts {
		if d == nil || !d.ranking.memcmp {
			continue
		}
		to := t.Dicts[i].Ranks()
		if inOrder(to) {
			continue
		}
		cl := &cluster{arena: &l.store.arena}
		defer cl.close()
		for _, seg := range t.Segments {
			work = append(work, recoded{seg: seg, col: i, to: to, cluster: cl})
		}
	}
	if len(work) == 0 {
		return
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
	if short.Load() {
		return
	}
	for i, d := range l.dicts {
		if d != nil && d.ranking.memcmp {
			if to := t.Dicts[i].Ranks(); !inOrder(to) {
				d.reorder(to)
			}
		}
	}
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
	d.ranking.mu.Lock()
	defer d.ranking.mu.Unlock()
	sorted := make([]int32, d.n)
	for i := range sorted {
		sorted[i] = int32(i)
	}
	d.ranking.ranks = sorted
}
