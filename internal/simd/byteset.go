package simd

// ByteSet is a set of bytes: byte h<<4 | l is in it where bit h of element l is set, of element 16+l where h is 8 or
// more, less 8.
type ByteSet [32]byte

// Add adds a byte.
func (s *ByteSet) Add(b byte) { s[b>>7<<4|b&15] |= 1 << (b >> 4 & 7) }

// Has reports whether a byte is in the set.
func (s *ByteSet) Has(b byte) bool { return s[b>>7<<4|b&15]>>(b>>4&7)&1 != 0 }

// FindBytes sets the bits of found whose bytes of text, of the same number, are in the set, and clears the others. found
// has a word for each 64 bytes of text, n of which are looked at; the bits behind them are anything.
func FindBytes(found []uint64, text []byte, n int, set *ByteSet) {
	words := (n + 63) / 64
	fast := 0
	if active != Plain {
		fast = min(words, len(text)/64)
	}
	if fast > 0 {
		_ = found[fast-1]
		if active == AVX512 {
			findBytesAVX512(&found[0], &text[0], fast, (*[32]byte)(set))
		} else {
			findBytesAVX2(&found[0], &text[0], fast, (*[32]byte)(set))
		}
	}
	clear(found[fast:words])
	for i := 64 * fast; i < n; i++ {
		if set.Has(text[i]) {
			found[i/64] |= 1 << (i % 64)
		}
	}
}
