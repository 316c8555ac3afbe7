package worker

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"pgaccel/gpu/device"
)

// chunkBytes is the unit in which a shared file is mapped. A mapping's pages are pinned
// as far as the file reaches: pinning costs some 0.1 s a gigabyte once, and copies from pinned
// pages run at the bus' speed.
const chunkBytes = device.ShareChunk

// sharedFile is a memory file of the client's.
type sharedFile struct {
	f        *os.File
	register func(b []byte) error

	mu     sync.Mutex
	chunks map[int64]*chunk
}

// chunk is a mapping of chunkBytes, which may reach beyond the file's end.
type chunk struct {
	mu      sync.Mutex
	mem     []byte
	ends    []int // of the registered parts, in order: the first begins at 0, the next where one ends
	refused bool  // registering failed: copies take the detour by staging memory

	covered atomic.Int64 // the last of ends
}

// part is contiguous memory of a shared file, and where it goes.
type part struct {
	mem    []byte
	dst    device.Pointer
	pinned bool
}

func newSharedFile(f *os.File, register func([]byte) error) *sharedFile {
	return &sharedFile{f: f, register: register, chunks: map[int64]*chunk{}}
}

// parts cuts pieces where chunks, and registered parts of them, meet, maps and registers what
// was not yet, and calls do with each part in order. Before it waits for pages to be pinned it
// calls stall, where that is not nil.
func (s *sharedFile) parts(pieces []device.Piece, do func(part) error, stall func() error) error {
	for _, p := range pieces {
		if p.Offset < 0 || p.Bytes < 0 || p.Offset+p.Bytes < p.Offset {
			return &device.Fault{Call: "copy of a shared file", Text: fmt.Sprintf("%d bytes at %d", p.Bytes, p.Offset)}
		}
		for p.Bytes > 0 {
			number, at := p.Offset/chunkBytes, int(p.Offset%chunkBytes)
			n := int(min(p.Bytes, chunkBytes-int64(at)))
			c, err := s.chunk(number)
			if err != nil {
				return err
			}
			if stall != nil && !c.covers(at+n) {
				if err := stall(); err != nil {
					return err
				}
			}
			n, pinned, err := s.ready(c, number, at, n)
			if err != nil {
				return err
			}
			if err := do(part{mem: c.mem[at : at+n], dst: p.Dst, pinned: pinned}); err != nil {
				return err
			}
			p.Offset, p.Bytes, p.Dst = p.Offset+int64(n), p.Bytes-int64(n), p.Dst+device.Pointer(n)
		}
	}
	return nil
}

// prepare maps and registers what pieces need, beside whoever copies the first of them.
func (s *sharedFile) prepare(pieces []device.Piece) {
	const atOnce = 4
	type need struct {
		number int64
		last   int // byte
	}
	var needs []need
	seen := map[int64]int{} // a chunk's place in needs
	before, place := int64(-1), 0
	for _, p := range pieces {
		for number := p.Offset / chunkBytes; number*chunkBytes < p.Offset+p.Bytes; number++ {
			if number != before {
				before = number
				var ok bool
				if place, ok = seen[number]; !ok {
					place = len(needs)
					seen[number] = place
					needs = append(needs, need{number: number})
				}
			}
			needs[place].last = max(needs[place].last, int(min(p.Offset+p.Bytes-number*chunkBytes, chunkBytes))-1)
		}
	}
	if len(needs) < 2 {
		return
	}
	next := make(chan need, len(needs))
	for _, n := range needs[1:] { // the first is the copier's
		s.mu.Lock()
		c := s.chunks[n.number]
		s.mu.Unlock()
		if c == nil || !c.covers(n.last+1) {
			next <- n
		}
	}
	close(next)
	for range min(atOnce, len(next)) {
		go func() {
			for n := range next {
				if c, err := s.chunk(n.number); err == nil {
					_, _, _ = s.ready(c, n.number, n.last, 1) // parts sees the error again
				}
			}
		}()
	}
}

// prepareAll maps and registers what the file has, up to limit bytes, so that the first
// copies need not wait for it. It ends early when stop is closed.
func (s *sharedFile) prepareAll(limit int64, stop <-chan struct{}) {
	// An offset of its own: that of a descriptor is the client's, too.
	holes, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", s.f.Fd()))
	if err != nil {
		return
	}
	defer holes.Close()
	for number := int64(0); (number+1)*chunkBytes <= limit; number++ {
		select {
		case <-stop:
			return
		default:
		}
		info, err := s.f.Stat()
		if err != nil || info.Size() <= number*chunkBytes {
			return
		}
		// Pinning makes pages where there are none yet.
		if at, err := unix.Seek(int(holes.Fd()), number*chunkBytes, unix.SEEK_DATA); err != nil || at >= (number+1)*chunkBytes {
			continue
		}
		last := int(min(info.Size()-number*chunkBytes, chunkBytes)) - 1
		c, err := s.chunk(number)
		if err != nil || c.covers(last+1) {
			continue
		}
		if _, pinned, err := s.ready(c, number, last, 1); err != nil || !pinned {
			return
		}
	}
}

// covers says, without waiting, whether a chunk is known to be registered up to end.
func (c *chunk) covers(end int) bool {
	return int64(end) <= c.covered.Load()
}

// chunk returns the mapping with a number.
func (s *sharedFile) chunk(number int64) (*chunk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chunks[number]; c != nil {
		return c, nil
	}
	mem, err := unix.Mmap(int(s.f.Fd()), number*chunkBytes, chunkBytes, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, &device.Fault{Kind: device.FaultMemory, Call: "mmap", Text: err.Error()}
	}
	// As in colstore: a core dump is to hold no data of tables. Failure only costs that.
	_ = unix.Madvise(mem, unix.MADV_DONTDUMP)
	c := &chunk{mem: mem}
	s.chunks[number] = c
	return c, nil
}

// ready registers a chunk up to at+n or further, and returns how many of the n bytes lie
// in one registered part.
func (s *sharedFile) ready(c *chunk, number int64, at, n int) (int, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := 0
	if len(c.ends) > 0 {
		end = c.ends[len(c.ends)-1]
	}
	if at+n > end || c.refused {
		info, err := s.f.Stat()
		if err != nil {
			return 0, false, &device.Fault{Call: "fstat", Text: err.Error()}
		}
		size := min(info.Size()-number*chunkBytes, chunkBytes)
		if int64(at+n) > size {
			return 0, false, &device.Fault{Call: "copy of a shared file", Text: fmt.Sprintf("%d bytes at %d are beyond its %d bytes", n, number*chunkBytes+int64(at), info.Size())}
		}
		page := int64(os.Getpagesize())
		upTo := int((size + page - 1) / page * page)
		if !c.refused {
			if err := s.register(c.mem[end:upTo]); err != nil {
				c.refused = true
				fmt.Fprintf(os.Stderr, "shared memory is copied by way of a buffer: %v\n", err)
			} else {
				c.ends = append(c.ends, upTo)
				c.covered.Store(int64(upTo))
			}
		}
		if c.refused {
			// What was registered before stays so, and is used so below.
			for _, e := range c.ends {
				if at < e {
					return min(n, e-at), true, nil
				}
			}
			return n, false, nil
		}
	}
	for _, e := range c.ends {
		if at < e {
			return min(n, e-at), true, nil
		}
	}
	panic("a registered part that is not there")
}

// close unmaps the file. Nothing may copy from it any more.
func (s *sharedFile) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.chunks {
		_ = unix.Munmap(c.mem)
	}
	s.chunks = nil
	_ = s.f.Close()
}
