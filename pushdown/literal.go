package pushdown

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
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
		d, ok := parseNumeric(text)
		if !ok {
			fail(plan.ReasonType, "a numeric constant of this size")
		}
		return typed(numericConst(d))
	case *pg.A_Const_Boolval:
		return typed(boolConst(v.Boolval.GetBoolval()))
	case *pg.A_Const_Sval:
		s := v.Sval.GetSval()
		return value{text: &s}
	}
	fail(plan.ReasonType, "bit string constant")
	return value{}
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

// decimalOf returns the exact value of a non-null constant of an integer or
// numeric type.
func decimalOf(c plan.Const) vector.Decimal {
	if c.Datum.Type.Kind == vector.Numeric {
		if c.Num != (vector.Decimal{}) {
			return c.Num
		}
		return vector.Decimal{Unscaled: vector.Int128Of(c.I), Scale: c.Datum.Type.Scale}
	}
	return vector.Decimal{Unscaled: vector.Int128Of(c.I)}
}

// parseNumeric reads what numeric_in reads, without NaN, infinities, and the
// spellings that only newer servers know.
func parseNumeric(s string) (vector.Decimal, bool) {
	s = strings.Trim(s, sqlSpace)
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e < -100 || e > 100 {
			return vector.Decimal{}, false
		}
		mantissa, exponent = s[:i], e
	}
	d, ok := vector.ParseDecimal(mantissa)
	if !ok || exponent == 0 {
		return d, ok
	}
	// 1.5e3 is 1500 with scale 0, 1.5e-1 is 0.15 with scale 2.
	scale := int(d.Scale) - exponent
	b := d.Unscaled.Big()
	if scale < 0 {
		b.Mul(b, vector.BigPow10(-scale))
		scale = 0
	}
	u, ok := vector.Int128FromBig(b)
	return vector.Decimal{Unscaled: u, Scale: int16(scale)}, ok
}

// sqlSpace is what the input functions skip at both ends.
const sqlSpace = " \t\n\r\v\f"

// parseLiteral turns the text of a constant into a value of a type, as the type's
// input function does. Only the forms that mean the same under every setting are
// read; anything else is for PostgreSQL.
func (a *analyzer) parseLiteral(s string, t vector.Type) plan.Const {
	d := vector.Datum{Type: t}
	ok := true
	switch k := t.Kind; {
	case k == vector.Bool:
		var b bool
		b, ok = parseBool(s)
		return orFail(boolConst(b), ok, k)
	case k.IsInt():
		var err error
		d.I, err = strconv.ParseInt(strings.Trim(s, sqlSpace), 10, intBits(k))
		ok = err == nil
	case k == vector.Numeric:
		var dec vector.Decimal
		dec, ok = parseNumeric(s)
		return orFail(numericConst(dec), ok, k)
	case k.IsFloat():
		d.I, ok = parseFloat(s, k)
	case k.IsText():
		d.Str = s
	case k == vector.Time:
		d.I, ok = parseTime(strings.Trim(s, sqlSpace))
	case k == vector.Date, k == vector.Timestamp, k == vector.TimestampTZ:
		var m moment
		if m, ok = parseMoment(strings.Trim(s, sqlSpace)); ok {
			d.I = m.in(k)
			if k == vector.TimestampTZ && !m.zoned {
				a.needsUTC = true
			}
		}
	default:
		ok = false
	}
	return orFail(plan.Const{Datum: d}, ok, t.Kind)
}

func orFail(c plan.Const, ok bool, k vector.Kind) plan.Const {
	if !ok {
		fail(plan.ReasonType, "a constant of type "+k.String()+" in this form")
	}
	return c
}

func intBits(k vector.Kind) int {
	switch k {
	case vector.Int2:
		return 16
	case vector.Int4:
		return 32
	}
	return 64
}

func parseBool(s string) (value, ok bool) {
	switch strings.ToLower(strings.Trim(s, sqlSpace)) {
	case "t", "true", "y", "yes", "on", "1":
		return true, true
	case "f", "false", "n", "no", "off", "0":
		return false, true
	}
	return false, false
}

// parseFloat reads plain decimal forms and rounds once, to the type's own
// precision, as strtod and strtof do.
func parseFloat(s string, k vector.Kind) (bits int64, ok bool) {
	s = strings.Trim(s, sqlSpace)
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	size := 64
	if k == vector.Float4 {
		size = 32
	}
	f, err := strconv.ParseFloat(s, size)
	if err != nil || f == 0 && strings.Trim(s, "+-.0eE") != "" {
		return 0, false // out of range, or underflow: an error in PostgreSQL
	}
	return int64(math.Float64bits(f)), true
}

