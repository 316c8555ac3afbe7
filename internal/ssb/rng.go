package ssb

import "math/bits"

// rng is SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014): one addition and one mix a number, any seed is a good one, and
// seeding costs nothing, which is what one generator a row needs.
type rng struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

// salt picks one of the equally good data sets: of the first 96, the one whose 13
// selectivities at scale factor 1 are closest to the published ones. There dimensions are
// small (80 suppliers a nation), so that an arbitrary one has 0 rows for q3.4 and is off by
// a fifth elsewhere.
const salt = 74

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// rowRand is the generator of one row. The row number is mixed, not used as it is:
// neighbours would walk the same sequence one step apart.
func rowRand(table uint64, row int) rng {
	return rng{mix(mix(salt+table*golden) + uint64(row)*golden)}
}

func (r *rng) next() uint64 {
	r.state += golden
	return mix(r.state)
}

// below returns a number in 0..n-1. The bias of the multiplication is below n / 2^64.
func (r *rng) below(n int) int {
	hi, _ := bits.Mul64(r.next(), uint64(n))
	return int(hi)
}

// between returns a number in lo..hi.
func (r *rng) between(lo, hi int) int { return lo + r.below(hi-lo+1) }
