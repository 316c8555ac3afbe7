package compress

// decodeReference returns the value of row i of an encoded column: the paper's
// Algorithm 1 for one thread, line by line, and the other codecs as plainly. It
// shares no code with the fast paths, which the tests compare with it.
func decodeReference(words []uint32, i int) int64 {
	pair := func(at int) int64 { return int64(uint64(words[at]) | uint64(words[at+1])<<32) }
	switch Codec(words[0] & 255) {
	case CodecPlain:
		return pair(8 + 2*i)
	case CodecConstant:
		return pair(6)
	case CodecLookup:
		code := int(decodeReference(words[words[3]:], i))
		if words[4] == 2 {
			return pair(8 + 2*code)
		}
		return pair(6) + int64(words[8+code])
	case CodecFOR64:
		return unpackReference(words, i, 2)
	case CodecDFOR:
		return deltaReference(words, i, 1)
	case CodecDFOR64:
		return deltaReference(words, i, 2)
	case CodecRFOR:
		return runReference(words, i, 1)
	case CodecRFOR64:
		return runReference(words, i, 2)
	case CodecALP:
		return decimalReference(words, i)
	default:
		return unpackReference(words, i, 1)
	}
}

// unpackReference is Algorithm 1 with a reference of refWords words.
func unpackReference(words []uint32, i, refWords int) int64 {
	rows := int(words[1])
	blocks := (rows + 127) / 128
	blockStarts := words[8 : 8+blocks+1]
	data := words[8+blocks+1:]

	dataBlock := data[blockStarts[i/128]:]
	threadID := i % 128
	reference := int64(int32(dataBlock[0]))
	if refWords == 2 {
		reference = int64(uint64(dataBlock[0]) | uint64(dataBlock[1])<<32)
	}
	miniblockID := threadID / 32
	indexIntoMiniblock := threadID & (32 - 1)
	bitwidthWord := dataBlock[refWords]
	miniblockOffset := 0
	for range miniblockID {
		miniblockOffset += int(bitwidthWord & 255)
		bitwidthWord >>= 8
	}
	bitwidth := int(bitwidthWord & 255)
	startBitindex := bitwidth * indexIntoMiniblock
	headerOffset := refWords + 1
	var element uint64 // the paper cuts it out of an 8-byte load; bit by bit is plainer
	for b := range bitwidth {
		at := startBitindex + b
		word := dataBlock[headerOffset+miniblockOffset+at/32]
		element |= uint64(word>>(at%32)&1) << b
	}
	return reference + int64(element)
}
