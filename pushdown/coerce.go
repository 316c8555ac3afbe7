package pushdown

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// implicit reports whether PostgreSQL casts a to b by itself.
func implicit(a, b vector.Kind) bool {
	return a == b || a != vector.Invalid && slices.Contains(sqltype.Of(a).Implicit, b)
}

// category is pg_type.typcategory of a kind, 'X' of what has no type yet.
func category(k vector.Kind) byte {
	if k == vector.Invalid {
		return 'X'
	}
	return sqltype.Of(k).Category
}

// preferred is pg_type.typispreferred.
func preferred(k vector.Kind) bool { return k != vector.Invalid && sqltype.Of(k).Preferred }

// commonKind is select_common_type: the type of a CASE, COALESCE or IN list; text
// where all are open. ok is false where PostgreSQL finds none.
func commonKind(vals []value) (k vector.Kind, ok bool) {
	for _, v := range vals {
		n := v.kind()
		switch {
		case n == vector.Invalid || n == k:
		case k == vector.Invalid:
			k = n
		case category(n) != category(k):
			return k, false
		case !preferred(k) && implicit(k, n) && !implicit(n, k):
			k = n
		}
	}
	if k == vector.Invalid {
		k = vector.Text
	}
	for _, v := range vals {
		if !v.unknown() && !implicit(v.kind(), k) {
			return k, false
		}
	}
	return k, true
}

// numericScale is the scale of the first numeric among vals, for parameters.
func numericScale(vals []value) int16 {
	for _, v := range vals {
		if v.kind() == vector.Numeric {
			return v.e.Type().Scale
		}
	}
	return 0
}

// toNumeric casts an integer to numeric; numerics stay.
func (a *analyzer) toNumeric(e plan.Expr) plan.Expr {
	if e.Type().Kind.IsInt() {
		return a.cast(e, vector.NumericType(0))
	}
	return e
}

// toScale gives a numeric more decimals. VaryingScale leaves it alone: such values
// carry their own.
func (a *analyzer) toScale(e plan.Expr, scale int16) plan.Expr {
	if e.Type().Scale == scale || scale == vector.VaryingScale {
		return e
	}
	return a.cast(e, vector.NumericType(scale))
}

// cast converts e to t where that is exact or rounds as PostgreSQL does; anything
// else is forwarded. Constants are converted here and now.
func (a *analyzer) cast(e plan.Expr, t vector.Type) plan.Expr {
	from := e.Type()
	if from.Kind.IsMany() && from.Kind == t.Kind && !sameOfMany(from, t) {
		fail(plan.ReasonType, "cast between types, "+from.Kind.String())
	}
	if from.Kind == t.Kind && (t.Kind != vector.Numeric || from.Scale == t.Scale || t.Scale == vector.VaryingScale) {
		return e
	}
	if c, ok := e.(plan.Const); ok {
		if folded, ok := a.castConst(c, t); ok {
			return folded
		}
	}
	if c, ok := e.(*plan.Call); ok && from.Kind == vector.BPChar && from.Typmod < 0 && (c.Op == plan.OpCase || c.Op == plan.OpCoalesce) {
		return a.castArms(c, t)
	}
	switch k := t.Kind; {
	case isCitext(from) && k == vector.Text && t.Typmod < 0:
		return a.citextText(e)
	case from.Kind.IsInt() && k.IsInt():
	case (from.Kind.IsInt() || from.Kind == vector.Numeric) && k == vector.Numeric:
		a.checkRescale(e, t)
		// A cast of a cast of an integer to numeric is one; numeric(p) and smaller integers fail
		// by themselves.
		if c, ok := e.(*plan.Call); ok && c.Op == plan.OpCast && c.Args[0].Type().Kind.IsInt() && from.Kind == vector.Numeric && from.Scale == 0 && from.Typmod < 0 {
			e = c.Args[0]
		}
	case from.Kind == vector.Numeric && k.IsInt(): // rounds half away from zero
	case from.Kind.IsFloat() && k.IsInt(): // rounds half to even
	case from.Kind.IsText() && (sqltype.ReadsText(k) || t.Varying()): // what the text is not read as fails
	case from.Kind == vector.Bit && k == vector.VarBit:
		return a.callOf(sqlfn.BitAsVarBit, []value{typed(e)})
	case from.Kind == vector.VarBit && k == vector.Bit:
		return a.callOf(sqlfn.VarBitAsBit, []value{typed(e)})
	case from.Kind == vector.Bool && k == vector.Int4:
	case (from.Kind.IsInt() || from.Kind == vector.Numeric || from.Kind == vector.Float4) && k == vector.Float8:
	case from.Kind == vector.Date && k == vector.Timestamp, from.Kind == vector.Timestamp && k == vector.Date:
	case from.Kind == vector.TimestampTZ && (k == vector.Date || k == vector.Timestamp),
		k == vector.TimestampTZ && (from.Kind == vector.Date || from.Kind == vector.Timestamp):
		a.sessionZone = true
	case from.Kind.IsText() && (k == vector.Text || k == vector.Varchar):
		t.Collation = from.Collation
	case from.Kind.IsCastToText() && (k == vector.Text || k == vector.Varchar):
		noNumericParam(e) // it would show its decimals
		if from.Kind == vector.Name {
			t.Collation = from.Collation
		}
		a.needsISO = a.needsISO || sqltype.Of(from.Kind).Settings
		a.needsIntervals = a.needsIntervals || from.Kind == vector.Interval
		if from.Kind == vector.TimestampTZ && t.Typmod < 0 {
			a.sessionZone = true
		} else {
			a.needsUTC = a.needsUTC || from.Kind == vector.TimestampTZ
		}
	default:
		if f := castFunction(from.Kind, t.Kind); f != nil {
			return a.callOf(f, []value{typed(e)})
		}
		fail(plan.ReasonType, "cast from "+from.Kind.String()+" to "+t.Kind.String())
	}
	return a.call(plan.OpCast, t, e)
}

