package colstore

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"pgaccel/internal/invariant"
)

// MemoryError says that column memory would exceed its limit.
type MemoryError struct {
	Need, Used, Limit int64 // bytes
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("column memory: %d bytes more needed, %d of %d in use", e.Need, e.Used, e.Limit)
}

const (
	// chunkBytes of address space are taken from the system at a time; pages cost
	// memory only once they are written.
	chunkBytes = 64 << 20
	// alignment of every extent: a cache line, and what bulk copies want.
	alignment = 64
	// Freed extents of at least this size go back to the system at once.
	returnBytesMin = 16 << 10
	// poison fills freed memory in builds that check invariants.
	poison = 0xdb
)

// arena hands out column memory: a memory file mapped in chunks, outside Go's
// heap, so the collector never sees it and another process could map it. It has
// one hard limit, counted in bytes handed out.
type arena struct {
	mu     sync.Mutex
	limit  int64
	used   int64
	file   memoryFile
	grown  int64 // size of file
	chunks []*chunk
	// shared is set once another process may read the file: pages that it has pinned must
	// not be punched out of it, or it would go on reading the old ones. returning is held
	// for reading while pages are given back.
	returning sync.RWMutex
	shared    bool
	// indexers, of its stores, give back what can be done without where the limit would be
	// exceeded. The slice is replaced, not changed.
	indexers []*indexer
}

// chunk is one mapping. free holds its free spans, ascending, never adjacent.
type chunk struct {
	mem    []byte
	offset int64 // in the file
	free   []span
}

type span struct{ at, size int }

// extent is a piece of memory that the arena has handed out.
type extent struct {
	chunk *chunk
	span
}

// alloc returns size bytes or a *MemoryError. They are 64-byte aligned and hold
// anything. They lie behind what came last of the cluster, as long as there is room; nil is none.
func (a *arena) alloc(size int, cl *cluster) (extent, []byte, error) {
	size = max((size+alignment-1)&^(alignment-1), alignment)
	a.mu.Lock()
	defer a.mu.Unlock()
	if all := a.indexers; a.used+int64(size) > a.limit && len(all) > 0 {
		a.mu.Unlock()
		for _, x := range all {
			x.drop()
		}
		a.mu.Lock()
	}
	if a.used+int64(size) > a.limit {
		return extent{}, nil, &MemoryError{Need: int64(size), Used: a.used, Limit: a.limit}
	}
	var e extent
	var err error
	switch {
	case cl == nil:
		e, err = a.take(size)
	case cl.rest.size >= size:
		e = cl.rest.cut(size)
	default:
		cl.give()
		if cl.rest, err = a.take(max(size, clusterBytes)); err == nil {
			e = cl.rest.cut(size)
		}
	}
	if err != nil {
		return extent{}, nil, err
	}
	a.used += int64(size)
	return e, e.chunk.mem[e.at : e.at+size : e.at+size], nil
}

// take takes a span out of the free ones. The lock is held.
func (a *arena) take(size int) (extent, error) {
	var c *chunk
	i := -1
	for _, c = range a.chunks {
		if i = slices.IndexFunc(c.free, func(f span) bool { return f.size >= size }); i >= 0 {
			break
		}
	}
	if i < 0 {
		n := (size + chunkBytes - 1) / chunkBytes * chunkBytes
		mem, err := a.file.grow(n)
		if err != nil {
			return extent{}, fmt.Errorf("column memory: %w", err)
		}
		c, i = &chunk{mem: mem, offset: a.grown, free: []span{{0, n}}}, 0
		a.grown += int64(n)
		a.chunks = append(a.chunks, c)
	}
	f := &c.free[i]
	e := extent{c, span{f.at, size}}
	if f.at, f.size = f.at+size, f.size-size; f.size == 0 {
		c.free = slices.Delete(c.free, i, i+1)
	}
	return e, nil
}

// cluster is memory that is taken for what is to lie side by side: a column's segments, which
// then stream to a device in one piece. What is left of it is no memory yet, but nobody else has it
// until close.
type cluster struct {
	arena *arena
	rest  extent
}

// clusterBytes is address space that a cluster takes at a time.
const clusterBytes = 4 << 20

// give gives back what is left. The lock is held.
func (cl *cluster) give() {
	if cl.rest.size > 0 {
		cl.rest.chunk.give(cl.rest.span)
		cl.rest = extent{}
	}
}

// close gives back what is left.
func (cl *cluster) close() {
	cl.arena.mu.Lock()
	defer cl.arena.mu.Unlock()
	cl.give()
}

// cut takes the first bytes off.
func (e *extent) cut(size int) extent {
	first := extent{e.chunk, span{e.at, size}}
	e.at, e.size = e.at+size, e.size-size
	return first
}

// release takes extents back. Neighbours that come one after the other, as those
// of a table do, go back to the system in one piece.
func (a *arena) release(extents []extent) {
	for i := 0; i < len(extents); {
		run := extents[i]
		for i++; i < len(extents) && extents[i].chunk == run.chunk && extents[i].at == run.at+run.size; i++ {
			run.size += extents[i].size
		}
		mem := run.chunk.mem[run.at : run.at+run.size]
		if invariant.Enabled {
			for i := range mem {
				mem[i] = poison
			}
		} else if run.size >= returnBytesMin {
			a.returnPages(mem) // without the lock: it takes a millisecond for some MB
		}
		a.mu.Lock()
		run.chunk.give(run.span)
		a.used -= int64(run.size)
		a.mu.Unlock()
	}
}

