package pushdown

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// constant makes the value of a literal: integers are integer or bigint by size,
// anything longer or with a point is numeric, strings and NULL have no type yet
// (make_const in PostgreSQL's parse_node.c).
func (a *analyzer) constant(c *pg.A_Const) value {
	if c.Isnull {
		return value{null: true}
	}
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		return typed(plan.Const{Datum: vector.Int(vector.Int4, int64(v.Ival.GetIval()))})
	case *pg.A_Const_Fval:
		text := v.Fval.GetFval()
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			k := vector.Int8
			if inRange(n, vector.Int4) {
				k = vector.Int4 // -2147483648
			}
			return typed(plan.Const{Datum: vector.Int(k, n)})
		}
		d, ok := sqltype.ParseNumeric(text)
		if !ok {
			fail(plan.ReasonType, "a numeric constant of this size")
		}
		return typed(numericConst(d))
	case *pg.A_Const_Boolval:
		return typed(boolConst(v.Boolval.GetBoolval()))
	case *pg.A_Const_Sval:
		s := v.Sval.GetSval()
		return value{text: &s}
	case *pg.A_Const_Bsval:
		return typed(bitConst(v.Bsval.GetBsval()))
	}
	fail(plan.ReasonType, "a constant of this form")
	return value{}
}

// bitConst is B'101' or X'1F', whose text begins with b or x.
func bitConst(s string) plan.Const {
	digits := s[1:]
	if s[0] == 'x' {
		b := []byte{}
		for i := range len(digits) {
			n, err := strconv.ParseUint(digits[i:i+1], 16, 8)
			if err != nil {
				fail(plan.ReasonType, "a constant that is no string of bits")
			}
			b = fmt.Appendf(b, "%04b", n)
		}
		digits = string(b)
	}
	d, ok := sqltype.Of(vector.Bit).Parse(digits)
	return orFail(plan.Const{Datum: d}, ok, vector.Bit)
}

func boolConst(b bool) plan.Const {
	n := int64(0)
	if b {
		n = 1
	}
	return plan.Const{Datum: vector.Int(vector.Bool, n)}
}

var nullBool = plan.Const{Datum: vector.Null(vector.TypeOf(vector.Bool))}

// numericConst holds d at its own scale, in 64 bits where it fits.
func numericConst(d vector.Decimal) plan.Const {
	c := vector.Datum{Type: vector.NumericType(d.Scale)}
	if n, ok := d.Unscaled.Int64(); ok {
		c.I = n
	} else {
		c.Num = d
	}
	return plan.Const{Datum: c}
}

// parseLiteral turns the text of a constant into a value of a type, as the type's
// input function does. Only the forms that mean the same under every setting are
// read; anything else is for PostgreSQL.
func (a *analyzer) parseLiteral(s string, t vector.Type) plan.Const {
	k := t.Kind
	if k.IsText() || k == vector.Opaque { // of citext
		return plan.Const{Datum: vector.Datum{Type: t, Str: s}}
	}
	if k == vector.Enum {
		return a.label(s, t)
	}
	if k.IsString() {
		d, ok := sqltype.Of(k).Parse(s)
		zoned := k.IsArray() && k.Element() == vector.TimestampTZ // elements without an offset are of the session's zone
		return orFail(plan.Const{Datum: d}, ok && !zoned, k)
	}
	s = sqltype.TrimSpace(k, s)
	d := vector.Datum{Type: t}
	ok := false
	switch k {
	case vector.Invalid:
	case vector.Numeric:
		var dec vector.Decimal
		dec, ok = sqltype.ParseNumeric(s)
		return orFail(numericConst(dec), ok, k)
	case vector.Float4, vector.Float8:
		d.I, ok = parseFloat(s, k)
	case vector.Date, vector.Timestamp, vector.TimestampTZ:
		var m moment
		if m, ok = parseMoment(s); ok {
			d.I = m.in(k)
		}
	default:
		d.I, ok = sqltype.Of(k).ParseWord(s)
	}
	return orFail(plan.Const{Datum: d}, ok, k)
}

// momentLiteral is parseLiteral of a timestamptz. One without an offset is a time of the session's zone: of
// the one that the server reads the statement in.
func (a *analyzer) momentLiteral(s string, t vector.Type) plan.Expr {
	if m, ok := parseMoment(strings.Trim(s, sqltype.Space)); ok && !m.Zoned {
		if a.unsettled {
			a.sessionZone, a.readsZone = true, true
			return a.call(plan.OpCast, t, a.parseLiteral(s, vector.TypeOf(vector.Timestamp)))
		}
		a.needsUTC, a.settled = true, true
	}
	return a.parseLiteral(s, t)
}

func orFail(c plan.Const, ok bool, k vector.Kind) plan.Const {
	if !ok {
		fail(plan.ReasonType, "a constant of type "+k.String()+" in this form")
	}
	return c
}

// parseFloat reads what is finite: constants are folded without NaN and infinity.
func parseFloat(s string, k vector.Kind) (bits int64, ok bool) {
	bits, ok = sqltype.Of(k).ParseWord(s)
	f := math.Float64frombits(uint64(bits))
	return bits, ok && f-f == 0
}

// floatOf rounds an exact decimal to double precision (size 64) or real (32).
func floatOf(d vector.Decimal, k vector.Kind) (bits int64, ok bool) {
	return parseFloat(d.String(), k)
}

const microsPerDay = sqltype.MicrosPerDay

// moment is a sqltype.Moment of the years that folding knows: it heeds neither infinity
// nor where dates and timestamps end.
type moment struct{ sqltype.Moment }

var firstDay, endDay = sqltype.DayOf(1, 1, 1), sqltype.DayOf(10000, 1, 1)

// parseMoment reads a moment of the years 1 to 9999.
func parseMoment(s string) (m moment, ok bool) {
	parsed, ok := sqltype.ParseMoment(s)
	return moment{parsed}, ok && firstDay <= parsed.Days && parsed.Days < endDay
}

// in returns the value of a type.
func (m moment) in(k vector.Kind) (v int64) {
	switch k {
	case vector.Date:
		v, _ = m.Date()
	case vector.Timestamp:
		v, _ = m.Timestamp()
	case vector.TimestampTZ:
		v, _ = m.TimestampTZ()
	default:
		panic(fmt.Sprintf("BUG: a moment of kind %d (%s)", k, k))
	}
	return v
}
