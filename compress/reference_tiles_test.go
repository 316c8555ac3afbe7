package compress

import "math"

// The references of GPU-DFOR, GPU-RFOR and ALP: one value at a time, from
// the drawings in the package comment. They share no code with the fast paths.

// wordPair reads two words, low word first.
func wordPair(words []uint32, at int) int64 {
	return int64(uint64(words[at]) | uint64(words[at+1])<<32)
}

// bitsReference returns width bits from bit at of words on, bit by bit.
func bitsReference(words []uint32, at, width int) (v uint64) {
	for b := range width {
		v |= uint64(words[(at+b)/32]>>((at+b)%32)&1) << b
	}
	return v
}

// deltaReference adds up the deltas before row i in its tile.
func deltaReference(words []uint32, i, refWords int) int64 {
	rows := int(words[1])
	blocks, tiles := (rows+127)/128, (rows+511)/512
	blockStarts := words[8:]
	data := words[8+blocks+1+2*tiles*refWords:]
	one := func(at int) int64 {
		if refWords == 2 {
			return wordPair(data, at)
		}
		return int64(int32(data[at]))
	}
	tile := i / 512
	value := one(int(blockStarts[tile*4]) - refWords)
	for j := tile * 512; j < i; j++ {
		at := int(blockStarts[j/128])
		reference := one(at)
		bitwidthWord := data[at+refWords]
		miniblock := at + refWords + 1
		for range j % 128 / 32 {
			miniblock += int(bitwidthWord & 255)
			bitwidthWord >>= 8
		}
		bitwidth := int(bitwidthWord & 255)
		value += reference + int64(bitsReference(data[miniblock:], j%32*bitwidth, bitwidth))
	}
	return value
}

// runReference walks the runs of row i's block.
func runReference(words []uint32, i, refWords int) int64 {
	rows := int(words[1])
	blocks := (rows + 511) / 512
	valueStarts, lengthStarts := words[8:], words[8+blocks+1:]
	data := words[8+2*(blocks+1):]
	entry := func(at uint32, r, refWords int) int64 {
		block := data[at:]
		count := int(block[0])
		reference := int64(int32(block[1]))
		if refWords == 2 {
			reference = wordPair(block, 1)
		}
		widths := block[1+refWords:]
		at = uint32(1 + refWords + (count+127)/128)
		for m := range r / 32 {
			at += widths[m/4] >> (m % 4 * 8) & 255
		}
		bitwidth := int(widths[r/32/4] >> (r / 32 % 4 * 8) & 255)
		return reference + int64(bitsReference(block[at:], r%32*bitwidth, bitwidth))
	}
	end := int64(0)
	for r := 0; ; r++ {
		if end += entry(lengthStarts[i/512], r, 1); int64(i%512) < end {
			return entry(valueStarts[i/512], r, refWords)
		}
	}
}

// decimalReference is ALP: the exception of row i where there is one, else its
// integer times the vector's powers of ten.
func decimalReference(words []uint32, i int) int64 {
	rows := int(words[1])
	vectors := (rows + 1023) / 1024
	exceptions := int(words[5])
	heads := words[8:]
	positions := words[8+2*vectors+2:]
	values := words[8+2*vectors+2+(exceptions+3)/4*2:]
	for e := heads[2*(i/1024)]; e < heads[2*(i/1024)+2]; e++ {
		if int(positions[e/2]>>(e%2*16)&0xffff) == i%1024 {
			return wordPair(values, 2*int(e))
		}
	}
	powers := heads[2*(i/1024)+1]
	integer := decodeReference(words[words[3]:], i)
	v := float64(integer) * powerOfTen(int(powers>>8&255)) * powerOfTen(-int(powers&255))
	return int64(math.Float64bits(v))
}

// powerOfTen returns the float64 nearest to 10^e.
func powerOfTen(e int) float64 { return math.Pow10(e) }
