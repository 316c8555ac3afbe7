package compress

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// Sizes in words of what every column has.
const (
	headerWords = 8
	// tailWords of zeros end a bit-packed column, so that readers may load whole
	// vectors past the last value.
	tailWords = 16
	// version and mark fill word 0 above the codec.
	version = 1
	mark    = 0x5047
)

// rowsMax bounds a column so that bit offsets and sizes stay far from overflow.
const rowsMax = 1 << 24

// ErrCorrupt is what Parse fails with; errors.Is finds it.
var ErrCorrupt = errors.New("corrupt column")

func writeHeader(dst []uint32, codec Codec, rows int) {
	clear(dst[:headerWords])
	dst[0] = mark<<16 | version<<8 | uint32(codec)
	dst[1] = uint32(rows)
	dst[2] = uint32(len(dst))
}

// Words returns the column's encoded form, as Parse takes it and as it is stored
// on disk and read by devices: little-endian 32-bit words. It is the column's own
// memory (a copy for Plain's) and must not be written.
func Words(c Column) []uint32 {
	s, ok := c.(stored)
	if !ok {
		panic(fmt.Sprintf("BUG: %T is not a column of this package", c))
	}
	return s.encoded()
}

// stored is what every column of this package is besides a Column.
type stored interface {
	encoded() []uint32 // as Words
}

func (c *forColumn) encoded() []uint32    { return c.words }
func (c *lookupColumn) encoded() []uint32 { return c.words }
func (c *constColumn) encoded() []uint32  { return c.words }

func (c *plainColumn) encoded() []uint32 {
	if c.words == nil {
		return encodePlain(make([]uint32, headerWords+2*len(c.values)), c.values).words
	}
	return c.words
}

// Bytes returns Words as bytes, without a copy.
func Bytes(c Column) []byte {
	w := Words(c)
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 4*len(w))
}

// ParseBytes is Parse of bytes, which must be 8-byte aligned (as mappings are)
// and outlive the column.
func ParseBytes(b []byte) (Column, error) {
	if len(b)%4 != 0 || len(b) < 4*headerWords {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(b))
	}
	return Parse(unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), len(b)/4))
}

// Parse checks an encoded column completely, its codes against its table
// included, and returns it without copying: words must be 8-byte aligned, outlive
// the column and not change. Any other input gives an ErrCorrupt.
func Parse(words []uint32) (Column, error) {
	bad := func(format string, args ...any) (Column, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	}
	if len(words) < headerWords {
		return bad("%d words", len(words))
	}
	if uintptr(unsafe.Pointer(&words[0]))%8 != 0 {
		return bad("not 8-byte aligned")
	}
	if words[0]>>16 != mark {
		return bad("begins with %#x", words[0])
	}
	if v := words[0] >> 8 & 255; v != version {
		return bad("format version %d, this pgaccel reads %d", v, version)
	}
	n := int(words[1])
	if n > rowsMax {
		return bad("%d rows", n)
	}
	if int(words[2]) != len(words) {
		return bad("%d words instead of %d", len(words), words[2])
	}
	value := int64(uint64(words[6]) | uint64(words[7])<<32)
	switch codec := Codec(words[0] & 255); codec {
	case CodecPlain:
		if len(words) != headerWords+2*n {
			return bad("%d words for %d plain rows", len(words), n)
		}
		return &plainColumn{words: words, values: int64s(words[headerWords:])}, nil
	case CodecConstant:
		if len(words) != headerWords {
			return bad("%d words for a constant", len(words))
		}
		return &constColumn{words: words, n: n, v: value}, nil
	case CodecFOR, CodecFOR64:
		return parsed(parseFOR(words, n, codec == CodecFOR64))
	case CodecLookup:
		return parsed(parseLookup(words, n, value))
	case CodecDFOR, CodecDFOR64:
		return parsed(parseDFOR(words, n, codec == CodecDFOR64))
	case CodecRFOR, CodecRFOR64:
		return parsed(parseRFOR(words, n, codec == CodecRFOR64))
	case CodecALP:
		return parsed(parseALP(words, n))
	default:
		return bad("codec %d", codec)
	}
}

