package gpu

import (
	"math/bits"
	"slices"

	"pgaccel/gpu/device"
)

// granule is the unit of device memory: what Executor.Alloc aligns to.
const granule = 256

// arena carves device memory out of slabs: two-level segregated fit (Masmano, Ripoll, Crespo,
// Real: "TLSF: a new dynamic memory allocator for real-time systems"), with the books kept
// on the host, since the memory is not there to hold them. Free ranges that touch are
// one. It is not safe for concurrent use.
type arena struct {
	grow   func(bytes int64) (device.Pointer, error) // Executor.Alloc
	shrink func(device.Pointer)                      // Executor.Free
	slab   int64                                     // bytes of an ordinary slab
	limit  int64                                     // bytes that all slabs may have
	held   int64                                     // bytes of all slabs
	used   int64                                     // bytes handed out

	classes  [classCount]*span // free spans by size class
	nonEmpty [classCount/64 + 1]uint64
	empty    map[*span]struct{} // free spans that are whole slabs

	// spare are slabs that were made for one large span each and are free, the oldest first. They are for the next
	// such span: to have a device free memory and make it again waits for all that it does, and takes longer than
	// many a query. They are in no class, lest what is small and stays cut them up.
	spare      []*span
	spareBytes int64
}

// spareShare is the part of the limit that spare slabs may have.
const spareShare = 4

// span is a range of device memory, free or handed out.
type span struct {
	addr       device.Pointer
	bytes      int64
	free       bool
	prev, next *span // neighbours in the slab
	back, fwd  *span // in the list of the class
}

// Each power of two has 8 classes.
const (
	classBits  = 3
	classCount = (64 - 8) << classBits
)

// classOf returns the class of spans of that many bytes: the largest whose smallest span is
// not larger.
func classOf(bytes int64) int {
	n := uint64(bytes) / granule
	log := bits.Len64(n) - 1
	if log < classBits {
		return int(n)
	}
	return (log-classBits+1)<<classBits + int(n>>(log-classBits))&(1<<classBits-1)
}

func newArena(limit int64, grow func(int64) (device.Pointer, error), shrink func(device.Pointer)) *arena {
	slab := min(max(limit/64, 64<<10), 256<<20)
	return &arena{grow: grow, shrink: shrink, slab: slab &^ (granule - 1), limit: limit, empty: map[*span]struct{}{}}
}

// alloc returns a span of at least bytes, or nil where there is none within the limit; err is
// Executor.Alloc's.
func (a *arena) alloc(bytes int64) (*span, error) {
	bytes = roundUp(max(bytes, 1))
	s := a.find(bytes)
	if s == nil {
		if s = a.takeSpare(bytes); s != nil {
			return s, nil
		}
		room := a.limit - a.held
		for len(a.spare) > 0 && room < bytes {
			room += a.spare[0].bytes
			a.dropSpare()
		}
		for e := range a.empty { // too small, each of them
			if room >= bytes {
				break
			}
			room += e.bytes
			a.release(e)
		}
		if room < bytes {
			return nil, nil
		}
		size := max(bytes, min(a.slab, room&^(granule-1)))
		p, err := a.grow(size)
		if err != nil && len(a.spare) > 0 { // others use the device, too
			for len(a.spare) > 0 {
				a.dropSpare()
			}
			p, err = a.grow(size)
		}
		if err != nil {
			return nil, err
		}
		a.held += size
		s = &span{addr: p, bytes: size}
	} else {
		a.unlink(s)
	}
	if rest := s.bytes - bytes; rest > 0 {
		r := &span{addr: s.addr + device.Pointer(bytes), bytes: rest, prev: s, next: s.next}
		if s.next != nil {
			s.next.prev = r
		}
		s.next, s.bytes = r, bytes
		a.link(r)
	}
	a.used += bytes
	return s, nil
}

// release gives an empty slab back.
func (a *arena) release(s *span) {
	a.unlink(s)
	a.free(s)
}

// free gives back a slab that is in no class.
func (a *arena) free(s *span) {
	a.held -= s.bytes
	a.shrink(s.addr)
}

// dealloc takes a span back.
func (a *arena) dealloc(s *span) {
	a.used -= s.bytes
	if n := s.next; n != nil && n.free {
		a.unlink(n)
		s.bytes += n.bytes
		s.next = n.next
		if n.next != nil {
			n.next.prev = s
		}
	}
	if p := s.prev; p != nil && p.free {
		a.unlink(p)
		p.bytes += s.bytes
		p.next = s.next
		if s.next != nil {
			s.next.prev = p
		}
		s = p
	}
	switch whole := s.prev == nil && s.next == nil; {
	case whole && s.bytes > a.slab:
		a.spare, a.spareBytes = append(a.spare, s), a.spareBytes+s.bytes
		for a.spareBytes > a.limit/spareShare {
			a.dropSpare()
		}
	case whole && s.bytes < a.slab: // made of the last room
		a.free(s)
	default:
		a.link(s)
	}
}

// trim gives back all slabs of which nothing is in use.
func (a *arena) trim() {
	for s := range a.empty {
		a.release(s)
	}
	for len(a.spare) > 0 {
		a.dropSpare()
	}
}

// takeSpare returns the smallest spare slab for a span, of which no more than a third is not needed; nil where there is none.
func (a *arena) takeSpare(bytes int64) *span {
	best := -1
	for i, s := range a.spare {
		if bytes > a.slab && s.bytes >= bytes && s.bytes-s.bytes/3 <= bytes && (best < 0 || s.bytes < a.spare[best].bytes) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	s := a.spare[best]
	a.spare, a.spareBytes, a.used = slices.Delete(a.spare, best, best+1), a.spareBytes-s.bytes, a.used+s.bytes
	return s
}

// dropSpare gives the oldest spare slab back.
func (a *arena) dropSpare() {
	s := a.spare[0]
	a.spare, a.spareBytes = a.spare[1:], a.spareBytes-s.bytes
	a.free(s)
}

// find returns a free span, the best of its own class or any of the next one that has some.
func (a *arena) find(bytes int64) *span {
	class := classOf(bytes)
	var best *span
	for s := a.classes[class]; s != nil; s = s.fwd {
		if s.bytes >= bytes && (best == nil || s.bytes < best.bytes) {
			best = s
			if s.bytes == bytes {
				break
			}
		}
	}
	if best != nil {
		return best
	}
	class++
	for w := class / 64; w < len(a.nonEmpty); w++ {
		set := a.nonEmpty[w]
		if w == class/64 {
			set &= ^uint64(0) << (class % 64)
		}
		if set != 0 {
			return a.classes[w*64+bits.TrailingZeros64(set)]
		}
	}
	return nil
}

func (a *arena) link(s *span) {
	class := classOf(s.bytes)
	s.free, s.back, s.fwd = true, nil, a.classes[class]
	if s.fwd != nil {
		s.fwd.back = s
	}
	a.classes[class] = s
	a.nonEmpty[class/64] |= 1 << (class % 64)
	if s.prev == nil && s.next == nil {
		a.empty[s] = struct{}{}
	}
}

func (a *arena) unlink(s *span) {
	class := classOf(s.bytes)
	if s.back != nil {
		s.back.fwd = s.fwd
	} else if a.classes[class] = s.fwd; s.fwd == nil {
		a.nonEmpty[class/64] &^= 1 << (class % 64)
	}
	if s.fwd != nil {
		s.fwd.back = s.back
	}
	s.free, s.back, s.fwd = false, nil, nil
	delete(a.empty, s)
}

func roundUp(bytes int64) int64 { return (bytes + granule - 1) &^ (granule - 1) }
