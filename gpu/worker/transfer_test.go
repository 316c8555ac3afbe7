package worker

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"pgaccel/gpu/device"
)

// TestTransferPlaces takes and gives back places at random: they lie in the file, none over another, and when all have been
// given back the memory is one again.
func TestTransferPlaces(t *testing.T) {
	var m transferBuffer
	defer m.close()
	shared := 0
	share := func(*os.File) (device.File, error) { shared++; return 3, nil }
	if err := m.open(share); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 4))
	var held []extent
	refused := 0
	for range 20_000 {
		if len(held) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(held))
			m.release(held[i])
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
			continue
		}
		n := 1 + r.Int64N(8<<20)
		p, ok := m.alloc(n)
		if !ok {
			refused++
			continue
		}
		if p.bytes < n || p.offset < 0 || p.offset%transferAlign != 0 || p.offset+p.bytes > m.size || m.size > transferMost {
			t.Fatalf("%d bytes at %+v of %d", n, p, m.size)
		}
		for _, o := range held {
			if p.offset < o.offset+o.bytes && o.offset < p.offset+p.bytes {
				t.Fatalf("%+v lies over %+v", p, o)
			}
		}
		held = append(held, p)
	}
	if refused == 0 {
		t.Error("there was always room")
	}
	for _, p := range held {
		m.release(p)
	}
	if len(m.free) != 1 || m.free[0] != (extent{0, m.size}) || m.users != 0 {
		t.Errorf("at the end %+v of %d are free", m.free, m.size)
	}
	if _, ok := m.alloc(transferMost + 1); ok {
		t.Error("there was room for too much")
	}
	if p, ok := m.alloc(transferMost); !ok || p != (extent{0, transferMost}) {
		t.Errorf("%+v, %v", p, ok)
	}
	m.close() // who has a place still may write there
	m.mem[transferMost-1] = 1
	m.release(extent{0, transferMost})
	if _, ok := m.alloc(1); ok || m.mem != nil {
		t.Error("it is not closed")
	}
}

// TestTransfers has many batches with large writes at once, more than the memory has room for: all come as they were, and
// the file is shared once.
func TestTransfers(t *testing.T) {
	ex := newFake()
	c, _ := connect(t, ex)
	if err := c.transfer.open(c.Share); err != nil {
		t.Fatal(err)
	}
	c.transfer.opened.Do(func() {})
	most, ok := c.transfer.alloc(transferMost - 8<<20)
	if !ok {
		t.Fatal("no room")
	}
	var wg sync.WaitGroup
	for g := range 4 {
		p, err := c.Alloc(0, 8<<20)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			r := rand.New(rand.NewPCG(5, uint64(g)))
			for range 2 {
				var commands []device.Command
				var want []byte
				for at := 0; at < 8<<20; {
					data := make([]byte, 1+r.IntN(1<<20+r.IntN(3<<20)))
					data = data[:min(len(data), 8<<20-at)]
					for i := 0; i < len(data); i += 1 + len(data)/100 {
						data[i] = byte(r.Uint32())
					}
					commands = append(commands, device.Command{Op: device.OpWrite, Dst: p + device.Pointer(at), Data: data})
					want = append(want, data...)
					at += len(data)
				}
				commands = append(commands, device.Command{Op: device.OpRead, Src: p, Bytes: uint64(len(want))})
				reply, err := c.Run(context.Background(), 0, &device.Batch{Commands: commands})
				if err != nil {
					t.Error(err)
					return
				}
				if !bytes.Equal(reply.Data[0], want) {
					t.Error("other bytes came back")
				}
				for i := range commands[:len(commands)-1] {
					if commands[i].Op != device.OpWrite {
						t.Error("the caller's batch was changed")
					}
				}
			}
		})
	}
	wg.Wait()
	c.transfer.release(most)
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if len(ex.files) != 1 {
		t.Errorf("%d files were shared", len(ex.files))
	}
	if c.transfer.users != 0 || len(c.transfer.free) != 1 || c.transfer.size == 0 {
		t.Errorf("%d places of %d bytes are in use", c.transfer.users, c.transfer.size)
	}
}
