package gpu

import (
	"math/rand/v2"
	"testing"

	"pgaccel/gpu/device"
)

func testCache(limit int64) *cache {
	next := device.Pointer(granule)
	a := newArena(limit, func(n int64) (device.Pointer, error) {
		p := next
		next += device.Pointer(n)
		return p, nil
	}, func(device.Pointer) {})
	return newCache(a)
}

// check looks at everything: references, lists, bytes.
func (c *cache) check(t *testing.T, pins map[*item]int) {
	t.Helper()
	refs := map[*item]int{}
	for it, n := range pins {
		refs[it] += n
	}
	seen := map[*item]bool{}
	all := []*item{}
	add := func(it *item) {
		if !seen[it] {
			seen[it] = true
			all = append(all, it)
		}
	}
	for key, it := range c.items {
		if it.key != key || it.dead {
			t.Fatalf("%+v is found as %+v", it, key)
		}
		add(it)
	}
	for it := range pins {
		add(it)
	}
	for i := 0; i < len(all); i++ {
		for _, p := range all[i].parts {
			refs[p]++
			add(p)
		}
	}
	var used int64
	var kinds [itemKinds]int64
	listed := 0
	spans := map[device.Pointer]bool{}
	for _, it := range all {
		if it.refs != refs[it] {
			t.Fatalf("%+v has %d references, not %d", it.key, it.refs, refs[it])
		}
		if s := it.span; s != nil {
			if s.free || spans[s.addr] {
				t.Fatalf("%+v lies in memory that is free, or another's", it.key)
			}
			spans[s.addr] = true
			used += s.bytes
			kinds[it.key.kind] += s.bytes
		}
		if it.listed != nil {
			listed++
			if !it.listed.Contains(it.key) || it.dead {
				t.Fatalf("%+v is not in its list", it.key)
			}
		} else if it.refs == 0 {
			t.Fatalf("%+v is in no list", it.key)
		}
	}
	if n := c.lists[0].Len() + c.lists[1].Len() + c.lists[2].Len(); n != listed {
		t.Fatalf("%d items in lists, not %d", n, listed)
	}
	if used != c.arena.used || kinds != c.bytes {
		t.Fatalf("%d bytes used, not %d; by kind %v, not %v", c.arena.used, used, c.bytes, kinds)
	}
}

// TestCacheRandom pins, unpins, fails and evicts at random.
func TestCacheRandom(t *testing.T) {
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := testCache(256 << 10)
		pins := map[*item]int{}
		pick := func() *item {
			for it := range pins {
				return it
			}
			return nil
		}
		unpin := func(it *item) {
			if pins[it]--; pins[it] == 0 {
				delete(pins, it)
			}
			c.unpin(it)
		}
		column := func() *item {
			key := itemKey{kind: itemColumn, id: r.Uint64N(200)}
			it := c.get(key)
			if it == nil {
				it, _ = c.put(key, int64(r.IntN(8000)), nil)
			}
			return it
		}
		for range 3000 {
			c.tick++
			switch r.IntN(8) {
			case 0, 1, 2:
				if it := column(); it != nil {
					pins[it]++
				}
			case 3: // an image, of columns that stay pinned by it
				key := itemKey{kind: itemImage, id: r.Uint64N(20), table: 1}
				it := c.get(key)
				if it == nil {
					parts := []*item{}
					for range r.IntN(20) {
						if p := column(); p != nil {
							parts = append(parts, p)
						}
					}
					if it, _ = c.put(key, 100, nil); it == nil {
						for _, p := range parts {
							c.unpin(p)
						}
						break
					}
					c.setParts(it, parts)
				}
				pins[it]++
			case 4:
				if it := pick(); it != nil && r.IntN(10) == 0 {
					c.drop(it)
				}
			case 5:
				if s, _ := c.alloc(int64(r.IntN(20000))); s != nil {
					c.arena.dealloc(s)
				}
			default:
				if it := pick(); it != nil {
					unpin(it)
				}
			}
			if r.IntN(50) == 0 {
				c.check(t, pins)
			}
		}
		for len(pins) > 0 {
			unpin(pick())
		}
		c.check(t, pins)
		if c.evicted == 0 {
			t.Fatal("nothing was evicted")
		}
		for c.evict() {
		}
		if len(c.items) != 0 || c.arena.used != 0 {
			t.Fatalf("%d items and %d bytes left", len(c.items), c.arena.used)
		}
	}
}

// TestCacheOrder has images and single items evicted in the order of their last use, an image
// before its columns, which the next image takes over.
func TestCacheOrder(t *testing.T) {
	c := testCache(1 << 20)
	put := func(kind itemKind, id uint64, parts ...*item) *item {
		c.tick++
		it, err := c.put(itemKey{kind: kind, id: id}, granule, nil)
		if it == nil {
			t.Fatal(err)
		}
		c.setParts(it, parts)
		return it
	}
	a, b := put(itemColumn, 1), put(itemColumn, 2)
	first := put(itemImage, 1, a, b)
	c.unpin(first)
	lookup := put(itemLookup, 9)
	c.unpin(lookup)
	expect := func(kind itemKind, id uint64) {
		t.Helper()
		if c.items[itemKey{kind: kind, id: id}] == nil {
			t.Fatalf("no %s %d to be evicted", itemNames[kind], id)
		}
		c.evict()
		if c.items[itemKey{kind: kind, id: id}] != nil {
			t.Fatalf("%s %d was not evicted", itemNames[kind], id)
		}
	}
	expect(itemImage, 1)
	c.tick++
	c.pin(b)
	second := put(itemImage, 2, b)
	c.unpin(second)
	expect(itemColumn, 1)
	expect(itemLookup, 9)
	if c.evict(); c.items[b.key] == nil || b.refs != 0 {
		t.Fatal("an image's column went first")
	}
	expect(itemColumn, 2)
}
