package sqltype

import (
	"encoding/binary"
	"math"
	"strconv"

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
			"2 days 03:00:00.5", "-365 days -12:00:00", "106751991 days", "0 days", "3 hours", "90 minutes", "2 weeks", "1 day 2 hours", "5 milliseconds 7 microseconds", "+3 secs", "@ 0", "@ 1 day 2 hours ago", "P1DT2H0M0.5S", "1 2:03:04"},
		Left: []string{"", "24:00:00", "1 day 24:00:00", "-1 days +00:00:01", "1 day -00:00:01", "1 mon", "1 year", "36 hours", "-1 days 2 hours", "1.5 hours", "P1DT2H0.5S ago", "12", "12:30.5", "@ 1 mon", "P1M", "1-2", "1 2:03:04 ago ago", "1 day 1 day", "1 hour 2 hours", "1 hour 00:30", "1 millisecond 00:00:01", "1 day-1",
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

// ParseOpaqueInterval reads what ParseInterval does as a value of the opaque type.
func ParseOpaqueInterval(s string) (d vector.Datum, ok bool) {
	months, days, micros, ok := ParseInterval(s)
	if ok {
		d.Type = OpaqueIntervalType
		d.Str, ok = OpaqueInterval(months, days, micros)
	}
	return d, ok
}

// OpaqueIntervalType is the type of intervals that are not all intervalType's.
var OpaqueIntervalType = vector.OpaqueType(oidInterval)

// IsOpaqueInterval reports whether t is that type.
func IsOpaqueInterval(t vector.Type) bool {
	return t.Kind == vector.Opaque && t.Collation.OID == OpaqueIntervalType.Collation.OID
}