// checkRescale forwards casts that could leave 64 bits. Sums over groups have 128.
func (a *analyzer) checkRescale(e plan.Expr, t vector.Type) {
	from := e.Type().Scale
	if e.Type().Kind.IsInt() {
		from = 0
	}
	if from == vector.VaryingScale || t.Scale < from {
		fail(plan.ReasonType, "cast to numeric with fewer decimals")
	}
	if t.Scale == from || overAggregates(e) {
		return
	}
	if digitsOf(e)+int(t.Scale-from) > vector.NumericMaxPrecision {
		fail(plan.ReasonType, "numeric values of two scales with too many digits")
	}
}

func overAggregates(e plan.Expr) (over bool) {
	plan.Walk(e, func(x plan.Expr) bool {
		switch x.(type) {
		case plan.Agg, *groupingCall, *plan.Grouping:
			over = true
		}
		return !over
	})
	return over
}

// digitsOf bounds the decimal digits of an exact value, its scale included.
func digitsOf(e plan.Expr) int {
	if c, ok := e.(*plan.Call); ok && c.Type().Kind == vector.Numeric {
		switch c.Op {
		case plan.OpAdd, plan.OpSub:
			return max(digitsOf(c.Args[0]), digitsOf(c.Args[1])) + 1
		case plan.OpMul:
			return digitsOf(c.Args[0]) + digitsOf(c.Args[1])
		case plan.OpNeg, plan.OpAbs:
			return digitsOf(c.Args[0])
		case plan.OpCast:
			if c.T.Typmod >= 4 { // it fails beyond its precision
				return int(c.T.Typmod-4) >> 16
			}
			if in := c.Args[0].Type(); in.Kind.IsInt() {
				return digitsOf(c.Args[0]) + int(c.T.Scale)
			} else if in.Kind == vector.Numeric && in.Scale >= 0 {
				return digitsOf(c.Args[0]) + int(c.T.Scale-in.Scale)
			}
		case plan.OpFunc:
			if c.Func.Digits > 0 && c.T.Scale >= 0 {
				return c.Func.Digits + int(c.T.Scale)
			}
			if in := c.Args[0].Type().Scale; c.Func.Rounds && in >= 0 && c.T.Scale >= 0 {
				return digitsOf(c.Args[0]) - int(in) + 1 + int(c.T.Scale)
			}
		}
		return vector.NumericMaxPrecision + 1
	}
	switch t := e.Type(); t.Kind {
	case vector.Int2:
		return 5
	case vector.Int4:
		return 10
	case vector.Numeric:
		if c, ok := e.(plan.Const); ok {
			return len(c.Decimal().Unscaled.Big().String())
		}
		if t.Typmod >= 4 {
			return int(t.Typmod-4) >> 16
		}
		return vector.NumericMaxPrecision
	}
	return 19
}

