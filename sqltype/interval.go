package sqltype

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"pgaccel/vector"
)

// oidInterval is the type of differences of timestamps.
const oidInterval = 1186

// intervalType has the intervals that are a time in days of 24 hours, as interval_justify_hours (timestamp.c) leaves those
// without months: the differences of timestamps. The others of the server are not read: they would print otherwise than
// an equal one. A column that has one of them is of the opaque type.
var intervalType = func() Type {
	t := word(Type{Kind: vector.Interval, Name: "interval", OID: oidInterval, Category: 'T', Preferred: true,
		Binary: BinaryOther, Size: 16, Word: intervalFromBinary, AppendBinary: appendIntervalBinary, AppendText: AppendInterval,
		Least: -math.MaxInt64, Greatest: math.MaxInt64,
		Samples: []string{"00:00:00", "00:00:00.000001", "-00:00:00.000001", "12:34:56.7", "23:59:59.999999", "-23:59:59.999999", "1 day", "-1 days", "1 day 00:00:01", "-1 days -00:00:01",
			"2 days 03:00:00.5", "-365 days -12:00:00", "106751991 days", "0 days", "3 hours", "90 minutes", "2 weeks", "1 day 2 hours", "5 milliseconds 7 microseconds", "+3 secs"},
		Left: []string{"", "24:00:00", "1 day 24:00:00", "-1 days +00:00:01", "1 day -00:00:01", "1 mon", "1 year", "36 hours", "-1 days 2 hours", "1.5 hours", "12", "12:30.5", "@ 1 day", "P1D", "1-2", "1 2:03:04", "1 day 1 day", "1 hour 2 hours", "1 hour 00:30", "1 millisecond 00:00:01", "1 day-1",
			"106751991 days 04:00:54.775808"},
	}, parseWholeInterval)
	t.Receive = func(raw []byte) (d vector.Datum, ok bool) {
		if len(raw) != t.Size {
			return d, false
		}
		micros, days, months := int64(binary.BigEndian.Uint64(raw)), int64(int32(binary.BigEndian.Uint32(raw[8:]))), int64(int32(binary.BigEndian.Uint32(raw[12:])))
		v, ok := WholeInterval(months, days, micros)
		return vector.Int(vector.Interval, v), ok
	}
	return t
}()

// WholeInterval returns the word of an interval that is one of intervalType's.
func WholeInterval(months, days, micros int64) (v int64, ok bool) {
	if months != 0 || micros <= -MicrosPerDay || micros >= MicrosPerDay || days < 0 && micros > 0 || days > 0 && micros < 0 {
		return 0, false
	}
	p := vector.Mul64(days, MicrosPerDay).Add(vector.Int128Of(micros))
	v, ok = p.Int64()
	return v, ok && v != math.MinInt64
}

// IntervalSpan returns the microseconds by which the server compares an interval (interval_cmp_value): of months of 30 days and
// days of 24 hours.
func IntervalSpan(months, days, micros int64) (v int64, ok bool) {
	p := vector.Mul64(months, 30*MicrosPerDay).Add(vector.Mul64(days, MicrosPerDay)).Add(vector.Int128Of(micros))
	v, ok = p.Int64()
	return v, ok && v != math.MinInt64
}

func parseWholeInterval(s string) (v int64, ok bool) {
	months, days, micros, ok := ParseInterval(s)
	if !ok {
		return 0, false
	}
	return WholeInterval(months, days, micros)
}

// intervalUnit is a unit of an interval. Each field may come once, and those of a time not beside one.
type intervalUnit struct {
	months, days, micros int64
	field                uint
}

const intervalTimes = 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8

// intervalUnits are units by their names. The server takes more.
var intervalUnits = map[string]intervalUnit{
	"year": {12, 0, 0, 1}, "mon": {1, 0, 0, 1 << 1}, "month": {1, 0, 0, 1 << 1}, "week": {0, 7, 0, 1 << 2}, "day": {0, 1, 0, 1 << 3},
	"hour": {0, 0, 3600e6, 1 << 4}, "minute": {0, 0, 60e6, 1 << 5}, "min": {0, 0, 60e6, 1 << 5}, "second": {0, 0, 1e6, 1 << 6}, "sec": {0, 0, 1e6, 1 << 6},
	"millisecond": {0, 0, 1e3, 1 << 7}, "microsecond": {0, 0, 1, 1 << 8},
}

