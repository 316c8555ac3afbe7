package cube

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// sharedTable is the hash table of target cells in a device's global memory: open
// addressing, keys claimed by compare-and-swap, values added by atomics. A target cell
// has several slots where several hash functions are asked for: thread i of a page
// writes to slot i modulo their number.
type sharedTable[N Number] struct {
	keys      []atomic.Uint64 // target*functions + function + 1; 0: free
	values    []atomic.Uint64 // N as bits
	mask      uint64
	functions uint64
	float     bool
}

// newSharedTable makes a table for at most cells filled target cells.
func newSharedTable[N Number](cells uint64, targets uint64, functions int, limit int64) (*sharedTable[N], error) {
	hi, _ := bits.Mul64(targets, uint64(functions))
	over, entries := bits.Mul64(cells, uint64(functions))
	if hi != 0 || over != 0 || entries > uint64(limit)/32 {
		return nil, errMemory
	}
	size := uint64(1) << bits.Len64(2*entries)
	return &sharedTable[N]{keys: make([]atomic.Uint64, size), values: make([]atomic.Uint64, size), mask: size - 1,
		functions: uint64(functions), float: isFloat[N]()}, nil
}

// add adds v for the thread's slot of a target cell.
func (t *sharedTable[N]) add(target uint64, thread int, v N) {
	key := target*t.functions + uint64(thread)%t.functions + 1
	at := mix(key) & t.mask
	for {
		k := t.keys[at].Load()
		if k == key || k == 0 && (t.keys[at].CompareAndSwap(0, key) || t.keys[at].Load() == key) {
			break
		}
		at = (at + 1) & t.mask
	}
	if !t.float {
		t.values[at].Add(uint64(int64(v)))
		return
	}
	for {
		old := t.values[at].Load()
		if t.values[at].CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+float64(v))) {
			return
		}
	}
}

// entries returns what the table holds, duplicates of target cells included.
func (t *sharedTable[N]) entries() []entry[N] {
	var all []entry[N]
	for i := range t.keys {
		if k := t.keys[i].Load(); k != 0 {
			v := N(int64(t.values[i].Load()))
			if t.float {
				v = N(math.Float64frombits(t.values[i].Load()))
			}
			all = append(all, entry[N]{(k - 1) / t.functions, v})
		}
	}
	return all
}

// mix spreads keys over a table (the finaliser of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// ownTable is a worker's table of sums by number: it grows, and nobody else writes.
type ownTable[N Number] struct {
	keys   []uint64 // number + 1; 0: free
	values []N
	used   int
}

func newOwnTable[N Number]() *ownTable[N] {
	return &ownTable[N]{keys: make([]uint64, 64), values: make([]N, 64)}
}

// add adds v to a number's sum.
func (t *ownTable[N]) add(number uint64, v N) {
	mask := uint64(len(t.keys) - 1)
	for at := mix(number) & mask; ; at = (at + 1) & mask {
		switch t.keys[at] {
		case number + 1:
			t.values[at] += v
			return
		case 0:
			t.keys[at], t.values[at] = number+1, v
			if t.used++; 2*t.used > len(t.keys) {
				t.grow()
			}
			return
		}
	}
}

func (t *ownTable[N]) grow() {
	old := *t
	t.keys, t.values = make([]uint64, 2*len(old.keys)), make([]N, 2*len(old.keys))
	mask := uint64(len(t.keys) - 1)
	for i, k := range old.keys {
		if k == 0 {
			continue
		}
		at := mix(k-1) & mask
		for t.keys[at] != 0 {
			at = (at + 1) & mask
		}
		t.keys[at], t.values[at] = k, old.values[i]
	}
}

// bytes returns the table's memory.
func (t *ownTable[N]) bytes() int64 { return int64(len(t.keys)) * 16 }

// appendTo appends the table's entries.
func (t *ownTable[N]) appendTo(all []entry[N]) []entry[N] {
	for i, k := range t.keys {
		if k != 0 {
			all = append(all, entry[N]{k - 1, t.values[i]})
		}
	}
	return all
}
