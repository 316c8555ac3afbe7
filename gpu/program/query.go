package program

import (
	"math"
	"math/bits"

	"pgaccel/compress"
)

// Query is one execution of a Program over the rows of a table, with its data in host
// memory. Reference computes it from here; package gpu brings it to a device.
type Query struct {
	*Program
	Segments []Segment
	// TableID names Segments but for which columns they have: queries with equal TableIDs
	// have as many segments, of the same rows, in the same order and with the same live
	// bitmaps, and a column whose ID is the same in the first segment is the same in all.
	// A new version of a table, and another choice of segments, has a new TableID. With it
	// a query costs O(columns) of the host, not O(segments x columns). 0: none.
	TableID uint64
	// MostRows is the number of rows of the largest segment. 0: who needs it looks at all.
	MostRows int

	Constants []int64
	Ranges    []Range
	Bits      []Bits
	Sets      [][]int64 // ascending
	Tables    []TableData
	Lookups   []LookupData
	Digits    []DigitData
	// Groups is the product of the digits' cardinalities; 0 where it does not fit 64 bits: then there
	// is no place but PlaceHash, with Sink.Prefix. The prefix's product is below 1<<64, and that of
	// the digits behind it at most SuffixMax.
	Groups uint64
	// Counted bounds the numbers of Sink.Counted: with a prefix it is the product of the cardinalities
	// behind it, else the last digit's Stride.
	Counted uint64
	// Top is how many groups are wanted with Sink.Top; 0: all.
	Top uint64
	// TopDigit is the digit of Sink.TopThen. Having are the intervals of Sink.Having: an end at the limit of 64 bits
	// is none.
	TopDigit DigitPlace
	Having   []Range
	// Expect is about the number of groups, for PlaceHash.
	Expect uint64
	// Build is the size of the lookup that SinkBuild makes.
	BuildLo, BuildSize int64
	// Indexed, if not nil, spares the steps some rows. The result is the same without. Not
	// where a step is Risky, nor without a TableID.
	Indexed *Indexed
}

// Segment is a run of rows, at most 65536.
type Segment struct {
	// ID stays with the segment in all versions of its table, whichever columns a query
	// reads, and decides which of several devices keeps it: consecutive numbers spread
	// evenly. 0: its position decides.
	ID   uint64
	Rows int
	// Live has a bit for each row that counts; nil where all do. LiveID names its content:
	// equal IDs, equal bits. 0 for nil.
	Live   []uint64
	LiveID uint64
	// Columns stand for Program.Columns, one by one.
	Columns []SegmentColumn
}

// SegmentColumn is a column of a segment.
type SegmentColumn struct {
	// ID names the content, never again used for another; 0: not to be kept on a device.
	ID    uint64
	Words []uint32 // as package compress encodes; in the shared memory file where it has a place
	Nulls []uint64 // nil where there is none
	// Min and Max bound the values of all rows that are not null.
	Min, Max int64
}

// Range is an inclusive interval; empty where Lo > Hi.
type Range struct{ Lo, Hi int64 }

// Bits is a set of values.
type Bits struct {
	compress.Set
	ID uint64 // as SegmentColumn.ID
	// Match, if not nil, has the device find the bits; Set has none.
	Match *Match
}

// TableData is a Table's content.
type TableData struct {
	Lo     int64
	Values []int64
	// Lengths, if not nil, has the device find Values, which there are none of, nor Nulls and Faults; the Table is not Wide.
	Lengths *Lengths
	Nulls   []uint8 // nil, or 1 where the result is null
	Faults  []uint8 // nil, or 1 where the argument is a fault
	// The result for a null argument.
	OnNull      int64
	OnNullNull  bool
	OnNullFault bool
	ID          uint64
}

// LookupData is a Lookup's content: made by the host, or to be made by a Query.
type LookupData struct {
	Lo, Size int64
	Null     uint32 // Left: the entry of no partner
	Bits     []uint64
	E8       []uint8
	E16      []uint16
	E32      []uint32
	// LookupHash: a power of two of slots; an entry of all ones is a free slot. A key is at
	// HashOf(key) & mask or, one by one, after it.
	HashKeys    []int64
	HashEntries []uint32
	// LookupHash, not Many, in place of these: keys, of which no two are equal, and their entries, nil for their numbers.
	// The device makes the table.
	Keys    []int64
	Entries []uint32
	// Many: the partners of key number n are Partners[First[n]:First[n+1]], entries of the outputs.
	First, Partners []uint32
	Outs            []OutData
	// ID names the content as SegmentColumn.ID does; where Build is not nil it names what
	// the build would give, so that it need not run again.
	ID uint64
	// Build, with SinkBuild, makes the lookup on the device instead.
	Build *Query
}

// OutData is an Out's content.
type OutData struct {
	Values []int64
	Nulls  []uint8 // nil, or 1 for null
}

// DigitData belongs to a Digit.
type DigitData struct {
	Lo     int64
	Stride uint64
}

// DigitPlace is where a digit of a number is: number / Stride % Card.
type DigitPlace struct{ Stride, Card uint64 }

// Result is what a query gives. Slices are the receiver's.
type Result struct {
	// Fault is set where some row was a fault (overflow, division by zero, a duplicate key
	// of a lookup): the rest then means nothing.
	Fault bool
	// Full is set where PlaceHash had no room: the rest then means nothing.
	Full bool

	// SinkGroups: the groups that some row came to, in no order.
	Numbers []uint64 // of the group; with Sink.Prefix, what the digits behind it make
	Prefix  []uint64 // the number that the prefix makes; nil without
	Rows    []int64  // that came
	Accs    []Values // by accumulator

	// SinkBitmap: by segment, a bit for each row that passes; nil where none does.
	Bitmaps [][]uint64

	// SinkBuild (Reference only): the lookup.
	Lookup *LookupData
}

// Values are an accumulator's, by group.
type Values struct {
	V, Hi []int64 // Hi are the upper halves of AccSum128; nil for others
}

// Grow makes room for n groups, to which no row has come.
func (v *Values) Grow(k AccKind, n int) {
	have := len(v.V)
	v.V = append(v.V, make([]int64, n-have)...)
	switch start := int64(math.MaxInt64); k {
	case AccSum128:
		v.Hi = append(v.Hi, make([]int64, n-have)...)
	case AccMax:
		start = math.MinInt64
		fallthrough
	case AccMin:
		for i := range v.V[have:] {
			v.V[have+i] = start
		}
	}
}

// Merge adds group j of other rows to group i.
func (v *Values) Merge(k AccKind, i int, from *Values, j int) {
	switch x := from.V[j]; k {
	case AccSum128:
		v.add128(i, x, from.Hi[j])
	case AccMin:
		v.V[i] = min(v.V[i], x)
	case AccMax:
		v.V[i] = max(v.V[i], x)
	default:
		v.V[i] += x
	}
}

func (v *Values) add128(i int, lo, hi int64) {
	sum, carry := bits.Add64(uint64(v.V[i]), uint64(lo), 0)
	v.V[i] = int64(sum)
	v.Hi[i] += hi + int64(carry)
}

// SuffixMax bounds the numbers that the digits behind a prefix make: beside the number of a slot in
// 64 bits.
const SuffixMax = math.MaxUint64 / hashSlotsMax

// HashOf is the hash of LookupHash and PlaceHash: the finaliser of MurmurHash3 (Appleby).
func HashOf(key uint64) uint64 {
	key ^= key >> 33
	key *= 0xff51afd7ed558ccd
	key ^= key >> 33
	key *= 0xc4ceb9fe1a85ec53
	key ^= key >> 33
	return key
}
