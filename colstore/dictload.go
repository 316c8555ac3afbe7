package colstore

import (
	"bytes"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// dictLoader is a dictionary to which the writers of a copy add at once: under one lock
// a column of distinct strings took 40 times the COPY on 16 cores. Nobody reads the
// dictionary before finish.
//
// Slots are claimed by compare-and-swap; each writer has blocks of its own for the
// strings. Arrays are exchanged for larger ones while all writers wait: each holds a
// lock of its own, which nobody else wants otherwise, while it looks at them.
type dictLoader struct {
	to *dictionary

	text   sync.Mutex // whoever takes memory for strings; after a writer's
	blocks atomic.Pointer[[][]byte]

	growing sync.Mutex // comes before the writers'
	writers []*dictWriter

	// next is the next code; past the entries' end where writers have asked for one that
	// they did not get. It has a cache line of its own, which all writers write to.
	_    [64]byte
	next atomic.Uint32
	_    [64]byte
}

// codes is how many have been given. No writer is at work.
func (l *dictLoader) codes() int { return min(int(l.next.Load()), len(l.to.entries)) }

// slotClaimed is a slot whose string is being written. A dictionary has fewer codes.
const slotClaimed = ^uint32(0)

func newDictLoader(to *dictionary) *dictLoader {
	l := &dictLoader{to: to}
	l.blocks.Store(new([][]byte))
	return l
}

// finish hands over what was added. The writers have stopped.
func (l *dictLoader) finish() {
	d := l.to
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n, d.blocks, d.room = l.codes(), *l.blocks.Load(), nil
}

// dictWriter adds strings for one goroutine.
type dictWriter struct {
	of   *dictLoader
	mu   sync.Mutex // held while the arrays are looked at
	room []byte     // what is left of the last block
	last uint32     // the last block
	at   uint32     // where room lies in it
	own  int        // blocks taken
	_    [64]byte   // other writers' locks lie in other cache lines
}

func (l *dictLoader) writer() *dictWriter {
	w := &dictWriter{of: l}
	l.growing.Lock()
	defer l.growing.Unlock()
	l.writers = append(l.writers, w)
	return w
}

// close ends the writer: nobody waits for it any more.
func (w *dictWriter) close() {
	l := w.of
	l.growing.Lock()
	defer l.growing.Unlock()
	l.writers = slices.DeleteFunc(l.writers, func(x *dictWriter) bool { return x == w })
}

// add returns the code of b, a new one where b is new, and the dictionary's copy of b.
// hash is maphash.Bytes(hashSeed, b).
func (w *dictWriter) add(b []byte, hash uint64) (code uint32, kept []byte, err error) {
	for {
		code, kept, err = w.try(b, hash)
		if kept != nil || err != nil {
			return code, kept, err
		}
		if err := w.of.grow(); err != nil {
			return 0, nil, err
		}
	}
}

// try is add; kept is nil where the arrays are full.
func (w *dictWriter) try(b []byte, hash uint64) (code uint32, kept []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.of
	slots, entries := l.to.slots, l.to.entries
	if len(slots) == 0 {
		return 0, nil, nil
	}
	mask := uint32(len(slots) - 1)
	for slot := firstSlot(uint32(hash>>32), mask); ; {
		switch taken := atomic.LoadUint32(&slots[slot]); taken {
		case slotClaimed: // for this very string, perhaps
			runtime.Gosched()
		case 0:
			if err := w.reserve(len(b)); err != nil {
				return 0, nil, err
			}
			if !atomic.CompareAndSwapUint32(&slots[slot], 0, slotClaimed) {
				continue
			}
			code := l.next.Add(1) - 1
			if int(code) >= len(entries) {
				atomic.StoreUint32(&slots[slot], 0)
				return 0, nil, nil
			}
			kept = w.room[:len(b):len(b)]
			copy(kept, b)
			entries[code] = entry{w.last, w.at, uint32(len(b)), uint32(hash >> 32)}
			w.room, w.at = w.room[len(b):], w.at+uint32(len(b))
			atomic.StoreUint32(&slots[slot], code+1)
			return code, kept, nil
		default:
			// Entry and block are older than the slot.
			if e := &entries[taken-1]; e.hash == uint32(hash>>32) && int(e.size) == len(b) {
				block := (*l.blocks.Load())[e.block]
				if kept = block[e.at : e.at+e.size : e.at+e.size]; bytes.Equal(kept, b) {
					return taken - 1, kept, nil
				}
			}
			slot = (slot + 1) & mask
		}
	}
}

// reserve sees to it that room is there for a string.
func (w *dictWriter) reserve(size int) error {
	if w.own > 0 && len(w.room) >= size {
		return nil
	}
	l := w.of
	l.text.Lock()
	defer l.text.Unlock()
	mem, err := l.to.text.alloc(max(size, min(blockBytesMax, blockBytesMin<<min(w.own, 16))))
	if err != nil {
		return err
	}
	// Who has the slice of before does not look behind its end.
	blocks := append(*l.blocks.Load(), mem)
	l.blocks.Store(&blocks)
	w.room, w.at, w.last = mem, 0, uint32(len(blocks)-1)
	w.own++
	return nil
}

// grow makes room for more codes, unless another writer has.
func (l *dictLoader) grow() error {
	l.growing.Lock()
	defer l.growing.Unlock()
	if int(l.next.Load()) < len(l.to.entries) {
		return nil
	}
	for _, w := range l.writers {
		w.mu.Lock()
		defer w.mu.Unlock()
	}
	l.to.n = l.codes()
	l.next.Store(uint32(l.to.n))
	return l.to.grow()
}