// castConst converts a constant. ok is false where the conversion is not one of
// values known here; errors of range are PostgreSQL's to report.
func (a *analyzer) castConst(c plan.Const, t vector.Type) (plan.Const, bool) {
	if c.Null {
		return plan.Const{Datum: vector.Null(t)}, true
	}
	from, k := c.Datum.Type.Kind, t.Kind
	if isMoment(from) && isMoment(k) && (from == vector.TimestampTZ) != (k == vector.TimestampTZ) {
		if a.unsettled && !a.whole {
			return c, false
		}
		a.needsUTC, a.settled = true, true
	}
	switch {
	case from.IsInt() && k.IsInt():
		return orFail(plan.Const{Datum: vector.Int(k, c.I)}, inRange(c.I, k), k), true
	case from == vector.Int8 && k == vector.OID:
		return orFail(plan.Const{Datum: vector.Int(k, c.I)}, 0 <= c.I && c.I <= math.MaxUint32, k), true
	case from.IsInt() && k == vector.OID: // which takes the bits
		return plan.Const{Datum: vector.Int(k, int64(uint32(c.I)))}, true
	case (from.IsInt() || from == vector.Numeric) && k == vector.Numeric:
		d, ok := c.Decimal().Rescale(t.Scale)
		return numericConst(d), ok
	case (from.IsInt() || from == vector.Numeric) && k.IsFloat():
		bits, ok := floatOf(c.Decimal(), k)
		return orFail(plan.Const{Datum: vector.Datum{Type: t, I: bits}}, ok, k), true
	case from == vector.Float4 && k == vector.Float8:
		return plan.Const{Datum: vector.Datum{Type: t, I: c.I}}, true // held widened already
	case from == vector.Date && (k == vector.Timestamp || k == vector.TimestampTZ):
		return plan.Const{Datum: vector.Datum{Type: t, I: c.I * microsPerDay}}, true
	case (from == vector.Timestamp || from == vector.TimestampTZ) && k == vector.Date:
		days := c.I / microsPerDay
		if c.I%microsPerDay < 0 {
			days--
		}
		return plan.Const{Datum: vector.Datum{Type: t, I: days}}, true
	case from == vector.Timestamp && k == vector.TimestampTZ, from == vector.TimestampTZ && k == vector.Timestamp:
		return plan.Const{Datum: vector.Datum{Type: t, I: c.I}}, true
	case from.IsText() && (k == vector.Text || k == vector.Varchar):
		s := c.Str
		if from == vector.BPChar {
			s = strings.TrimRight(s, " ")
		}
		t.Collation = c.Datum.Type.Collation
		return plan.Const{Datum: vector.Datum{Type: t, Str: s}}, true
	case from == vector.Enum && (k == vector.Text || k == vector.Varchar):
		return plan.Const{Datum: vector.Datum{Type: t, Str: c.Str}}, true
	}
	return c, false
}

// typeNames are the kinds by their names in pg_type.
var typeNames = func() map[string]vector.Kind {
	m := map[string]vector.Kind{}
	for _, k := range vector.Kinds() {
		m[sqltype.Of(k).Name] = k
	}
	return m
}()

// typeCast analyses CAST, :: and typed literals.
func (a *analyzer) typeCast(c *pg.TypeCast, s *scope) plan.Expr {
	names := nameList(c.TypeName.GetNames())
	if len(names) == 2 && names[0] == "pg_catalog" {
		names = names[1:]
	}
	if a.enumNamed(c.TypeName) != nil {
		return a.enumCast(c)
	}
	k := vector.Invalid
	if len(names) == 1 && len(c.TypeName.ArrayBounds) == 0 && !c.TypeName.Setof && !c.TypeName.PctType {
		k = typeNames[names[0]]
	}
	if k == vector.Invalid {
		fail(plan.ReasonType, "type "+strings.Join(names, "."))
	}
	mods := make([]int, len(c.TypeName.Typmods))
	for i, n := range c.TypeName.Typmods {
		v, ok := n.GetAConst().GetVal().(*pg.A_Const_Ival)
		if !ok {
			fail(plan.ReasonType, "type modifier")
		}
		mods[i] = int(v.Ival.GetIval())
	}
	if e, ok := a.intervalCast(c, k); ok {
		return e
	}
	t := vector.TypeOf(k)
	v := a.expr(c.Arg, s)
	open := v.unknown()
	if v.param > 0 && k == vector.Numeric {
		if len(mods) == 0 {
			t.Scale = vector.VaryingScale
		} else {
			fail(plan.ReasonParameter, "cast of a parameter to numeric(p,s)")
		}
	}
	a.callsCast(v, k)
	e := a.resolve(v, t)
	if len(mods) > 0 {
		a.calls("typmod", k)
		return a.castMod(e, t, mods)
	}
	if k == vector.Numeric {
		// Without a modifier numeric takes any value as it is.
		if open {
			return e
		}
		if fk := e.Type().Kind; fk == vector.Numeric {
			return e // only forgets the modifier
		} else if fk.IsText() {
			return a.cast(e, vector.NumericType(vector.VaryingScale))
		} else if !fk.IsInt() {
			return a.cast(e, vector.NumericType(vector.VaryingScale))
		}
		return a.toNumeric(e)
	}
	if k == vector.BPChar && !open {
		fail(plan.ReasonType, "cast to char")
	}
	return a.cast(e, t)
}

