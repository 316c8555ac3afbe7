package olap

import (
	"pgaccel/compress"
	"pgaccel/gpu/program"
	"pgaccel/plan"
)

// LIKE over a large dictionary is a device's where a pipeline is: it keeps the strings beside the columns, encoded and
// packed as they are, and finds which codes match before it scans. Nothing of that depends on how many rows there are,
// and the processor, which would have to read all strings, reads some, to estimate how many rows pass.

// matchMemory is the part of a device's memory that the strings of one dictionary may take.
const matchMemory = 4

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
	like := newEncodedLike(call, n.dict)
	if like == nil {
		return s, false, nil
	}
	if _, only := like.pattern.Prefix(); only {
		return s, false, nil // a range of codes
	}
	m := like.onDevice()
	limits, there := p.x.opt.Device.Limits()
	if m == nil || !there || int64(len(m.Strings.Data)) > limits.Memory/matchMemory {
		return s, false, nil
	}
	return step{kind: program.StepBits, n: n, match: m, set: compress.Set{Size: int64(n.dict.n)}, share: like.share(), cost: 1.5}, true, nil
}

// onDevice returns the condition as a device has it; nil where it is too large.
func (l *encodedLike) onDevice() *program.Match {
	next, accept := l.matcher.Rows(program.MatchStates)
	if next == nil {
		return nil
	}
	b := l.dict.Blocks()
	m := &program.Match{Strings: program.Strings{ID: b.ID, N: b.Strings, Data: b.Data, Starts: b.Starts}, Next: next,
		RestFirst: b.Strings / program.MatchStrings, Host: l.bits}
	for state, accepts := range accept {
		if accepts != l.not {
			m.Accept[state>>6] |= 1 << (state & 63)
		}
	}
	n := l.dict.Len()
	m.Rest = make([]uint16, (n+program.MatchStrings-1)/program.MatchStrings-m.RestFirst)
	l.dict.EachMatch(int64(b.Strings), int64(n), l.pattern, l.matcher, func(code int64, ok bool) {
		if ok != l.not {
			m.Rest[int(code)/program.MatchStrings-m.RestFirst] |= 1 << (code % program.MatchStrings)
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
