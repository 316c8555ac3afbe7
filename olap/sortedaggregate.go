package olap

import (
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// maxConcat bounds the text or the array of a partition; the server's own limit is 1 GB.
const maxConcat = 256 << 20

// overSorted gives all rows of a partition the value of an aggregate over sorted rows. Peers are known
// to have the same argument.
func (a *windowAggregate) overSorted(part *windowPart) error {
	rows := part.rows
	first, err := rows[0], error(nil)
	null := false
	switch a.p.Agg.State {
	case sqlfn.AggregateMode:
		null = !a.mode(first, part)
	case sqlfn.AggregateArray:
		null, err = a.array(first, rows)
	default:
		null, err = a.concat(first, rows)
	}
	for _, r := range rows {
		if a.out.v[r] = a.out.v[first]; null {
			a.out.setNull(r)
		}
	}
	return err
}

// bufferMemory takes memory for a text or an array as it grows: for the buffer that it is in, those that it has outgrown, which
// wait for the garbage collector, and the string that is made of it.
type bufferMemory struct {
	x     *execution
	taken int64
}

const (
	bufferFactor = 3
	bufferLeast  = 64 << 10 // what is shorter is not worth a look
)

// grow is called as there are n bytes.
func (g *bufferMemory) grow(n int) error {
	need := bufferFactor * int64(n)
	if n < bufferLeast || need <= g.taken {
		return nil
	}
	need += need / 4
	if err := g.x.take(need - g.taken); err != nil {
		return err
	}
	g.taken = need
	return nil
}

// release gives it back.
func (g *bufferMemory) release() { g.x.give(g.taken) }

// concat gives a row the texts of rows, each that DISTINCT leaves.
func (a *windowAggregate) concat(to uint32, rows []uint32) (null bool, err error) {
	memory := bufferMemory{x: a.w.x}
	defer memory.release()
	var text []byte
	some, last := false, int64(0)
	for _, r := range rows {
		if !a.counts(r) || a.p.Distinct && some && a.arg.v[r] == last {
			continue
		}
		if some {
			text = append(text, a.p.Delimiter...)
		}
		text = append(text, a.arg.dict.value(a.arg.v[r]).Str...)
		some, last = true, a.arg.v[r]
		if len(text) > maxConcat {
			return false, forward(plan.ReasonMemory, "text of an aggregate")
		}
		if err := memory.grow(len(text)); err != nil {
			return false, err
		}
	}
	if !some {
		return true, nil
	}
	before := a.out.held
	a.out.v[to] = a.out.code(string(text))
	return false, a.w.x.take(a.out.held - before)
}

// array gives a row the array of what rows have, nulls included, each that DISTINCT leaves.
func (a *windowAggregate) array(to uint32, rows []uint32) (null bool, err error) {
	memory := bufferMemory{x: a.w.x}
	defer memory.release()
	list := sqltype.NewArray(a.arg.t)
	last := uint32(0)
	for _, r := range rows {
		if !a.passes(r) || a.p.Distinct && list.Len() > 0 && a.arg.allEqual([]uint32{last, r}) {
			continue
		}
		last = r
		v := vector.NullValue
		switch {
		case a.arg.null(r):
		case a.arg.dict != nil:
			v = a.arg.dict.value(a.arg.v[r])
		default:
			v = vector.WordValue(a.arg.v[r], a.arg.t)
		}
		if list.Add(v); list.Size() > maxConcat {
			return false, forward(plan.ReasonMemory, "array of an aggregate")
		}
		if err := memory.grow(list.Size()); err != nil {
			return false, err
		}
	}
	if list.Len() == 0 {
		return true, nil
	}
	before := a.out.held
	a.out.v[to] = a.out.code(list.String())
	return false, a.w.x.take(a.out.held - before)
}

// mode gives a row the value that most rows have: peers have the same, and the first of several stays.
// It returns whether there is one.
func (a *windowAggregate) mode(to uint32, part *windowPart) bool {
	most := 0
	for g := range len(part.starts) - 1 {
		peers, n := part.rows[part.starts[g]:part.starts[g+1]], 0
		for _, r := range peers {
			if a.counts(r) {
				n++
			}
		}
		if n > most {
			most = n
			a.out.copyValue(to, a.arg, peers[0])
		}
	}
	return most > 0
}