// returnPages gives whole pages back to the system, unless others may use them.
func (a *arena) returnPages(mem []byte) {
	a.returning.RLock()
	defer a.returning.RUnlock()
	if !a.shared {
		returnPages(mem)
	}
}

// share returns a descriptor of the file of its own, and sees to it that pages stay.
func (a *arena) share() (*os.File, error) {
	a.returning.Lock()
	a.shared = true
	a.returning.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.file.duplicate()
}

// offset returns where in the file mem lies; false where it does not.
func (a *arena) offset(mem []byte) (int64, bool) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.chunks {
		base := uintptr(unsafe.Pointer(unsafe.SliceData(c.mem)))
		if at >= base && at+uintptr(len(mem)) <= base+uintptr(len(c.mem)) {
			return c.offset + int64(at-base), true
		}
	}
	return 0, false
}

// give puts a span back among the free ones and joins it with its neighbours.
func (c *chunk) give(s span) {
	i, found := slices.BinarySearchFunc(c.free, s.at, func(f span, at int) int { return f.at - at })
	invariant.Check(!found, "span at %d freed twice", s.at)
	if i < len(c.free) {
		invariant.Check(s.at+s.size <= c.free[i].at, "span [%d, +%d) overlaps a free one", s.at, s.size)
	}
	if i > 0 {
		before := &c.free[i-1]
		invariant.Check(before.at+before.size <= s.at, "span [%d, +%d) overlaps a free one", s.at, s.size)
		if before.at+before.size == s.at {
			before.size += s.size
			if i < len(c.free) && c.free[i].at == before.at+before.size {
				before.size += c.free[i].size
				c.free = slices.Delete(c.free, i, i+1)
			}
			return
		}
	}
	if i < len(c.free) && c.free[i].at == s.at+s.size {
		c.free[i] = span{s.at, s.size + c.free[i].size}
		return
	}
	c.free = slices.Insert(c.free, i, s)
}

// close unmaps everything.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.chunks {
		unmap(c.mem)
	}
	a.chunks, a.used, a.grown = nil, 0, 0
	a.file.close()
}

func (a *arena) setLimit(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = bytes
}

func (a *arena) usage() (used, limit int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used, a.limit
}

// view reads memory as values of another type without pointers; alignment is the
// arena's, so it holds for all of them.
func view[T uint32 | uint64 | int32 | int64 | entry | bucket](mem []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/int(unsafe.Sizeof(t)))
}

// purse collects extents of one owner, to be released together. It belongs to one
// goroutine at a time.
type purse struct {
	arena   *arena
	extents []extent
}

func (p *purse) alloc(cl *cluster, size int) ([]byte, error) {
	e, mem, err := p.arena.alloc(size, cl)
	if err != nil {
		return nil, err
	}
	p.extents = append(p.extents, e)
	return mem, nil
}

// block is column memory that several versions share: it goes back with its last
// reference. Only one goroutine at a time allocates.
type block struct {
	refs    atomic.Int64
	bytes   atomic.Int64
	purse   purse
	indexes atomic.Pointer[indexSet] // of a segment's columns; nil for none
	gone    func()                   // called at the end; may be nil
}

// newBlock returns an empty block with one reference.
func newBlock(a *arena) *block {
	b := &block{purse: purse{arena: a}}
	b.refs.Store(1)
	return b
}

func (b *block) alloc(size int) ([]byte, error) { return b.allocIn(nil, size) }

func (b *block) allocIn(cl *cluster, size int) ([]byte, error) {
	mem, err := b.purse.alloc(cl, size)
	if err == nil {
		b.bytes.Add(int64(b.purse.extents[len(b.purse.extents)-1].size))
	}
	return mem, err
}

// free gives one piece back that alloc handed out, or the beginning of it. Only who
// allocates may do this.
func (b *block) free(mem []byte) {
	p := &b.purse
	i := slices.IndexFunc(p.extents, func(e extent) bool { return &e.chunk.mem[e.at] == unsafe.SliceData(mem) })
	if i < 0 {
		panic("BUG: memory of another block is given back")
	}
	b.bytes.Add(-int64(p.extents[i].size))
	p.arena.release(p.extents[i : i+1])
	p.extents = slices.Delete(p.extents, i, i+1)
}

func (b *block) retain() {
	if b.refs.Add(1) <= 1 {
		panic("BUG: retain of released memory")
	}
}

// release gives a reference back; nil has none.
func (b *block) release() {
	if b == nil {
		return
	}
	switch n := b.refs.Add(-1); {
	case n == 0:
		if set := b.indexes.Load(); set != nil {
			set.close()
		}
		b.purse.empty()
		if b.gone != nil {
			b.gone()
		}
	case n < 0:
		panic("BUG: release of released memory")
	}
}

// empty gives everything back.
func (p *purse) empty() {
	p.arena.release(p.extents)
	p.extents = nil
}
