package olap

import (
	"encoding/binary"
	"errors"

	"pgaccel/plan"
	"pgaccel/vector"
)

// errDamaged says that a temporary file holds something else than was written.
var errDamaged = errors.New("temporary file: damaged")

// appendValue appends a value of a column of results: 0 for null, else 1 and the value as a batch
// has it.
func (c *rcol) appendValue(b []byte, i uint32, t vector.Type, w *worst) []byte {
	if c.null(i) {
		return append(b, 0)
	}
	b = append(b, 1)
	switch {
	case t.Kind.IsString():
		// The length is not known before a dictionary has written the text.
		at := len(b)
		b = append(b, 0, 0, 0, 0)
		if c.str != nil {
			b = append(b, c.str[i]...)
		} else {
			b = c.dict.append(b, c.v[i])
		}
		w.text(b[at+4:])
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	case t.Kind == vector.Numeric:
		d := c.decimal(i)
		b = binary.LittleEndian.AppendUint64(b, uint64(d.Unscaled.Hi))
		b = binary.LittleEndian.AppendUint64(b, d.Unscaled.Lo)
		b = binary.LittleEndian.AppendUint16(b, uint16(d.Scale))
	default:
		w.word(c.v[i])
		b = binary.LittleEndian.AppendUint64(b, uint64(c.v[i]))
	}
	return b
}

// decimal returns a value of a numeric column.
func (c *rcol) decimal(i uint32) vector.Decimal {
	switch {
	case c.dec != nil:
		return c.dec[i]
	case c.dict != nil:
		return c.dict.decimals[c.v[i]]
	}
	return vector.Decimal{Unscaled: vector.Int128Of(c.v[i]), Scale: c.t.Scale}
}

// appendKey appends bytes that memcmp orders as the comparator orders the values, with nulls and the
// direction of o.
func (c *rcol) appendKey(b []byte, i uint32, o plan.Order) ([]byte, error) {
	if c.null(i) {
		if o.NullsFirst {
			return append(b, 0), nil
		}
		return append(b, 2), nil
	}
	b = append(b, 1)
	from := len(b)
	switch {
	case c.str != nil:
		if !c.t.Collation.C {
			return nil, errStays
		}
		s := canonical(c.t.Kind, c.str[i])
		for k := range len(s) {
			// A zero, which text has not, would end it.
			b = append(b, s[k])
		}
		b = append(b, 0)
	case c.t.Kind == vector.Numeric:
		b = appendDecimalKey(b, c.decimal(i))
	case c.dict != nil:
		ranks, err := c.dict.rank(c.t.Collation)
		if err != nil {
			return nil, errStays
		}
		rank := uint32(0)
		if len(ranks) > 0 {
			rank = uint32(ranks[c.v[i]])
		}
		b = binary.BigEndian.AppendUint32(b, rank)
	default:
		v := c.v[i]
		if c.t.Kind.IsFloat() {
			v = vector.FloatKey(v)
		}
		b = binary.BigEndian.AppendUint64(b, uint64(v)^1<<63)
	}
	if o.Desc {
		for k := range b[from:] {
			b[from+k] = ^b[from+k]
		}
	}
	return b, nil
}

// appendDecimalKey appends a sign, the decimal exponent and the digits, without zeros at their end:
// numbers that are equal have one form. What is negative is inverted.
func appendDecimalKey(b []byte, d vector.Decimal) []byte {
	sign := d.Unscaled.Sign()
	if b = append(b, byte(1+sign)); sign == 0 {
		return b
	}
	from := len(b)
	var buf [vector.MaxDigits]byte
	digits := d.Unscaled.Digits(&buf)
	b = binary.BigEndian.AppendUint16(b, uint16(len(digits)-int(d.Scale))^1<<15)
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	b = append(append(b, digits...), 0)
	if sign < 0 {
		for k := range b[from:] {
			b[from+k] = ^b[from+k]
		}
	}
	return b
}

// pieceRows and pieceBytes bound what is read into a batch's columns at once.
const (
	pieceRows  = tileRows
	pieceBytes = 64 << 10
)

// pieces reads a result into the columns of a batch.
type pieces struct {
	b    *vector.Batch
	m    *merger
	text [][]byte // by column
	ends [][]int  // of the strings in text
}

// open returns the result as a batch that reads it.
func (s *spiller) open(ordered bool) (*vector.Batch, error) {
	m := s.merger(s.runs, ordered)
	b := &vector.Batch{Rows: s.rows, Columns: make([]vector.Column, len(s.x.q.Output)), Bytes: m.bytes(s.block) + 4*pieceBytes, Close: s.file.Close}
	p := &pieces{b: b, m: m, text: make([][]byte, len(b.Columns)), ends: make([][]int, len(b.Columns))}
	for i, e := range s.x.q.Output {
		b.Columns[i].Type = e.Type()
		b.Worst = append(b.Worst, s.worst[i].column(e.Type()))
	}
	if err := s.x.take(b.Bytes); err != nil {
		return nil, err
	}
	b.Next = p.next
	if b.Rows > 0 {
		return b, p.next()
	}
	return b, nil
}

// next reads the next piece.
func (p *pieces) next() error {
	p.b.First += p.b.Held
	p.b.Held = 0
	for i := range p.b.Columns {
		c := &p.b.Columns[i]
		c.Ints, c.Decimals, c.Strs = c.Ints[:0], c.Decimals[:0], c.Strs[:0]
		clear(c.Nulls)
		p.text[i], p.ends[i] = p.text[i][:0], p.ends[i][:0]
	}
	for size := 0; p.b.Held < pieceRows && size < pieceBytes && p.b.First+p.b.Held < p.b.Rows; p.b.Held++ {
		r, err := p.m.next()
		if err != nil {
			return err
		}
		if r == nil || !p.row(r.values) {
			return errDamaged
		}
		size += len(r.values)
	}
	for i := range p.b.Columns {
		c := &p.b.Columns[i]
		if !c.Type.Kind.IsString() {
			continue
		}
		all, from := string(p.text[i]), 0
		for _, to := range p.ends[i] {
			c.Strs = append(c.Strs, all[from:to])
			from = to
		}
	}
	return nil
}

// row adds a row to the columns. False means that it is damaged.
func (p *pieces) row(b []byte) bool {
	for i := range p.b.Columns {
		c := &p.b.Columns[i]
		if len(b) == 0 {
			return false
		}
		null := b[0] == 0
		if b = b[1:]; null {
			c.SetNull(p.b.Held, pieceRows)
		}
		switch {
		case c.Type.Kind.IsString():
			n := 0
			if !null {
				if len(b) < 4 {
					return false
				}
				n = int(binary.LittleEndian.Uint32(b))
				if b = b[4:]; len(b) < n {
					return false
				}
			}
			p.text[i] = append(p.text[i], b[:n]...)
			p.ends[i] = append(p.ends[i], len(p.text[i]))
			b = b[n:]
		case c.Type.Kind == vector.Numeric:
			var d vector.Decimal
			if !null {
				if len(b) < 18 {
					return false
				}
				d.Unscaled = vector.Int128{Hi: int64(binary.LittleEndian.Uint64(b)), Lo: binary.LittleEndian.Uint64(b[8:])}
				d.Scale = int16(binary.LittleEndian.Uint16(b[16:]))
				b = b[18:]
			}
			c.Decimals = append(c.Decimals, d)
		default:
			v := int64(0)
			if !null {
				if len(b) < 8 {
					return false
				}
				v, b = int64(binary.LittleEndian.Uint64(b)), b[8:]
			}
			c.Ints = append(c.Ints, v)
		}
	}
	return len(b) == 0
}
