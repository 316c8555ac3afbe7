package gpu

import (
	"errors"
	"math/rand/v2"
	"testing"

	"pgaccel/gpu/device"
)

// TestArena compares with a model: which bytes are whose.
func TestArena(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit := int64(1<<20 + r.IntN(4<<20))
		slabs := map[device.Pointer]int64{}
		var held int64
		nextAddr := device.Pointer(1 << 20)
		broken := false
		a := newArena(limit, func(n int64) (device.Pointer, error) {
			if broken {
				return 0, errors.New("broken")
			}
			p := nextAddr
			nextAddr += device.Pointer(n) + granule
			slabs[p] = n
			held += n
			return p, nil
		}, func(p device.Pointer) {
			if slabs[p] == 0 {
				t.Fatal("a slab that is none")
			}
			held -= slabs[p]
			delete(slabs, p)
		})
		type owned struct {
			s     *span
			bytes int64
		}
		var live []owned
		owner := map[device.Pointer]bool{} // by granule
		var used int64
		for step := range 4000 {
			broken = step%97 == 96
			if r.IntN(100) < 55 {
				n := int64(r.IntN(3000))
				if r.IntN(10) == 0 {
					n = int64(r.IntN(1 << 20))
				}
				s, err := a.alloc(n)
				if err != nil && !broken {
					t.Fatal(err)
				}
				if s == nil {
					if err == nil && len(live) == 0 && n <= limit-granule {
						t.Fatalf("no room for %d of %d bytes when all is free", n, limit)
					}
					continue
				}
				most := max(n, 1) + granule - 1
				if n > a.slab { // a spare one
					most += n / 2
				}
				if s.bytes < n || s.bytes > most || s.addr%granule != 0 {
					t.Fatalf("%d bytes at %d for %d", s.bytes, s.addr, n)
				}
				inside := false
				for p, size := range slabs {
					inside = inside || s.addr >= p && int64(s.addr-p)+s.bytes <= size
				}
				if !inside {
					t.Fatal("outside of all slabs")
				}
				for p := s.addr; p < s.addr+device.Pointer(s.bytes); p += granule {
					if owner[p] {
						t.Fatal("handed out twice")
					}
					owner[p] = true
				}
				used += s.bytes
				live = append(live, owned{s, n})
			} else if len(live) > 0 {
				i := r.IntN(len(live))
				s := live[i].s
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				for p := s.addr; p < s.addr+device.Pointer(s.bytes); p += granule {
					delete(owner, p)
				}
				used -= s.bytes
				a.dealloc(s)
			}
			if a.used != used || a.held != held || held > limit {
				t.Fatalf("used %d, %d; held %d, %d of %d", a.used, used, a.held, held, limit)
			}
		}
		for _, o := range live {
			a.dealloc(o.s)
		}
		a.trim()
		if a.used != 0 || held != 0 || len(slabs) != 0 {
			t.Fatalf("%d bytes used, %d held, %d slabs at the end", a.used, held, len(slabs))
		}
	}
}

// TestArenaSpare: what was freed of a large span is there for the next one, and for nothing else as long as there is room.
func TestArenaSpare(t *testing.T) {
	const limit, large = 64 << 20, 4 << 20 // slabs of 1 MiB
	var grown, shrunk int
	full := false
	a := newArena(limit, func(int64) (device.Pointer, error) {
		if full {
			return 0, errors.New("full")
		}
		grown++
		return device.Pointer(grown) << 30, nil
	}, func(device.Pointer) { shrunk++ })
	alloc := func(bytes int64) *span {
		t.Helper()
		s, err := a.alloc(bytes)
		if s == nil {
			t.Fatalf("no %d bytes: %v", bytes, err)
		}
		return s
	}
	check := func(g, s int) {
		t.Helper()
		if grown != g || shrunk != s {
			t.Fatalf("%d slabs were made and %d given back, want %d and %d", grown, shrunk, g, s)
		}
	}
	for range 3 {
		a.dealloc(alloc(large))
	}
	check(1, 0)
	small := alloc(1000)
	check(2, 0)
	a.dealloc(alloc(large * 3 / 4)) // the same slab
	check(2, 0)
	a.dealloc(alloc(large / 2)) // would leave half of it unused
	check(3, 0)
	a.dealloc(small)
	half := alloc(limit / 2)
	check(4, 0)
	a.dealloc(half) // more than spare slabs may have
	check(4, 3)
	a.dealloc(alloc(large))
	full = true // for others' sake
	if s, err := a.alloc(2 * large); s != nil || err == nil {
		t.Fatal("memory that is not there")
	}
	check(5, 4)
	full = false
	a.dealloc(alloc(large))
	a.dealloc(alloc(limit - large)) // needs the room of the spare one
	check(7, 6)
	if a.trim(); a.held != 0 || a.used != 0 {
		t.Fatalf("%d bytes held, %d used", a.held, a.used)
	}
}

func TestArenaClasses(t *testing.T) {
	last := 0
	for n := int64(granule); n < 1<<24; n += granule {
		c := classOf(n)
		if c < last || c > last+1 {
			t.Fatalf("class %d of %d bytes after %d", c, n, last)
		}
		last = c
	}
	if c := classOf(1 << 62 / granule * granule); c >= classCount {
		t.Fatal(c)
	}
}
