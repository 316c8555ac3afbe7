package program

import "pgaccel/plan"

// Program is a pipeline over the rows of one table: filter, look up, then group, build a
// lookup, or mark rows. It is immutable, and its generated source depends on nothing else.
type Program struct {
	Columns []Column
	Lookups []Lookup
	Tables  []Table
	Nodes   []Node // a node's arguments come before it
	// Steps are applied in order; a row that fails one is not looked at by the next,
	// except that faults (Node.Checked) of Filter steps with Risky set, which come first, are
	// looked for in every live row.
	Steps []Step
	Sink  Sink
}

// Column is a column of the scanned table.
type Column struct {
	Wide     bool // some segment's width is above 32 bits
	Nullable bool // some segment has nulls
}

// Op is what a node does: an operator of package plan, or one of those below. Values are int64;
// a null node's value is unspecified. Integers are computed as plan says, but
//
//   - results of OpAdd, OpSub, OpMul, OpDiv, OpMod and OpAbs that are beyond 64 bits or, where
//     the node is Checked, outside [Min, Max] are faults, where they are not proven not to be;
//     so is a division by 0;
//   - OpIn has one argument, and the members are Query.Sets[Index], ascending;
//   - OpNeg, OpLike, OpCast and OpFunc there are not.
type Op = plan.Op

// Operations that package plan does not have.
const (
	OpConst  Op = 128 + iota // Query.Constants[Index]; always null where the node is Nullable
	OpColumn                 // Columns[Index]
	OpEntry                  // the entry that lookup Index found; of a left join, Query's Null entry where none
	OpOut                    // Query.Lookups[Index].Outs[Out], by entry
	OpTable                  // Query.Tables[Index], by argument; see Table
	// The bits of a float64 as an integer in the order of floats: vector.FloatKey. Where the node is Checked, -0
	// and a NaN that is not vector.NaNBits are faults, whose keys others have, too.
	OpFloatKey
	// The bits of a float64, whose 53 bits of mantissa are shifted left by its biased exponent less
	// Query.Constants[Index]: the result's bits from 63 on, and those below, both with its sign. So
	// sums of doubles are sums of integers. Zero is 0; all else whose exponent is not within 63 of
	// the constant is a fault, as are -0, subnormal numbers, infinities and NaN.
	OpFixedHigh
	OpFixedLow
	OpFloatOf // the bits of the float64 that is nearest to an integer
	// Arithmetic of the bits of float64s, each operation rounded by itself. What PostgreSQL has errors for (overflow,
	// underflow to zero, a zero divisor) is a fault, and so is all else of which an infinity or a NaN comes.
	OpFloatAdd
	OpFloatSub
	OpFloatMul
	OpFloatDiv
	OpShift // the argument / 2^Query.Constants[Index], 0 to 63, rounded down
	OpStep  // the position in Query.Sets[Index] of the last member that is at most the argument; 0 where none is
)

// Node is an operation over earlier nodes.
type Node struct {
	Op         Op
	Args       []int
	Index, Out int
	Nullable   bool // its value can be null
	Wide       bool // its values may need 64 bits; else they are int32
	Checked    bool
	Min, Max   int64 // Checked: the range of the result's type
}

// Table is a function of one value with a small domain, written out: value v of the
// argument is at position v - Query.Tables[i].Lo, which lies inside the table for every
// value that can occur.
type Table struct {
	Nulls  bool // some results are null
	Faults bool // some arguments are faults
	Wide   bool // values need 64 bits
}

// LookupKind says how a lookup is laid out.
type LookupKind uint8

// The layouts. The key's distance from Query.Lookups[i].Lo is the position; keys outside
// [Lo, Lo+Size) have no partner.
const (
	LookupBits LookupKind = iota // one bit: only whether there is a partner
	Lookup8                      // an entry of 8, 16 or 32 bits; all ones: no partner
	Lookup16
	Lookup32
	LookupHash // open addressing: 64-bit keys and 32-bit entries; see HashOf
)

// Lookup finds a joined table's row by a key.
type Lookup struct {
	Kind LookupKind
	Key  int  // node
	Left bool // rows without a partner stay, with entry Query.Lookups[i].Null
	// Many says that a key has several partners: what is found by it is its number, by which
	// Query.Lookups[i].First and Partners have their entries. The StepProbe of the lookup, which there
	// is for a Left one, too, has the row go on once with each of them; what it stands before sees pairs
	// of a row and a partner, which is the entry. There is one such lookup, for SinkGroups.
	Many bool
	Outs []Out
}

// Out is a value that a lookup delivers, by entry.
type Out struct {
	Nullable bool
	Wide     bool
}

// StepKind says how a step decides.
type StepKind uint8

