package oracle

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"pgaccel/plan"
	"pgaccel/vector"
)

const dayMicros = 86400e6

// cast converts a value that is not null.
func cast(v value, from, to vector.Type) (value, error) {
	f, t := from.Kind, to.Kind
	switch {
	case f.IsText() && t.IsText():
		if f == vector.BPChar && t != vector.BPChar {
			v.s = strings.TrimRight(v.s, " ")
		}
		return v, nil
	case f.IsInt() && t.IsText():
		return value{s: strconv.FormatInt(v.i, 10)}, nil
	case f == vector.Bool && t.IsText():
		return value{s: strconv.FormatBool(v.i != 0)}, nil
	case f.IsInt() && t.IsInt(), f == vector.Bool && t == vector.Int4:
		return bounded(big.NewInt(v.i), t)
	case f == vector.Numeric && t.IsInt():
		return bounded(v.rescale(0), t)
	case f.IsInt() && t == vector.Numeric:
		return toNumeric(value{num: big.NewInt(v.i)}, to)
	case f == vector.Numeric && t == vector.Numeric:
		return toNumeric(v, to)
	case f.IsInt() && t == vector.Float8:
		return ofFloat(float64(v.i)), nil
	case f == vector.Numeric && t == vector.Float8:
		x, _ := new(big.Float).SetPrec(400).SetInt(v.num).Float64()
		if v.scale > 0 {
			r := new(big.Rat).SetFrac(v.num, vector.BigPow10(int(v.scale)))
			x, _ = r.Float64()
		}
		return ofFloat(x), nil
	case f.IsFloat() && t == vector.Float8:
		return v, nil
	case f == t:
		return v, nil
	case f == vector.Date && (t == vector.Timestamp || t == vector.TimestampTZ):
		switch v.i {
		case math.MinInt32:
			return value{i: math.MinInt64}, nil
		case math.MaxInt32:
			return value{i: math.MaxInt64}, nil
		}
		return bounded(new(big.Int).Mul(big.NewInt(v.i), big.NewInt(dayMicros)), t)
	case (f == vector.Timestamp || f == vector.TimestampTZ) && (t == vector.Timestamp || t == vector.TimestampTZ):
		return v, nil
	case (f == vector.Timestamp || f == vector.TimestampTZ) && t == vector.Date:
		switch v.i {
		case math.MinInt64:
			return value{i: math.MinInt32}, nil
		case math.MaxInt64:
			return value{i: math.MaxInt32}, nil
		}
		return value{i: floorDiv(v.i, dayMicros)}, nil
	}
	return null, forward(plan.ReasonType, "cast from "+f.String()+" to "+t.String())
}

func toNumeric(v value, to vector.Type) (value, error) {
	r := v
	if to.Scale != vector.VaryingScale {
		r = value{num: v.rescale(to.Scale), scale: to.Scale}
	}
	if to.Typmod >= 4 {
		precision := int(to.Typmod-4) >> 16 & 0xffff
		if new(big.Int).Abs(r.num).Cmp(vector.BigPow10(precision)) >= 0 {
			return null, failed("numeric field overflow")
		}
	}
	if _, ok := vector.Int128FromBig(r.num); !ok {
		return null, failed("numeric beyond 128 bits")
	}
	return r, nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// civil splits a point in time into Go's calendar, which is proleptic Gregorian
// as Postgres', and the microseconds of its day.
func civil(k vector.Kind, i int64) (day time.Time, micros int64) {
	days := i
	if k != vector.Date {
		days = floorDiv(i, dayMicros)
		micros = i - days*dayMicros
	}
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(days)), micros
}

// noYearZero is Postgres' numbering of years: 1 BC is -1.
func noYearZero(y int) int64 {
	if y > 0 {
		return int64(y)
	}
	return int64(y) - 1
}

func extract(c *plan.Call, v value) (value, error) {
	k := c.Args[0].Type().Kind
	if k != vector.Time && infinite(k, v.i) {
		return null, forward(plan.ReasonEvaluation, "field of an infinite date")
	}
	var day time.Time
	var micros int64
	if k == vector.Time {
		micros = v.i
	} else {
		day, micros = civil(k, v.i)
	}
	n, scale := int64(0), int16(0)
	switch c.Field {
	case "year":
		n = noYearZero(day.Year())
	case "quarter":
		n = int64(day.Month()-1)/3 + 1
	case "month":
		n = int64(day.Month())
	case "day":
		n = int64(day.Day())
	case "dow":
		n = int64(day.Weekday())
	case "isodow":
		n = int64(day.Weekday()+6)%7 + 1
	case "doy":
		n = int64(day.YearDay())
	case "week":
		_, w := day.ISOWeek()
		n = int64(w)
	case "isoyear":
		y, _ := day.ISOWeek()
		n = noYearZero(y)
	case "hour":
		n = micros / 3600e6
	case "minute":
		n = micros / 60e6 % 60
	case "second":
		n, scale = micros%60e6, 6
	case "epoch":
		switch k {
		case vector.Date:
			n = v.i*86400 + 946684800
		case vector.Time:
			n, scale = v.i, 6
		default:
			if v.i >= math.MaxInt64-946684800e6 {
				return null, failed("epoch that Postgres computes in doubles")
			}
			n, scale = v.i+946684800e6, 6
		}
	default:
		return null, forward(plan.ReasonFunction, "extract "+c.Field)
	}
	if c.T.Kind == vector.Float8 {
		// Postgres' timestamp_part computes in doubles: a division of micros, and for
		// seconds a sum.
		switch {
		case c.Field == "second":
			return ofFloat(float64(n/1e6) + float64(n%1e6)/1e6), nil
		case scale == 6:
			return ofFloat(float64(n) / 1e6), nil
		}
		return ofFloat(float64(n)), nil
	}
	return numberOf(big.NewInt(n), scale, c.T)
}

func numberOf(n *big.Int, scale int16, t vector.Type) (value, error) {
	v := value{num: n, scale: scale}
	if t.Scale != vector.VaryingScale && t.Scale != scale {
		return null, forward(plan.ReasonFunction, "extract with another scale")
	}
	return v, nil
}

func truncate(c *plan.Call, v value) (value, error) {
	k := c.Args[0].Type().Kind
	if infinite(k, v.i) {
		return null, forward(plan.ReasonEvaluation, "date_trunc of an infinite date")
	}
	day, micros := civil(k, v.i)
	y, m, d := day.Date()
	switch c.Field {
	case "year":
		m, d, micros = 1, 1, 0
	case "quarter":
		m, d, micros = (m-1)/3*3+1, 1, 0
	case "month":
		d, micros = 1, 0
	case "week":
		d, micros = d-int(day.Weekday()+6)%7, 0
	case "day":
		micros = 0
	case "hour":
		micros -= micros % 3600e6
	case "minute":
		micros -= micros % 60e6
	case "second":
		micros -= micros % 1e6
	default:
		return null, forward(plan.ReasonFunction, "date_trunc "+c.Field)
	}
	days := (time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() - 946684800) / 86400
	n := new(big.Int).Mul(big.NewInt(days), big.NewInt(dayMicros))
	return bounded(n.Add(n, big.NewInt(micros)), k)
}
