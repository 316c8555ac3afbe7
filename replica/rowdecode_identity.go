package replica

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"

	"pgaccel/catalog"
)

// hashedIdentity returns the columns of t's replica identity that are not copied, in
// the order in which they are hashed. The COPY selects them after the copied ones.
func hashedIdentity(t *catalog.Table) []int {
	var cols []int
	for _, c := range t.Identity {
		if !isCopied(&t.Columns[c]) {
			cols = append(cols, c)
		}
	}
	return cols
}

// hashKey keys the hash of identity columns. It is drawn for each Replicator, so
// that nobody who writes to a table can look for two keys of one hash beforehand;
// what is kept beyond the process must keep it too.
type hashKey [2]uint64

func newHashKey() (k hashKey) {
	var b [16]byte
	rand.Read(b[:]) // never fails
	k[0], k[1] = binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	return k
}

// identityHash hashes the values of a row's identity columns that are not copied, in
// the server's binary form, to 128 bits: the copy and the stream come to the same.
type identityHash struct {
	key hashKey
	b   []byte // for each value: 0 for null, or 1 | uint32 length | bytes
}

func (h *identityHash) reset() { h.b = h.b[:0] }

func (h *identityHash) null() { h.b = append(h.b, 0) }

func (h *identityHash) value(v []byte) {
	h.b = binary.LittleEndian.AppendUint32(append(h.b, 1), uint32(len(v)))
	h.b = append(h.b, v...)
}

// sum returns the hash and makes h ready for the next row.
func (h *identityHash) sum() [2]uint64 {
	sum := sipHash(h.key, h.b)
	h.reset()
	return sum
}

// sipHash is SipHash-2-4 with 128 bits of output (Aumasson and Bernstein,
// https://github.com/veorq/SipHash).
func sipHash(key hashKey, b []byte) [2]uint64 {
	v0 := key[0] ^ 0x736f6d6570736575
	v1 := key[1] ^ 0x646f72616e646f6d ^ 0xee
	v2 := key[0] ^ 0x6c7967656e657261
	v3 := key[1] ^ 0x7465646279746573
	round := func() {
		v0 += v1
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v3
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v0 += v3
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 += v1
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v2 = bits.RotateLeft64(v2, 32)
	}
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		m := binary.LittleEndian.Uint64(b)
		v3 ^= m
		round()
		round()
		v0 ^= m
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	v3 ^= last
	round()
	round()
	v0 ^= last
	finish := func() uint64 {
		for range 4 {
			round()
		}
		return v0 ^ v1 ^ v2 ^ v3
	}
	v2 ^= 0xee
	lo := finish()
	v1 ^= 0xdd
	return [2]uint64{lo, finish()}
}
