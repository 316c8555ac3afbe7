package program

import (
	"math/bits"
	"slices"
)

// The first groups by an accumulator (Sink.Top), so that few of many leave the device. Two kernels more run between
// scan and result: one counts groups by a code of their values, by which they are in order, and a block finds the
// code that the last wanted one has. Groups of other values may have the same code: they stay, too.
//
//	table --rank--> groups by code --bound--> code of the last one that is wanted --collect--> groups

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

// Top returns the groups that q asks for with Sink.Top, of a result that may have more; any other result as it is.
func Top(q *Query, groups *Result) *Result {
	s, n := &q.Sink, len(groups.Numbers)
	if !s.Top || q.Top == 0 || uint64(n) <= q.Top || groups.Fault || groups.Full {
		return groups
	}
	codes := make([]uint32, n)
	for i := range codes {
		v, hi := groups.Rows[i], int64(0)
		if s.TopBy >= 0 {
			a := &groups.Accs[s.TopBy]
			if v, hi = a.V[i], a.V[i]>>63; a.Hi != nil {
				hi = a.Hi[i]
			}
		}
		if codes[i] = topCode(hi, v); s.TopDesc {
			codes[i] = topCodes - 1 - codes[i]
		}
	}
	ascending := slices.Clone(codes)
	slices.Sort(ascending)
	bound := ascending[q.Top-1]
	out := &Result{Accs: make([]Values, len(groups.Accs))}
	for i, c := range codes {
		if c > bound {
			continue
		}
		out.Numbers, out.Rows = append(out.Numbers, groups.Numbers[i]), append(out.Rows, groups.Rows[i])
		if groups.Prefix != nil {
			out.Prefix = append(out.Prefix, groups.Prefix[i])
		}
		for k := range out.Accs {
			to, from := &out.Accs[k], &groups.Accs[k]
			if to.V = append(to.V, from.V[i]); from.Hi != nil {
				to.Hi = append(to.Hi, from.Hi[i])
			}
		}
	}
	return out
}

// topCode emits the code of the group in a slot.
func (g *generator) topCode() string {
	l, code := g.p.places(), ""
	s := &g.p.Sink
	if s.TopBy < 0 || l.accs[s.TopBy].same {
		code = "top_code(0, p.table[slot])"
	} else {
		x := l.accs[s.TopBy]
		value := "*(" + g.word(x.global, "slot") + ")"
		switch s.Accs[s.TopBy].Kind {
		case AccSum128:
			code = "top_code((int64_t)*(" + g.word(x.global+1, "slot") + "), " + value + ")"
		case AccMin:
			code = "top_code((int64_t)(~" + value + " ^ 1ull << 63))"
		case AccMax:
			code = "top_code((int64_t)(" + value + " ^ 1ull << 63))"
		default:
			code = "top_code((int64_t)" + value + ")"
		}
	}
	if s.TopDesc {
		return "(TOP_CODES - 1 - " + code + ")"
	}
	return code
}

// rank emits the kernel that counts groups by code.
func (g *generator) rank() {
	if g.p.Sink.Top {
		g.tally(g.topCode(), "p.codes")
	}
}

// bound emits the kernel of one block that finds the code of the last group that is wanted.
func (g *generator) bound() {
	if g.p.Sink.Top {
		g.line("top_bound(p.codes, p.top, &p.head->bound);")
	}
}