// parsed is the column, or no column at all where there is an error.
func parsed[C Column](c C, err error) (Column, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// parseFOR checks that every block lies in data and is as long as its widths say.
func parseFOR(words []uint32, n int, wide bool) (*forColumn, error) {
	nb := (n + blockRows - 1) / blockRows
	if words[3] != blockRows || words[4] != miniCount {
		return nil, fmt.Errorf("%w: blocks of %d values in %d miniblocks", ErrCorrupt, words[3], words[4])
	}
	if len(words) < headerWords+nb+1+tailWords {
		return nil, fmt.Errorf("%w: %d words for %d blocks", ErrCorrupt, len(words), nb)
	}
	c := &forColumn{words: words, n: n, wide: wide,
		starts: words[headerWords : headerWords+nb+1], data: words[headerWords+nb+1:]}
	header, widest := 2, uint32(32)
	if wide {
		header, widest = 3, 64
	}
	at := 0
	for b := range nb {
		if int(c.starts[b]) != at || at+header > len(c.data) {
			return nil, fmt.Errorf("%w: block %d begins at word %d", ErrCorrupt, b, c.starts[b])
		}
		widths := c.data[at+header-1]
		at += header
		for range miniCount {
			if widths&255 > widest {
				return nil, fmt.Errorf("%w: block %d has width %d", ErrCorrupt, b, widths&255)
			}
			at += int(widths & 255)
			widths >>= 8
		}
	}
	if int(c.starts[nb]) != at || at+tailWords != len(c.data) {
		return nil, fmt.Errorf("%w: blocks end at word %d of %d", ErrCorrupt, at, len(c.data))
	}
	for b := range nb {
		if !wide {
			break // a 32-bit reference and offset cannot overflow
		}
		if ref, widths, _ := c.block(b); above(ref, span(widths)) == math.MaxInt64 {
			var block [blockRows]int64
			rows := block[:min(blockRows, n-b*blockRows)]
			c.Decode(rows, b*blockRows)
			if slices.Min(rows) < ref {
				return nil, fmt.Errorf("%w: block %d overflows", ErrCorrupt, b)
			}
		}
	}
	return c, nil
}

func parseLookup(words []uint32, n int, base int64) (*lookupColumn, error) {
	size, per := int(words[5]), words[4]
	if size == 0 || size > lookupValuesMax || per != 1 && per != 2 {
		return nil, fmt.Errorf("%w: table of %d values of %d words", ErrCorrupt, size, per)
	}
	at := headerWords + tableWords(size, per == 2)
	if int(words[3]) != at || len(words) < at+headerWords {
		return nil, fmt.Errorf("%w: codes at word %d of %d", ErrCorrupt, words[3], len(words))
	}
	if inner := words[at:]; inner[0] != words[0]-uint32(CodecLookup)+uint32(CodecFOR) ||
		int(inner[1]) != n || int(inner[2]) != len(inner) {
		return nil, fmt.Errorf("%w: codes begin with %#x", ErrCorrupt, inner[:3])
	}
	codes, err := parseFOR(words[at:], n, false)
	if err != nil {
		return nil, err
	}
	c := &lookupColumn{words: words, codes: codes, base: base}
	if per == 2 {
		c.far = int64s(words[headerWords:at])[:size]
	} else {
		c.near = words[headerWords : headerWords+size]
		if _, carry := bits.Add64(uint64(base)^1<<63, uint64(c.near[size-1]), 0); carry != 0 {
			return nil, fmt.Errorf("%w: table overflows", ErrCorrupt)
		}
	}
	for i := 1; i < size; i++ {
		if c.value(i-1) >= c.value(i) {
			return nil, fmt.Errorf("%w: table not ascending at %d", ErrCorrupt, i)
		}
	}
	for b := range codes.starts[:len(codes.starts)-1] {
		if ref, _, _ := codes.block(b); ref < 0 || ref >= int64(size) {
			return nil, fmt.Errorf("%w: code %d of %d", ErrCorrupt, ref, size)
		}
	}
	var block [blockRows]int64
	for start := 0; start < n; start += blockRows {
		rows := block[:min(blockRows, n-start)]
		codes.Decode(rows, start)
		for _, code := range rows {
			if code < 0 || code >= int64(size) {
				return nil, fmt.Errorf("%w: code %d of %d", ErrCorrupt, code, size)
			}
		}
	}
	return c, nil
}
