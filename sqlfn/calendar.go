package sqlfn

import (
	"math"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

const (
	dayMicros    = sqltype.MicrosPerDay
	hourMicros   = 3600 * 1000000
	minuteMicros = 60 * 1000000
	secondMicros = sqltype.MicrosPerSecond
	// unixEpoch is 2000-01-01, the origin of dates, in seconds of Unix time.
	unixEpoch = 946684800
)

// weekday returns 0 for Sunday.
func weekday(day int64) int64 { return ((day+6)%7 + 7) % 7 }

// isoWeek returns the ISO 8601 year and week: those of the week's Thursday.
func isoWeek(day int64) (year, week int64) {
	thursday := day - (weekday(day)+6)%7 + 3
	year, _, _ = sqltype.Civil(thursday)
	return year, (thursday-sqltype.DayOf(year, 1, 1))/7 + 1
}

// yearNumber is Postgres' numbering without a year 0: 1 BC is -1.
func yearNumber(y int64) int64 {
	if y > 0 {
		return y
	}
	return y - 1
}

// extractScale returns the scale of extract(field from kind) in PostgreSQL 14 and later.
func extractScale(field string, k vector.Kind) int16 {
	switch field {
	case "second":
		return 6
	case "milliseconds":
		return 3
	case "epoch":
		if k != vector.Date {
			return 6
		}
	}
	return 0
}

// extract returns the field of v (kind k), unscaled at extractScale.
func extract(field string, k vector.Kind, v int64) (int64, error) {
	if first, last := finite(k); v < first || v > last {
		return 0, failed("field of an infinite date")
	}
	day, micros := v, int64(0)
	switch k {
	case vector.Interval:
		return intervalField(field, v/dayMicros, v%dayMicros), nil
	case vector.Timestamp, vector.TimestampTZ:
		day = sqltype.FloorDiv(v, dayMicros)
		micros = v - day*dayMicros
	case vector.Time:
		day, micros = 0, v
	}
	switch field {
	case "hour":
		return micros / hourMicros, nil
	case "minute":
		return micros / minuteMicros % 60, nil
	case "second":
		return micros % minuteMicros, nil
	case "epoch":
		switch k {
		case vector.Date:
			return v*86400 + unixEpoch, nil
		case vector.Time:
			return v, nil
		}
		// From here on Postgres computes in doubles.
		if v >= math.MaxInt64-unixEpoch*secondMicros {
			return 0, failed("epoch that the server computes in double precision")
		}
		return v + unixEpoch*secondMicros, nil
	case "dow":
		return weekday(day), nil
	case "isodow":
		return (weekday(day)+6)%7 + 1, nil
	case "week":
		_, w := isoWeek(day)
		return w, nil
	case "isoyear":
		y, _ := isoWeek(day)
		return yearNumber(y), nil
	}
	y, m, d := sqltype.Civil(day)
	switch field {
	case "year":
		return yearNumber(y), nil
	case "quarter":
		return int64(m-1)/3 + 1, nil
	case "month":
		return int64(m), nil
	case "day":
		return int64(d), nil
	case "doy":
		return day - sqltype.DayOf(y, 1, 1) + 1, nil
	}
	panic("BUG: extract of field " + field)
}

// dateTrunc is date_trunc(field, v) for a timestamp, or a timestamptz in UTC.
func dateTrunc(field string, v int64) (int64, error) {
	if v < sqltype.TimestampFirst || v > sqltype.TimestampLast { // infinite, or a typmod has rounded it up: what is cut off may not suffice
		return 0, failed("timestamp out of range")
	}
	day := sqltype.FloorDiv(v, dayMicros)
	micros := v - day*dayMicros
	switch field {
	case "second":
		return v - micros%secondMicros, nil
	case "minute":
		return v - micros%minuteMicros, nil
	case "hour":
		return v - micros%hourMicros, nil
	case "day":
	case "week":
		day -= (weekday(day) + 6) % 7
	default:
		y, m, _ := sqltype.Civil(day)
		switch field {
		case "month":
		case "quarter":
			m = (m-1)/3*3 + 1
		case "year":
			m = 1
		default:
			panic("BUG: date_trunc to " + field)
		}
		day = sqltype.DayOf(y, m, 1)
	}
	// The first valid timestamp begins a day, so that only whole days can leave the
	// range; then the product may leave 64 bits no sooner.
	if day < -2451545 {
		return 0, failed("timestamp out of range")
	}
	return day * dayMicros, nil
}

// unitOf returns the unit of date_trunc throughout which extract's field stays the same;
// "" for none.
func unitOf(field string) string {
	switch field {
	case "year", "quarter", "month", "week", "day", "hour", "minute":
		return field
	case "dow", "isodow", "doy":
		return "day"
	}
	return ""
}

// unitAround returns the first and the last microsecond of the unit of a finite timestamp.
// Where the unit begins before time does, that is v alone.
func unitAround(unit string, v int64) (lo, hi int64) {
	lo, err := dateTrunc(unit, v)
	if err != nil {
		return v, v
	}
	// The last unit that begins within the range of timestamps ends within 64 bits, and
	// before infinity: that is eight days later.
	switch unit {
	case "second":
		return lo, lo + secondMicros - 1
	case "minute":
		return lo, lo + minuteMicros - 1
	case "hour":
		return lo, lo + hourMicros - 1
	case "day":
		return lo, lo + dayMicros - 1
	case "week":
		return lo, lo + 7*dayMicros - 1
	}
	y, m, _ := sqltype.Civil(sqltype.FloorDiv(lo, dayMicros))
	switch unit {
	case "month":
		m++
	case "quarter":
		m += 3
	default:
		y++
	}
	return lo, sqltype.DayOf(y, m, 1)*dayMicros - 1 // DayOf takes month 13
}

// fieldBounds returns the bounds of a field that comes again and again, or says that the
// field never decreases.
func fieldBounds(field string, k vector.Kind) (lo, hi int64, monotone bool) {
	if k == vector.Interval {
		return intervalBounds(field)
	}
	switch field {
	case "quarter":
		return 1, 4, false
	case "month":
		return 1, 12, false
	case "day":
		return 1, 31, false
	case "dow":
		return 0, 6, false
	case "isodow":
		return 1, 7, false
	case "doy":
		return 1, 366, false
	case "week":
		return 1, 53, false
	case "hour":
		return 0, 24, false // time '24:00' is valid
	case "minute":
		return 0, 59, false
	case "second":
		return 0, minuteMicros - 1, false
	}
	return 0, 0, true
}

func everyUnit(unit string) func(lo, hi int64) int64 {
	return func(int64, int64) int64 { return unitMicros(unit) }
}

// unitMicros returns a time of fixed length of which the unit is a multiple; 0 for none.
func unitMicros(unit string) int64 {
	switch unit {
	case "second":
		return secondMicros
	case "minute":
		return minuteMicros
	case "hour":
		return hourMicros
	case "day", "week", "month", "quarter", "year":
		return dayMicros
	}
	return 0
}
