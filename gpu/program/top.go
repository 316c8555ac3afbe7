package program

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// The first groups by an accumulator (Sink.Top), so that few of many leave the device. Two kernels more run between
// scan and result: one counts groups by a code of their values, by which they are in order, and a block finds the
// code that the last wanted one has. Groups of other values may have the same code: they stay, too.
//
//	table --rank--> groups by code --bound--> code of the last one that is wanted --collect--> groups
//
// Where many may have the last one's value, such as a count of 1, two kernels do the same for those that have it, by the
// code of a digit of their numbers (Sink.TopThen):
//
//	bound --ties--> groups that tie, by code of the digit --ties_bound--> code of the last of these --collect-->

const (
	// topCodes is how many codes there are: for either sign 128 positions of the highest bit, with the topMantissa
	// bits below it. kernels/groups.cuh has the same.
	topCodes    = 2 << 7 << topMantissa
	topMantissa = 10
)

// topCode is the code of a value of 128 bits: a larger value has no smaller one, and values of up to 11 bits have
// codes of their own.
func topCode(hi, lo int64) uint32 {
	h, l := uint64(hi), uint64(lo)
	if hi < 0 {
		h, l = ^h, ^l
	}
	code := uint32(0)
	if n := bits.Len64(l); h != 0 || n > 0 {
		if h != 0 {
			n = 64 + bits.Len64(h)
		}
		m := l << max(topMantissa+1-n, 0)
		if by := max(n-topMantissa-1, 0); by >= 64 {
			m = h >> (by - 64)
		} else if by > 0 {
			m = l>>by | h<<(64-by)
		}
		code = uint32(n)<<topMantissa | uint32(m)&(1<<topMantissa-1)
	}
	if hi < 0 {
		return topCodes/2 - 1 - code
	}
	return topCodes/2 + code
}

// topExact reports whether groups of a code, which TopDesc may have turned round, are all of one value.
func topExact(code uint32) bool {
	return max(code, topCodes-1-code)-topCodes/2 < (topMantissa+2)<<topMantissa
}

// Wanted returns the groups that q asks for with Sink.Having and Sink.Top, of a result that may have more; any other
// result as it is.
func Wanted(q *Query, groups *Result) *Result {
	if groups.Fault || groups.Full {
		return groups
	}
	if s := &q.Sink; len(s.Having) > 0 {
		groups = groups.pick(func(i int) bool {
			for k, by := range s.Having {
				if !q.Having[k].has(groups.value(by, i)) {
					return false
				}
			}
			return true
		})
	}
	if !q.Sink.Top || q.Top == 0 || uint64(len(groups.Numbers)) <= q.Top {
		return groups
	}
	return first(q, groups)
}

// first is Wanted of Sink.Top.
func first(q *Query, groups *Result) *Result {
	s := &q.Sink
	codes := make([]uint32, len(groups.Numbers))
	for i := range codes {
		if s.TopBy == TopTied {
			codes[i] = topCode(0, 0)
		} else if codes[i] = topCode(groups.value(s.TopBy, i)); s.TopDesc {
			codes[i] = topCodes - 1 - codes[i]
		}
	}
	bound, before := nth(codes, q.Top)
	last := uint32(topCodes)
	ties := make([]uint32, len(codes))
	if s.TopThen != TopAll && topExact(bound) {
		var tied []uint32
		for i := range codes {
			number := groups.Numbers[i]
			if s.TopThen == TopPrefix {
				number = groups.Prefix[i]
			}
			digit := number / q.TopDigit.Stride % q.TopDigit.Card
			if s.TopThenDesc {
				digit = q.TopDigit.Card - 1 - digit
			}
			if ties[i] = tieCode(digit); codes[i] == bound {
				tied = append(tied, ties[i])
			}
		}
		last, _ = nth(tied, q.Top-before)
	}
	return groups.pick(func(i int) bool { return codes[i] < bound || codes[i] == bound && ties[i] <= last })
}

// tieCode is the code of a digit.
func tieCode(digit uint64) uint32 { return topCode(0, int64(digit)) }

// nth returns the n-th code, from 1, in ascending order, and how many are less.
func nth(codes []uint32, n uint64) (code uint32, less uint64) {
	ascending := slices.Clone(codes)
	slices.Sort(ascending)
	at, _ := slices.BinarySearch(ascending, ascending[n-1])
	return ascending[n-1], uint64(at)
}

// value returns the value of an accumulator of group i; of -1 its rows.
func (r *Result) value(by, i int) (hi, lo int64) {
	if by < 0 {
		return 0, r.Rows[i]
	}
	a := &r.Accs[by]
	if a.Hi != nil {
		return a.Hi[i], a.V[i]
	}
	return a.V[i] >> 63, a.V[i]
}

