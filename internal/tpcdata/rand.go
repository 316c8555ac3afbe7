package tpcdata

import "math/bits"

// Rand is SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014): one addition and one mix a number, any seed is a good one, and
// seeding costs nothing, which is what one generator a row needs.
type Rand struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// RowRand is the generator of one row of a table. salt picks one of equally good data
// sets. The row number is mixed, not used as it is: neighbours would walk the same
// sequence one step apart.
func RowRand(salt, table uint64, row int) Rand {
	return Rand{mix(mix(salt+table*golden) + uint64(row)*golden)}
}

// Next returns 64 random bits.
func (r *Rand) Next() uint64 {
	r.state += golden
	return mix(r.state)
}

// Below returns a number in 0..n-1. The bias of the multiplication is below n / 2^64.
func (r *Rand) Below(n int) int {
	hi, _ := bits.Mul64(r.Next(), uint64(n))
	return int(hi)
}

// Between returns a number in lo..hi.
func (r *Rand) Between(lo, hi int) int { return lo + r.Below(hi-lo+1) }

// Word returns one of the words.
func (r *Rand) Word(words []string) string { return words[r.Below(len(words))] }