// floatOf rounds an exact decimal to double precision (size 64) or real (32).
func floatOf(d vector.Decimal, k vector.Kind) (bits int64, ok bool) {
	return parseFloat(d.String(), k)
}

// moment is a date with a time of day and perhaps an offset.
type moment struct {
	days   int64 // since 2000-01-01, of the written date
	micros int64 // of the written day
	zoned  bool
	offset int64 // microseconds east of Greenwich
}

const microsPerDay = 86400 * 1000000

func (m moment) in(k vector.Kind) int64 {
	switch k {
	case vector.Date:
		return m.days // date_in drops time and zone
	case vector.Timestamp:
		return m.days*microsPerDay + m.micros // timestamp_in drops the zone
	}
	return m.days*microsPerDay + m.micros - m.offset
}

// parseMoment reads YYYY-MM-DD[(T| )HH:MM[:SS[.ffffff]]][Z|(+|-)hh[:mm]]: the
// forms that no DateStyle changes.
func parseMoment(s string) (m moment, ok bool) {
	if len(s) < 10 || s[4] != '-' || s[7] != '-' {
		return m, false
	}
	year, ok1 := digits(s[:4])
	month, ok2 := digits(s[5:7])
	day, ok3 := digits(s[8:10])
	if !ok1 || !ok2 || !ok3 || year == 0 || month < 1 || month > 12 || day < 1 {
		return m, false
	}
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if date.Day() != day {
		return m, false
	}
	m.days = date.Unix()/86400 - epochDays
	s = s[10:]
	if s == "" {
		return m, true
	}
	if s[0] != 'T' && s[0] != ' ' {
		return m, false
	}
	s = s[1:]
	zone := ""
	if i := strings.IndexAny(s, "Z+-"); i >= 0 {
		s, zone = s[:i], s[i:]
		if zone == "Z" && strings.HasSuffix(s, " ") {
			s = s[:len(s)-1]
		}
	}
	if m.micros, ok = parseTime(s); !ok {
		return m, false
	}
	if zone == "" {
		return m, true
	}
	m.zoned = true
	if zone == "Z" {
		return m, true
	}
	hh, mm := zone[1:], "00"
	if h, rest, found := strings.Cut(hh, ":"); found {
		hh, mm = h, rest
	} else if len(hh) == 4 {
		hh, mm = hh[:2], hh[2:]
	}
	h, ok1 := digits(hh)
	min, ok2 := digits(mm)
	if !ok1 || !ok2 || len(hh) != 2 || len(mm) != 2 || h > 15 || min > 59 {
		return m, false
	}
	m.offset = int64(h*60+min) * 60 * 1000000
	if zone[0] == '-' {
		m.offset = -m.offset
	}
	return m, true
}

var epochDays = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 86400

// parseTime reads HH:MM[:SS[.ffffff]] into microseconds of the day.
func parseTime(s string) (micros int64, ok bool) {
	if len(s) < 5 || s[2] != ':' {
		return 0, false
	}
	h, ok1 := digits(s[:2])
	min, ok2 := digits(s[3:5])
	if !ok1 || !ok2 || h > 23 || min > 59 {
		return 0, false
	}
	micros = int64(h*60+min) * 60 * 1000000
	s = s[5:]
	if s == "" {
		return micros, true
	}
	if len(s) < 3 || s[0] != ':' {
		return 0, false
	}
	sec, ok1 := digits(s[1:3])
	if !ok1 || sec > 59 {
		return 0, false
	}
	micros += int64(sec) * 1000000
	s = s[3:]
	if s == "" {
		return micros, true
	}
	if s[0] != '.' || len(s) == 1 || len(s) > 7 {
		return 0, false
	}
	frac, ok1 := digits(s[1:])
	if !ok1 {
		return 0, false
	}
	return micros + int64(frac)*vector.Pow10(7-len(s)), true
}

// digits reads an unsigned decimal of one to nine digits.
func digits(s string) (n int, ok bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// floorTo returns d as an integer multiple of 10^-scale, rounded down, and whether
// that was exact.
func floorTo(d vector.Decimal, scale int16) (n *big.Int, exact bool) {
	n = d.Unscaled.Big()
	if e := int(scale) - int(d.Scale); e >= 0 {
		return n.Mul(n, vector.BigPow10(e)), true
	} else {
		var r big.Int
		n.DivMod(n, vector.BigPow10(-e), &r) // Euclidean: the remainder is never negative
		return n, r.Sign() == 0
	}
}
