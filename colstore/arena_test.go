package colstore

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgaccel/internal/invariant"
)

// TestArena: random allocation and release; nothing overlaps, nothing is lost, and
// freed memory joins up again.
func TestArena(t *testing.T) {
	a := &arena{limit: 300 << 20}
	defer a.close()
	r := rand.New(rand.NewPCG(1, 1))
	type piece struct {
		e    extent
		mem  []byte
		mark byte
	}
	var live []piece
	var used int64
	clusters := make([]cluster, 3)
	for i := range clusters {
		clusters[i].arena = a
	}
	behind, together := map[*cluster]extent{}, 0 // the last of each
	for i := range 4000 {
		if len(live) > 0 && r.IntN(100) < 48 {
			k := r.IntN(len(live))
			p := live[k]
			if p.mem[0] != p.mark || p.mem[len(p.mem)-1] != p.mark {
				t.Fatalf("piece of %d bytes was written by another", len(p.mem))
			}
			a.release([]extent{p.e})
			used -= int64(p.e.size)
			live[k] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		size := r.IntN(1 << r.IntN(21))
		if i%1000 == 999 {
			size = chunkBytes + 1 // does not fit one chunk
		}
		var cl *cluster
		if k := r.IntN(2 * len(clusters)); k < len(clusters) {
			cl = &clusters[k]
		}
		if r.IntN(200) == 0 {
			clusters[0].close()
		}
		e, mem, err := a.alloc(size, cl)
		if err != nil {
			t.Fatal(err)
		}
		if cl != nil {
			if last := behind[cl]; last.chunk == e.chunk && last.at+last.size == e.at {
				together++
			}
			behind[cl] = e
		}
		if len(mem) < size || e.at%alignment != 0 {
			t.Fatalf("%d bytes at %d for %d", len(mem), e.at, size)
		}
		mem[0], mem[len(mem)-1] = byte(i), byte(i)
		used += int64(e.size)
		live = append(live, piece{e, mem, byte(i)})
	}
	if got, _ := a.usage(); got != used {
		t.Errorf("%d bytes in use, want %d", got, used)
	}
	if together < 500 {
		t.Errorf("%d pieces lie behind the last of their cluster", together)
	}
	for _, p := range live {
		a.release([]extent{p.e})
	}
	for i := range clusters {
		clusters[i].close()
	}
	for i, c := range a.chunks {
		if len(c.free) != 1 || c.free[0] != (span{0, len(c.mem)}) {
			t.Errorf("chunk %d is left in %d pieces", i, len(c.free))
		}
	}
	if got, _ := a.usage(); got != 0 {
		t.Errorf("%d bytes in use at the end", got)
	}
	var m *MemoryError
	if _, _, err := a.alloc(301<<20, nil); !errors.As(err, &m) || m.Used != 0 {
		t.Errorf("past the limit: %v", err)
	}
}

// TestArenaReuse: freed memory is had again before more is asked of the system.
func TestArenaReuse(t *testing.T) {
	a := &arena{limit: 1 << 30}
	defer a.close()
	for range 20 {
		e, mem, err := a.alloc(40<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		mem[0] = 1
		a.release([]extent{e})
	}
	if len(a.chunks) != 1 {
		t.Errorf("%d chunks for one piece at a time", len(a.chunks))
	}
}

// TestArenaReturns: freed pages go back to the system, so they read as zeros when
// they are had again; or as poison, where invariants are checked.
func TestArenaReturns(t *testing.T) {
	a := &arena{limit: 1 << 30}
	defer a.close()
	fill := func() []byte {
		e, mem, err := a.alloc(1<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		was := slices.Clone(mem)
		for i := range mem {
			mem[i] = 1
		}
		a.release([]extent{e})
		return was
	}
	fill()
	want := byte(0)
	if invariant.Enabled {
		want = poison
	} else if runtime.GOOS != "linux" {
		want = 1
	}
	if i := slices.IndexFunc(fill(), func(b byte) bool { return b != want }); i >= 0 {
		t.Errorf("byte %d of freed memory is not %#x", i, want)
	}
}