// The kinds of steps.
const (
	StepRange  StepKind = iota // the node's value lies in Query.Ranges[Index] (inclusive); null does not pass
	StepFilter                 // the node is true (not 0, not null)
	StepProbe                  // lookup Index has a partner (a Left one always passes)
	StepBits                   // bit value - Query.Bits[Index].Lo is set; outside, and null, does not pass
)

// Step keeps the rows that pass it.
type Step struct {
	Kind  StepKind
	Node  int
	Index int
	Risky bool
	// Permille is about the share of rows that pass, in thousandths; 0: few. Generate and
	// TuningFor decide by it where to gather rows that are left into full warps. It has few
	// values (eighths, and below these powers of 1/2), lest every constant make another program.
	Permille uint16
}

// many returns the lookup that multiplies rows and how many steps see them as they are, its own
// included; -1 and all where there is none.
func (p *Program) many() (lookup, steps int) {
	for i, s := range p.Steps {
		if s.Kind == StepProbe && within(s.Index, p.Lookups) && p.Lookups[s.Index].Many {
			return s.Index, i + 1
		}
	}
	return -1, len(p.Steps)
}

// SinkKind says what becomes of rows that pass.
type SinkKind uint8

// The kinds of sinks.
const (
	SinkGroups SinkKind = iota // aggregates by group
	SinkBuild                  // a lookup: Kind, Key, Digits make the entry
	SinkBitmap                 // one bit for each row
)

// Place says where groups are kept while a grid runs.
type Place uint8

// The places.
const (
	PlaceSingle Place = iota // one group: registers
	PlaceShared              // dense, a table for each block in shared memory, added to the global one at its end
	PlaceGlobal              // dense, in global memory
	PlaceHash                // open addressing in global memory, for numbers that are not dense
)

// Digit is a part of a group's number: (value - Query.Digits[i].Lo) * Stride, plus 1
// before the product where the node can be null, null being 0.
type Digit struct {
	Node     int
	Nullable bool
}

// AccKind is an accumulator.
type AccKind uint8

// The accumulators. All ignore null arguments but AccRows.
const (
	AccRows   AccKind = iota // rows (that pass Filter)
	AccCount                 // arguments that are not null
	AccSum                   // 64 bits, proven to fit
	AccSum128                // 128 bits: two words, low first
	AccMin                   // math.MaxInt64 where there is none
	AccMax                   // math.MinInt64 where there is none
)

// Words is the number of 64-bit words of an accumulator's result.
func (k AccKind) Words() int {
	if k == AccSum128 {
		return 2
	}
	return 1
}

// Acc is one accumulator. The rows of each group are counted besides.
type Acc struct {
	Kind   AccKind
	Arg    int // node; -1 for AccRows
	Filter int // node, or -1: only rows for which it is true
}

// TopThen says where the digit is by which groups that tie are in order.
type TopThen uint8

const (
	TopAll    TopThen = iota // no digit: all that tie are left
	TopNumber                // Query.TopDigit of Result.Numbers
	TopPrefix                // of Result.Prefix
)

// TopTied is Sink.TopBy where groups are in the order of a digit alone.
const TopTied = -2

// Sink is what becomes of rows that pass.
type Sink struct {
	Kind   SinkKind
	Place  Place
	Digits []Digit
	Accs   []Acc
	// Prefix, of PlaceHash, is how many digits, the first ones, make a number of their own, where
	// 64 bits do not hold that of all: those that come are numbered, and a group's number is made
	// of the other digits and of that. 0: none.
	Prefix int
	// Distinct, of PlaceGlobal and PlaceHash without Accs: only which groups there are is asked
	// for, and Result.Rows are 1.
	Distinct bool
	// Counted, of Distinct groups, asks for how many there are of each number, below Query.Counted, that
	// some of their digits make, Result.Numbers and Rows: those behind the Prefix, or without one all but
	// the last.
	Counted bool
	// Top, of several groups that are not Distinct, or of numbers that are Counted, by their rows alone, has groups left out that are not among the first Query.Top ones
	// by accumulator TopBy, -1 for the rows, TopTied for none, so that all tie: the least first, or with TopDesc the greatest. A few more may be there,
	// and all that tie with the last are (top.go).
	Top, TopDesc bool
	TopBy        int
	// TopThen leaves fewer of those that tie with the last one by a small value (topExact): the first ones by a digit.
	TopThen     TopThen
	TopThenDesc bool
	// Having, of groups that are not Distinct, has those left out of which one of the accumulators, -1 for the rows,
	// is not within Query.Having, one by one.
	Having []int
	// SinkBuild: the layout of the lookup and the node that is its key. A key that comes
	// twice is a fault, but in LookupBits with Repeats, and one that is null is left out. The
	// entry is the number that Digits make; LookupHash cannot be built.
	Build   LookupKind
	Repeats bool
	Key     int
}
