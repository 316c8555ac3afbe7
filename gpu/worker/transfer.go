package worker

import (
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"pgaccel/gpu/device"
	"pgaccel/internal/processors"
)

// transferBuffer is memory of a client's that the worker maps, too, and pins: a batch's large data lies there while the batch
// runs, and the device takes it from there. By the socket the system copies it twice, and the worker once more to pinned
// memory. The zero value has none; it comes with the first batch that needs some, and goes with the connection.
type transferBuffer struct {
	opened sync.Once
	file   device.File // since then

	mu     sync.Mutex
	f      *os.File
	mem    []byte   // transferMost of address space, of which the file has size
	size   int64    // a multiple of device.ShareChunk
	free   []extent // of the file, in order; none touches the next
	users  int      // extents that batches have
	closed bool     // there is none any more, once nobody uses it; or it cannot be had
}

// extent is bytes of the file.
type extent struct{ offset, bytes int64 }

// transferLeast is the size of data that is not sent through the socket, transferMost what all batches may have at once.
const (
	transferLeast = 1 << 20
	transferMost  = 4 * device.ShareChunk
	transferAlign = 256
	transferGrain = 4 << 20 // bytes that a goroutine copies, at least
)

// open makes the file, and has it shared.
func (t *transferBuffer) open(share func(*os.File) (device.File, error)) error {
	fd, err := unix.MemfdCreate("pgaccel-transfer", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "pgaccel-transfer")
	file, err := share(f) // which may end in close
	if err != nil {
		_ = f.Close()
		return err
	}
	mem, err := unix.Mmap(fd, 0, transferMost, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		_ = f.Close()
		return err
	}
	_ = unix.Madvise(mem, unix.MADV_DONTDUMP) // as in colstore
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file, t.f, t.mem = file, f, mem; t.closed {
		t.drop()
	}
	return nil
}

// alloc returns an extent for n bytes; ok is false where there is none.
func (t *transferBuffer) alloc(n int64) (p extent, ok bool) {
	n = (n + transferAlign - 1) &^ (transferAlign - 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || n > transferMost {
		return extent{}, false
	}
	i := slices.IndexFunc(t.free, func(f extent) bool { return f.bytes >= n })
	if i < 0 {
		more := n // beyond what is free at the file's end
		if last := len(t.free) - 1; last >= 0 && t.free[last].offset+t.free[last].bytes == t.size {
			more -= t.free[last].bytes
		}
		more = (more + device.ShareChunk - 1) &^ (device.ShareChunk - 1)
		if t.size+more > transferMost || unix.Ftruncate(int(t.f.Fd()), t.size+more) != nil {
			return extent{}, false
		}
		t.addFree(extent{t.size, more})
		t.size += more
		i = len(t.free) - 1
	}
	p = extent{t.free[i].offset, n}
	if t.free[i].bytes == n {
		t.free = slices.Delete(t.free, i, i+1)
	} else {
		t.free[i] = extent{p.offset + n, t.free[i].bytes - n}
	}
	t.users++
	return p, true
}

// release takes an extent back.
func (t *transferBuffer) release(p extent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addFree(p)
	if t.users--; t.closed && t.users == 0 {
		t.drop()
	}
}

// addFree adds an extent to those that are free.
func (t *transferBuffer) addFree(p extent) {
	i, _ := slices.BinarySearchFunc(t.free, p.offset, func(f extent, offset int64) int { return int(f.offset - offset) })
	if i < len(t.free) && p.offset+p.bytes == t.free[i].offset {
		p.bytes += t.free[i].bytes
		t.free = slices.Delete(t.free, i, i+1)
	}
	if i > 0 && t.free[i-1].offset+t.free[i-1].bytes == p.offset {
		t.free[i-1].bytes += p.bytes
		return
	}
	t.free = slices.Insert(t.free, i, p)
}

// close gives the memory back once no batch uses it.
func (t *transferBuffer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if t.closed = true; t.users == 0 {
		t.drop()
	}
}

func (t *transferBuffer) drop() {
	if t.mem != nil {
		_ = unix.Munmap(t.mem)
		t.mem = nil
	}
	if t.f != nil {
		_ = t.f.Close()
		t.f = nil
	}
}

// batch returns b with the large data of its writes in the memory, as far as there is room, until done.
func (t *transferBuffer) batch(b *device.Batch, share func(*os.File) (device.File, error)) (out *device.Batch, done func()) {
	var extents []extent
	commands := b.Commands
	for i := range b.Commands {
		c := &b.Commands[i]
		if c.Op != device.OpWrite || len(c.Data) < transferLeast {
			continue
		}
		t.opened.Do(func() {
			if t.open(share) != nil {
				t.close() // it goes through the socket
			}
		})
		p, ok := t.alloc(int64(len(c.Data)))
		if !ok {
			continue
		}
		if extents == nil {
			commands = slices.Clone(commands)
		}
		extents = append(extents, p)
		processors.ParallelFor(len(c.Data), transferGrain, func(from, to int) { copy(t.mem[p.offset+int64(from):], c.Data[from:to]) })
		commands[i] = device.Command{Op: device.OpCopyShared, File: t.file, Side: c.Side,
			Pieces: []device.Piece{{Offset: p.offset, Bytes: int64(len(c.Data)), Dst: c.Dst}}}
	}
	if extents == nil {
		return b, func() {}
	}
	other := *b
	other.Commands = commands
	return &other, func() {
		for _, p := range extents {
			t.release(p)
		}
	}
}