// pick returns the groups for which a function is true.
func (r *Result) pick(wanted func(i int) bool) *Result {
	out := &Result{Accs: make([]Values, len(r.Accs))}
	for i := range r.Numbers {
		if !wanted(i) {
			continue
		}
		out.Numbers, out.Rows = append(out.Numbers, r.Numbers[i]), append(out.Rows, r.Rows[i])
		if r.Prefix != nil {
			out.Prefix = append(out.Prefix, r.Prefix[i])
		}
		for k := range out.Accs {
			to, from := &out.Accs[k], &r.Accs[k]
			if to.V = append(to.V, from.V[i]); from.Hi != nil {
				to.Hi = append(to.Hi, from.Hi[i])
			}
		}
	}
	return out
}

// has reports whether a value of 128 bits is in an interval of Query.Having.
func (r Range) has(hi, lo int64) bool {
	switch {
	case hi == lo>>63:
		return r.Lo <= lo && lo <= r.Hi
	case hi < 0:
		return r.Lo == math.MinInt64
	}
	return r.Hi == math.MaxInt64
}

// groupTable emits where the rows of the groups are that may leave the device, by slot, and how many slots there are.
func (g *generator) groupTable() (rows, slots string) {
	if g.p.Sink.Counted {
		return "p.counts", "p.numbers"
	}
	return "p.table", "p.slots"
}

// value emits what an accumulator of the group in a slot is, -1 for the rows: one argument, or two, the upper half first.
func (g *generator) value(by int) string {
	l := g.p.places()
	if by < 0 || l.accs[by].same {
		rows, _ := g.groupTable()
		return "0, " + rows + "[slot]"
	}
	value := "*(" + g.word(l.accs[by].global, "slot") + ")"
	switch g.p.Sink.Accs[by].Kind {
	case AccSum128:
		return "(int64_t)*(" + g.word(l.accs[by].global+1, "slot") + "), " + value
	case AccMin:
		return "(int64_t)(~" + value + " ^ 1ull << 63)"
	case AccMax:
		return "(int64_t)(" + value + " ^ 1ull << 63)"
	}
	return "(int64_t)" + value
}

// having emits the condition of Sink.Having, "" without one.
func (g *generator) having() string {
	var all []string
	for i, by := range g.p.Sink.Having {
		all = append(all, fmt.Sprintf("within(p.having%d_lo, p.having%[1]d_hi, %[2]s)", i, g.value(by)))
	}
	return strings.Join(all, " && ")
}

// topCode emits the code of the group in a slot.
func (g *generator) topCode() string {
	if g.p.Sink.TopBy == TopTied {
		return "top_code(0)"
	}
	code := "top_code(" + g.value(g.p.Sink.TopBy) + ")"
	if g.p.Sink.TopDesc {
		return "(TOP_CODES - 1 - " + code + ")"
	}
	return code
}

// tieCode emits the code of its digit of Sink.TopThen.
func (g *generator) tieCode() string {
	number := "slot"
	if g.p.Sink.Place == PlaceHash && !g.p.Sink.Counted {
		number = "p.keys[slot]"
	}
	switch s := &g.p.Sink; {
	case s.Counted: // the slot
	case s.TopThen == TopPrefix:
		number = "p.keys[p.slots + (" + number + " & (p.slots - 1))]"
	case s.Prefix > 0:
		number += " / p.slots"
	}
	digit := number + " / p.top_stride % p.top_card"
	if g.p.Sink.TopThenDesc {
		digit = "p.top_card - 1 - " + digit
	}
	return "top_code(0, " + digit + ")"
}

// rank emits the kernel that counts groups by code.
func (g *generator) rank() {
	if g.p.Sink.Top {
		rows, slots := g.groupTable()
		g.tally(rows, slots, g.having(), g.topCode(), "p.codes")
	}
}

// bound emits the kernel of one block that finds the code of the last group that is wanted.
func (g *generator) bound() {
	if g.p.Sink.Top {
		g.line("top_bound(p.codes, p.top, &p.head->bound, &p.head->before);")
	}
}

// ties emits the kernel that counts groups that tie with the last one by the code of their digit.
func (g *generator) ties() {
	if g.p.Sink.TopThen == TopAll {
		return
	}
	g.line("const uint64_t bound = p.head->bound;")
	g.line("if (bound == 0 || !top_exact((uint32_t)(bound - 1)))")
	g.line("\treturn;")
	condition := g.topCode() + " + 1 == bound"
	if having := g.having(); having != "" {
		condition = having + " && " + condition
	}
	rows, slots := g.groupTable()
	g.tally(rows, slots, condition, g.tieCode(), "(p.codes + TOP_CODES)")
}

// tiesBound emits the kernel of one block that finds the code of the last of these.
func (g *generator) tiesBound() {
	if g.p.Sink.TopThen != TopAll {
		g.line("top_bound(p.codes + TOP_CODES, p.top - p.head->before, &p.head->ties, &p.head->before);")
	}
}
