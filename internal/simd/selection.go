package simd

import "math/bits"

// Positions writes the positions of mask's set bits to dst, ascending, and returns their
// number. dst has room for all of mask: 64 each word, at most 65,536.
func Positions(dst []uint16, mask []uint64) int {
	if len(mask) == 0 {
		return 0
	}
	_ = dst[64*len(mask)-1]
	if active == AVX512 {
		return positionsAVX512(&dst[0], &mask[0], len(mask))
	}
	return positionsPlain(dst, mask)
}

func positionsPlain(dst []uint16, mask []uint64) int {
	k := 0
	for i, b := range mask {
		base := uint16(i * 64)
		for b != 0 {
			dst[k] = base + uint16(bits.TrailingZeros64(b))
			k++
			b &= b - 1
		}
	}
	return k
}

// Count returns the number of mask's set bits.
func Count(mask []uint64) (n int) {
	for _, b := range mask {
		n += bits.OnesCount64(b)
	}
	return n
}

// Pick writes src[sel[i]] to dst[i]. dst is as long as sel. Positions are not checked: the
// selection ascends, so its last one is, alone.
func Pick(dst, src []int64, sel []uint16) {
	n := len(sel)
	if n == 0 {
		return
	}
	_, _ = dst[n-1], src[sel[n-1]]
	if active == AVX512 {
		pickAVX512(&dst[0], &src[0], &sel[0], n)
		return
	}
	pickPlain(dst, src, sel)
}

func pickPlain(dst, src []int64, sel []uint16) {
	dst = dst[:len(sel)]
	for i, s := range sel {
		dst[i] = src[s]
	}
}

// PickEntries writes values[entries[sel[i]]] to dst[i]. dst is as long as sel. Entries are
// not checked.
func PickEntries(dst, values []int64, entries []uint32, sel []uint16) {
	n := len(sel)
	if n == 0 {
		return
	}
	_, _, _ = dst[n-1], values[0], entries[sel[n-1]]
	if active == AVX512 {
		pickEntriesAVX512(&dst[0], &values[0], &entries[0], &sel[0], n)
		return
	}
	pickEntriesPlain(dst, values, entries, sel)
}

func pickEntriesPlain(dst, values []int64, entries []uint32, sel []uint16) {
	dst = dst[:len(sel)]
	for i, s := range sel {
		dst[i] = values[entries[s]]
	}
}

// EntryRoom is how many elements more than its length the memory of a table for Entries
// should have.
const EntryRoom = 3

// Entries looks keys up in table, whose first entry is lo's: it writes the entry of
// key i to entries[sel[i]], and to next the positions of those that are not absent, in
// order. It returns their number. An entry that is absent may or may not be written.
// next has room for len(sel) positions and may not be sel; keys have an entry each,
// which is not checked.
func Entries[T uint8 | uint16 | uint32](table []T, lo int64, keys []int64, sel []uint16, entries []uint32, next []uint16, absent uint32) int {
	n := len(sel)
	if n == 0 {
		return 0
	}
	_, _, _ = keys[n-1], next[n-1], entries[sel[n-1]]
	if active == AVX512 && cap(table) >= len(table)+EntryRoom {
		switch t := any(table).(type) {
		case []uint8:
			return entries8AVX512(&t[0], lo, &keys[0], &sel[0], n, &entries[0], &next[0], absent)
		case []uint16:
			return entries16AVX512(&t[0], lo, &keys[0], &sel[0], n, &entries[0], &next[0], absent)
		case []uint32:
			return entries32AVX512(&t[0], lo, &keys[0], &sel[0], n, &entries[0], &next[0], absent)
		}
	}
	return entriesPlain(table, lo, keys, sel, entries, next, absent)
}

func entriesPlain[T uint8 | uint16 | uint32](table []T, lo int64, keys []int64, sel []uint16, entries []uint32, next []uint16, absent uint32) int {
	k := 0
	keys = keys[:len(sel)]
	next = next[:len(sel)]
	for i, s := range sel {
		e := uint32(table[keys[i]-lo])
		entries[s] = e
		next[k] = s
		if e != absent {
			k++
		}
	}
	return k
}

// SpreadNulls writes row i's bit of set (bit i&63 of word i>>6) to nulls[i], as 0 or 1,
// and fill to v[i] where it is 1. v is as long as nulls, or longer.
func SpreadNulls(nulls []uint8, v []int64, set []uint64, fill int64) {
	v = v[:len(nulls)]
	n := 0
	if active == AVX512 && len(nulls) >= 64 {
		words := len(nulls) / 64
		_ = set[words-1]
		spreadNullsAVX512(&nulls[0], &v[0], &set[0], words, fill)
		n = 64 * words
	}
	if n < len(nulls) {
		spreadNullsPlain(nulls[n:], v[n:], set[n/64:], fill)
	}
}

func spreadNullsPlain(nulls []uint8, v []int64, set []uint64, fill int64) {
	clear(nulls)
	for i, b := range set[:(len(nulls)+63)/64] {
		if r := len(nulls) - 64*i; r < 64 {
			b &= 1<<r - 1
		}
		for ; b != 0; b &= b - 1 {
			at := 64*i + bits.TrailingZeros64(b)
			nulls[at], v[at] = 1, fill
		}
	}
}
