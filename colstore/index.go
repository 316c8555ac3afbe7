package colstore

import "math/bits"

// index finds rows by a hash of their identity. It holds addresses in column memory,
// 12 to a bucket of a cache line, and nothing of the keys: whoever asks compares
// those in the columns. An entry that finds its bucket full goes to the next one.
//
//	bucket: | 12 tags, a byte each | 12 addresses of 4 bytes | passed |
//
// A tag is 8 bits of the hash, 0 for a free place; passed counts the entries that
// went on to later buckets, so that a search knows where to end, and nothing is left
// behind by what is removed. At most 85 % of the places are taken: 6 to 8 bytes a row.
type index struct {
	buckets []bucket
	mem     *block
	count   int
}

type bucket struct {
	tag    [bucketPlaces]uint8
	addr   [bucketPlaces]uint32
	passed uint32
}

const bucketPlaces = 12

// newIndex makes an index with room for rows and some more.
func newIndex(a *arena, rows int) (*index, error) {
	ix := &index{mem: newBlock(a)}
	mem, err := ix.mem.alloc(64 * (rows*100/(bucketPlaces*70) + 1))
	if err != nil {
		return nil, err
	}
	ix.buckets = view[bucket](mem)
	clear(ix.buckets)
	return ix, nil
}

// full reports whether the index wants to be built anew.
func (ix *index) full() bool { return ix.count*100 >= len(ix.buckets)*bucketPlaces*85 }

func (ix *index) home(hash uint64) (bucket int, tag uint8) {
	hi, _ := bits.Mul64(hash, uint64(len(ix.buckets)))
	return int(hi), max(1, uint8(hash))
}

func (ix *index) after(b int) int {
	if b++; b == len(ix.buckets) {
		return 0
	}
	return b
}

// add puts an address in. The index is not full.
func (ix *index) add(hash uint64, addr uint32) {
	b, tag := ix.home(hash)
	for ; ; b = ix.after(b) {
		k := &ix.buckets[b]
		for i, t := range k.tag {
			if t == 0 {
				k.tag[i], k.addr[i] = tag, addr
				ix.count++
				return
			}
		}
		k.passed++
	}
}

// cursor walks the places that a hash may be at.
type cursor struct {
	bucket, place int
	tag           uint8
}

func (ix *index) find(hash uint64) cursor {
	b, tag := ix.home(hash)
	return cursor{bucket: b, place: -1, tag: tag}
}

// next moves to the next place with the tag; false where there is none left.
func (ix *index) next(c *cursor) bool {
	for {
		k := &ix.buckets[c.bucket]
		for i := c.place + 1; i < bucketPlaces; i++ {
			if k.tag[i] == c.tag {
				c.place = i
				return true
			}
		}
		if k.passed == 0 {
			return false
		}
		c.bucket, c.place = ix.after(c.bucket), -1
	}
}

// at is the address where the cursor stands.
func (ix *index) at(c cursor) *uint32 { return &ix.buckets[c.bucket].addr[c.place] }

// remove takes out the entry where the cursor stands.
func (ix *index) remove(hash uint64, c cursor) {
	ix.buckets[c.bucket].tag[c.place] = 0
	b, _ := ix.home(hash)
	for ; b != c.bucket; b = ix.after(b) {
		ix.buckets[b].passed--
	}
	ix.count--
}

// mix adds a word to a hash: the folded product of wyhash.
func mix(hash, v uint64) uint64 {
	hi, lo := bits.Mul64(hash^0xa0761d6478bd642f, v^0xe7037ed1a0b428db)
	return hi ^ lo
}