// maxIntervalMicros bounds what one number makes, so that all of them stay within 64 bits.
const maxIntervalMicros = 1_000_000_000_000_000_000

// ParseInterval reads pairs of a whole number and a unit, then a time of day, where they mean the same under every IntervalStyle:
// a sign before the first of several belongs to all of them under one that is not the usual, unless others have one, too.
func ParseInterval(s string) (months, days, micros int64, ok bool) {
	words := strings.Fields(s)
	signed := 0
	for _, w := range words {
		if w[0] == '-' || w[0] == '+' {
			signed++
		}
	}
	parts := (len(words) + 1) / 2
	if parts == 0 || signed == 1 && parts > 1 && words[0][0] == '-' {
		return 0, 0, 0, false
	}
	seen := uint(0)
	for ; len(words) > 1; words = words[2:] {
		n, err := strconv.ParseInt(words[0], 10, 64)
		u, known := unitOfInterval(words[1])
		most := int64(math.MaxInt32)
		if u.micros > 1 {
			most = min(most, maxIntervalMicros/u.micros)
		} else if u.micros == 1 {
			most = maxIntervalMicros
		}
		if err != nil || !known || n > most || n < -most || seen&u.field != 0 {
			return 0, 0, 0, false
		}
		seen |= u.field
		months, days, micros = months+n*u.months, days+n*u.days, micros+n*u.micros
	}
	if len(words) == 1 {
		t, fits := intervalTime(words[0])
		if !fits || seen&intervalTimes != 0 {
			return 0, 0, 0, false
		}
		micros += t
	}
	return months, days, micros, days == int64(int32(days)) && months == int64(int32(months))
}

func unitOfInterval(name string) (u intervalUnit, known bool) {
	name = strings.ToLower(name)
	if u, known = intervalUnits[name]; !known {
		u, known = intervalUnits[strings.TrimSuffix(name, "s")]
	}
	return u, known
}

// intervalTime reads a time with a sign and any number of hours of two to six digits.
func intervalTime(s string) (micros int64, ok bool) {
	sign := int64(1)
	switch {
	case strings.HasPrefix(s, "-"):
		sign, s = -1, s[1:]
	case strings.HasPrefix(s, "+"):
		s = s[1:]
	}
	h, rest, ok := cutDigits(s, 1, 6)
	if !ok {
		return 0, false
	}
	micros, rest, ok = cutTime("00" + rest)
	return sign * (micros + int64(h)*3600*MicrosPerSecond), ok && rest == ""
}

// AppendInterval appends the form of IntervalStyle postgres (EncodeInterval in datetime.c).
func AppendInterval(dst []byte, v int64) []byte {
	days, rest := v/MicrosPerDay, v%MicrosPerDay
	if days != 0 {
		dst = append(strconv.AppendInt(dst, days, 10), " day"...)
		if days != 1 {
			dst = append(dst, 's')
		}
		if rest == 0 {
			return dst
		}
		dst = append(dst, ' ')
	}
	if rest < 0 {
		dst, rest = append(dst, '-'), -rest
	}
	return AppendTime(dst, rest)
}

func intervalFromBinary(raw []byte) int64 {
	return int64(binary.BigEndian.Uint64(raw)) + int64(int32(binary.BigEndian.Uint32(raw[8:])))*MicrosPerDay
}

func appendIntervalBinary(dst []byte, v int64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(v%MicrosPerDay))
	dst = binary.BigEndian.AppendUint32(dst, uint32(int32(v/MicrosPerDay)))
	return binary.BigEndian.AppendUint32(dst, 0)
}

// IntervalFields returns the fields of an interval of the opaque type, whose values are the binary form.
func IntervalFields(raw string) (months, days, micros int64) {
	r := reader{rest: raw}
	micros = r.int64()
	days = int64(r.int32())
	return int64(r.int32()), days, micros
}

// OpaqueInterval returns the interval with these fields. ok is false where they do not fit, or are infinity with 17 and later.
func OpaqueInterval(months, days, micros int64) (raw string, ok bool) {
	if months != int64(int32(months)) || days != int64(int32(days)) {
		return "", false
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(micros))
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(days)), uint32(months))
	r := reader{rest: string(b)}
	validInterval(&r)
	return string(b), !r.short
}

// OpaqueIntervalType is the type of intervals that are not all intervalType's.
var OpaqueIntervalType = vector.OpaqueType(oidInterval)
