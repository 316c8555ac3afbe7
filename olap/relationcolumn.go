package olap

import (
	"math"

	"pgaccel/colstore"
	"pgaccel/compress"
	"pgaccel/vector"
)

// relationColumn is a column that is gathered from what blocks computed.
type relationColumn struct {
	t     vector.Type
	v     []int64
	nulls []uint8      // nil: none
	dict  *dict        // of the one dictionary that all strings are of, or of codes
	codes *stringTable // of strings of the column's own; nil: none
	// decimals and their codes, of a numeric of varying scale.
	decimals     []vector.Decimal
	decimalCodes *wordTable
	held         int64 // bytes of strings, decimals and their codes, about
	window       bool  // it is computed over the others
}

// varying reports whether the values are numerics of varying scale.
func (c *relationColumn) varying() bool {
	return c.t.Varying()
}

// result is the column as one of a result.
func (c *relationColumn) result() rcol { return rcol{t: c.t, v: c.v, nulls: c.nulls, dict: c.dict} }

// add appends the n rows of a result's column, those that rows names, or all where it is nil. Codes
// are taken as they are as long as all results have them of one dictionary; only says that there is
// one result.
func (c *relationColumn) add(x *execution, r *rcol, rows []uint32, n int, only bool) error {
	from := len(c.v)
	if r.nulls != nil || c.nulls != nil {
		if c.nulls == nil {
			c.nulls = make([]uint8, from, from+n)
		}
		if r.nulls == nil {
			c.nulls = append(c.nulls, make([]uint8, n)...)
		}
	}
	if rows == nil && r.nulls != nil {
		c.nulls = append(c.nulls, r.nulls[:n]...)
	}
	for _, i := range rows {
		if r.nulls != nil {
			c.nulls = append(c.nulls, r.nulls[i])
		}
	}
	taken := c.takesCodes(r, only)
	words := r.dec == nil && r.str == nil && (r.dict == nil || taken) && (c.t.Kind != vector.Numeric || !c.varying() && r.t.Scale == c.t.Scale)
	if c.t.Kind.IsString() {
		if !taken {
			c.ownCodes()
		} else if c.dict == nil || c.dict.n < r.dict.n { // a dictionary grows while it is read
			c.dict = r.dict
		}
	}
	if words && rows == nil && from == 0 {
		c.v = r.v[:n:n]
		return nil
	}
	c.v = append(c.v, make([]int64, n)...)
	out := c.v[from:]
	at := func(k int) uint32 {
		if rows != nil {
			return rows[k]
		}
		return uint32(k)
	}
	if words || !c.t.Kind.IsString() && !c.varying() {
		return x.eachChunk(n, func(_, from, to int) error {
			for k := from; k < to; k++ {
				i := at(k)
				if words {
					out[k] = r.v[i]
				} else if !r.null(i) {
					w, ok := r.at(i).Word(c.t)
					if !ok {
						return errNumeric
					}
					out[k] = w
				}
			}
			return nil
		})
	}
	c.encode(out, r, at)
	if c.codes != nil {
		c.dict = listDict(c.codes.list, c.t)
	}
	if c.varying() {
		c.dict = decimalDict(c.decimals, c.t)
	}
	return nil
}

// takesCodes reports whether the codes of a result's text can be the column's.
func (c *relationColumn) takesCodes(r *rcol, only bool) bool {
	if only || r.dict == nil || c.codes != nil || !c.t.Kind.IsString() {
		return only && r.dict != nil
	}
	padded := r.dict.t.Kind == vector.BPChar
	return padded == (c.t.Kind == vector.BPChar) && r.dict.src != nil && (c.dict == nil || c.dict.src == r.dict.src && c.dict.own == r.dict.own)
}

// ownCodes gives the strings codes of a list of the column's own.
func (c *relationColumn) ownCodes() {
	if c.codes != nil {
		return
	}
	c.codes = &stringTable{kind: c.t.Kind}
	if c.dict != nil {
		was := c.result()
		c.v = make([]int64, len(was.v))
		c.encode(c.v, &was, func(k int) uint32 { return uint32(k) })
	}
}

// encode writes the codes that the rows at(0), at(1), ... of a result's column have in the column's
// own list.
func (c *relationColumn) encode(out []int64, r *rcol, at func(k int) uint32) {
	code := func(v vector.Value) int64 {
		if c.t.Kind.IsString() {
			return c.code(v.Str)
		}
		return c.decimalCode(v.Num)
	}
	if r.dict != nil && r.dict.n <= max(writtenCodes, 2*len(out)) { // each of its codes is looked up once
		codes := make([]int64, r.dict.n) // and one more; 0: not yet
		for k := range out {
			i := at(k)
			if r.null(i) {
				continue
			}
			to := &codes[r.v[i]]
			if *to == 0 {
				*to = code(r.at(i)) + 1
			}
			out[k] = *to - 1
		}
	} else {
		for k := range out {
			if i := at(k); !r.null(i) {
				out[k] = code(r.at(i))
			}
		}
	}
}

// decimalCode returns the code of a numeric in the column's own list.
func (c *relationColumn) decimalCode(d vector.Decimal) int64 {
	if c.decimalCodes == nil {
		c.decimalCodes = newWordTable(3, 0)
	}
	k, isNew := c.decimalCodes.insert([]uint64{uint64(d.Unscaled.Hi), d.Unscaled.Lo, uint64(d.Scale)})
	if isNew {
		c.decimals = append(c.decimals, d)
		c.held += listedBytes
	}
	return int64(k)
}

// listedBytes is about what a value of a list takes beside its text: its place there, and in the map
// of codes.
const listedBytes = 96

// code returns the code of a string in the column's own list.
func (c *relationColumn) code(s string) int64 {
	k, isNew := c.codes.code(s)
	if isNew {
		c.held += int64(2*len(s)) + listedBytes
	}
	return k
}

// segment is the column's part in a segment of n rows.
func (c *relationColumn) segment(from, n int) colstore.Column {
	v := c.v[from : from+n : from+n]
	out := colstore.Column{ID: colstore.NewID(), Data: compress.Plain(v), Min: math.MaxInt64, Max: math.MinInt64}
	if c.nulls != nil {
		nulls := c.nulls[from : from+n]
		for i, b := range nulls {
			if b == 0 {
				continue
			}
			if out.Nulls == nil {
				out.Nulls = make([]uint64, (n+63)/64)
			}
			out.Nulls[i>>6] |= 1 << (uint(i) & 63)
			out.NullCount++
		}
	}
	float := c.t.Kind.IsFloat()
	for i, x := range v {
		if out.NullCount > 0 && c.nulls[from+i] != 0 {
			continue
		}
		if float {
			x = vector.FloatKey(x)
		}
		out.Min, out.Max = min(out.Min, x), max(out.Max, x)
	}
	return out
}
