package colstore

import (
	"math/rand/v2"
	"testing"
)

// TestIndex compares the index with a map, through growth and removal.
func TestIndex(t *testing.T) {
	a := &arena{limit: 1 << 30}
	defer a.close()
	r := rand.New(rand.NewPCG(6, 6))
	ix, err := newIndex(a, 1000)
	do(t, err)
	byAddr := map[uint32]uint64{}
	for range 100_000 {
		addr := r.Uint32N(3000)
		hash, there := byAddr[addr]
		if !there {
			if ix.full() {
				continue
			}
			byAddr[addr] = r.Uint64N(40) * 0x9e3779b97f4a7c15 // many of one bucket
			ix.add(byAddr[addr], addr)
			continue
		}
		c := ix.find(hash)
		for ix.next(&c) && *ix.at(c) != addr {
		}
		if c.place < 0 || *ix.at(c) != addr {
			t.Fatalf("address %d is lost", addr)
		}
		ix.remove(hash, c)
		delete(byAddr, addr)
	}
	if ix.count != len(byAddr) {
		t.Errorf("%d entries, want %d", ix.count, len(byAddr))
	}
	for addr, hash := range byAddr {
		c := ix.find(hash)
		for ix.next(&c) && *ix.at(c) != addr {
		}
		ix.remove(hash, c)
	}
	for i := range ix.buckets {
		if b := &ix.buckets[i]; b.passed != 0 || b.tag != [bucketPlaces]uint8{} {
			t.Fatalf("bucket %d is not empty: %v", i, b)
		}
	}
}