// castBits casts to bit(n) or bit varying(n). Integers become as many bits, others are cut, or padded with 0.
func (a *analyzer) castBits(e plan.Expr, k vector.Kind, n int) plan.Expr {
	length := typed(plan.Const{Datum: vector.Int(vector.Int4, int64(n))})
	from := e.Type().Kind
	switch {
	case k == vector.Bit && from.IsInt() && from != vector.Int2:
		return a.callOf(sqlfn.Lookup("bit", from, vector.Int4), []value{typed(e), length})
	case from.IsBits():
		oid := uint32(sqlfn.OIDBitLength)
		if k == vector.VarBit {
			oid = sqlfn.OIDVarBitLength
		}
		return a.callOf(sqlfn.ByOID(oid), []value{typed(e), length, typed(boolConst(true))})
	}
	fail(plan.ReasonType, "cast from "+from.String()+" to "+k.String())
	return nil
}

// castMod casts to a type with a modifier: numeric(p,s), varchar(n), char(n).
func (a *analyzer) castMod(e plan.Expr, t vector.Type, mods []int) plan.Expr {
	if k := e.Type().Kind; t.Kind == vector.Numeric && (k.IsText() || k.IsFloat()) {
		e = a.cast(e, vector.NumericType(vector.VaryingScale)) // and then its scale (coerce_type_typmod)
	}
	if t.Kind.IsBits() && len(mods) == 1 {
		return a.castBits(e, t.Kind, mods[0])
	}
	c, isConst := e.(plan.Const)
	from := e.Type()
	switch t.Kind {
	case vector.Numeric:
		p, sc := mods[0], 0
		if len(mods) > 1 {
			sc = mods[1]
		}
		if p < 1 || p > vector.NumericMaxPrecision || sc < 0 || sc > p || len(mods) > 2 {
			fail(plan.ReasonType, "numeric("+strconv.Itoa(p)+","+strconv.Itoa(sc)+")")
		}
		t.Scale, t.Typmod = int16(sc), int32(p<<16|sc)+4
		switch {
		case isConst && (from.Kind.IsInt() || from.Kind == vector.Numeric):
			if c.Null {
				return plan.Const{Datum: vector.Null(t)}
			}
			d, ok := c.Decimal().Rescale(t.Scale)
			n, fits := d.Unscaled.Int64()
			if !ok || !fits || n >= vector.Pow10(p) || -n >= vector.Pow10(p) {
				fail(plan.ReasonType, "rounding cast of a numeric constant")
			}
			return plan.Const{Datum: vector.Datum{Type: t, I: n}}
		case from.Kind.IsInt() || from.Kind == vector.Numeric:
			// Rounds, and fails where the value has more than p digits.
			return a.call(plan.OpCast, t, e)
		}
		fail(plan.ReasonType, "cast from "+from.Kind.String()+" to numeric")
	case vector.Varchar, vector.BPChar:
		n := mods[0]
		if !isConst || !from.Kind.IsText() || len(mods) != 1 || n < 1 {
			fail(plan.ReasonType, "cast to "+t.Kind.String()+"(n)")
		}
		t.Typmod = int32(n) + 4
		if c.Null {
			return plan.Const{Datum: vector.Null(t)}
		}
		runes := utf8.RuneCountInString(c.Str)
		str := c.Str
		if runes > n {
			str = string([]rune(str)[:n])
		} else if t.Kind == vector.BPChar {
			if n-runes > 1<<16 {
				fail(plan.ReasonType, "cast to char(n)")
			}
			str += strings.Repeat(" ", n-runes)
		}
		return plan.Const{Datum: vector.Datum{Type: t, Str: str}}
	}
	fail(plan.ReasonType, "precision of "+t.Kind.String())
	return nil
}
