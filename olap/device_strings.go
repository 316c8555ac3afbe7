package olap

import (
	"math"
	"unicode/utf8"

	"pgaccel/colstore"
	"pgaccel/compress"
	"pgaccel/gpu"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/sqlfn"
)

// LIKE over a large dictionary is a device's where a pipeline is: it keeps the strings beside the columns, encoded and
// packed as they are, and finds which codes match before it scans. Nothing of that depends on how many rows there are,
// and the processor, which would have to read all strings, reads some, to estimate how many rows pass.

const (
	// stringsMemory is the part of a device's memory that the strings of one dictionary may take.
	stringsMemory = 4
	// stringsSince is the part of the strings that may have come since the copy: the processor looks at these.
	stringsSince = 8
)

// matchSample is how many strings tell how many match.
const matchSample = 256

// matchOnDevice returns the step of a condition that a device decides for all strings of a column; ok is false where that is
// something else, or the processor is as quick.
func (p *pipeline) matchOnDevice(e plan.Expr) (s step, ok bool, err error) {
	call, is := e.(*plan.Call)
	if !is || !p.device {
		return s, false, nil
	}
	leaf, one := singleLeaf(e)
	column, is := leaf.(plan.Column)
	if !one || !is {
		return s, false, nil
	}
	n, err := p.c.column(column)
	if err != nil || n.kind != nodeColumn || !p.c.largeDict(n, call.T) {
		return s, false, err
	}
	if n.dict.src == nil || !p.x.keepsStrings(n.dict.src) {
		return s, false, nil
	}
	like := newEncodedLike(call, n.dict)
	if like == nil {
		return s, false, nil
	}
	if _, only := like.pattern.Prefix(); only {
		return s, false, nil // a range of codes
	}
	m := like.onDevice()
	if m == nil {
		return s, false, nil
	}
	return step{kind: program.StepBits, n: n, match: m, set: compress.Set{Size: int64(n.dict.n)}, share: like.share(), cost: 1.5}, true, nil
}

// stringsOf returns the strings of a dictionary that are packed.
func stringsOf(d *colstore.Dict) program.Strings {
	b := d.Blocks()
	return program.Strings{ID: b.ID, N: b.Strings, Data: b.Data, Starts: b.Starts}
}

// keepsStrings reports whether a device is to have the strings of a dictionary.
func (x *execution) keepsStrings(d *colstore.Dict) bool {
	limits, ok := x.opt.Device.Limits()
	return ok && keepsStrings(d, limits)
}

func keepsStrings(d *colstore.Dict, limits gpu.Limits) bool {
	b := d.Blocks()
	return b.Strings > 0 && d.Len()-b.Strings <= b.Strings/stringsSince && int64(len(b.Data)) <= limits.Memory/stringsMemory
}

// onDevice returns the condition as a device has it; nil where it is too large.
func (l *encodedLike) onDevice() *program.Match {
	next, accept := l.matcher.Rows(program.MatchStates)
	if next == nil {
		return nil
	}
	strings := stringsOf(l.dict)
	m := &program.Match{Strings: strings, Next: next, RestFirst: strings.N / program.StringsOfBlock, Host: l.bits}
	for state, accepts := range accept {
		if accepts != l.not {
			m.Accept[state>>6] |= 1 << (state & 63)
		}
	}
	n := l.dict.Len()
	m.Rest = make([]uint16, (n+program.StringsOfBlock-1)/program.StringsOfBlock-m.RestFirst)
	l.dict.EachMatch(int64(strings.N), int64(n), l.pattern, l.matcher, func(code int64, ok bool) {
		if ok != l.not {
			m.Rest[int(code)/program.StringsOfBlock-m.RestFirst] |= 1 << (code % program.StringsOfBlock)
		}
	})
	return m
}

// bits returns a bit for each code that matches.
func (l *encodedLike) bits() []uint64 {
	n := int64(l.dict.Len())
	bits := makeSet(n)
	l.dict.EachMatch(0, n, l.pattern, l.matcher, func(code int64, ok bool) {
		if ok != l.not {
			bits[code>>6] |= 1 << (code & 63)
		}
	})
	return bits
}

// share estimates what part of the strings matches.
func (l *encodedLike) share() float64 {
	var room [256]byte
	n, hits := int64(l.dict.Len()), 0
	some := min(n, matchSample)
	for i := range some {
		if l.pattern.Match(l.dict.AppendBytes(room[:0], i*n/some)) != l.not {
			hits++
		}
	}
	return (float64(hits) + 0.5) / float64(some+1)
}

// lengthOnDevice returns a node that is the length of a column's strings, e, of a large dictionary; nil where e is something
// else. Only queries for groups have it, whose rows a device alone reads.
func (c *compiler) lengthOnDevice(e *plan.Call, leaf plan.Expr, n *node) *node {
	if !c.p.device || !c.p.x.q.Grouped || e.Op != plan.OpFunc || e.Func.Length == sqlfn.NoLength || e.Args[0] != leaf ||
		n.kind != nodeColumn || n.dict.src == nil {
		return nil
	}
	d, characters := n.dict.src, e.Func.Length == sqlfn.Characters
	if !c.p.x.keepsStrings(d) {
		return nil
	}
	most := d.Longest()
	if most > math.MaxInt32 {
		return nil
	}
	l := &program.Lengths{Strings: stringsOf(d), CodeLengths: d.CodeLengths(characters)}
	from := func(first int64, f func(n int32)) {
		d.EachView(first, int64(d.Len()), func(_ int64, s string) {
			if characters {
				f(int32(utf8.RuneCountInString(s)))
			} else {
				f(int32(len(s)))
			}
		})
	}
	l.Host = func() (values []int64) {
		from(0, func(n int32) { values = append(values, int64(n)) })
		return values
	}
	from(int64(l.Strings.N), func(n int32) { l.Rest = append(l.Rest, n) })
	c.deviceTables = true
	return c.add(&node{kind: nodeTable, t: e.T, args: []*node{n}, hi: most, nullable: n.nullable, risky: n.risky,
		tab: &table{TableData: program.TableData{Lengths: l, OnNullNull: true}}})
}
