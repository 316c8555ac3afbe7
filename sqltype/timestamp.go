package sqltype

import (
	"math"

	"pgaccel/vector"
)

// Infinite timestamps (DT_NOBEGIN, ... in src/include/datatype/timestamp.h), and the range
// of finite ones: 4714-11-24 00:00:00 BC to 294276-12-31 23:59:59.999999.
const (
	TimestampNegInfinity = math.MinInt64
	TimestampInfinity    = math.MaxInt64

	TimestampFirst = dateFirst * MicrosPerDay
	TimestampLast  = timestampEnd - 1
	timestampEnd   = 106751983 * MicrosPerDay
)

func validTimestamp(v int64) bool {
	return v == TimestampNegInfinity || v == TimestampInfinity || v >= TimestampFirst && v < timestampEnd
}

var (
	timestampType = word(vector.Timestamp, BinaryInt8,
		func(s string) (int64, bool) {
			m, ok := ParseMoment(s)
			if !ok {
				return 0, false
			}
			return m.Timestamp()
		}, validTimestamp)

	// timestampTZType parses only what has a zone: else it is TimeZone's.
	timestampTZType = word(vector.TimestampTZ, BinaryInt8,
		func(s string) (int64, bool) {
			m, ok := ParseMoment(s)
			if !ok || !m.Zoned {
				return 0, false
			}
			return m.TimestampTZ()
		}, validTimestamp)
)

// AppendTimestamp appends the text form of a timestamp.
func (f *DateFormat) AppendTimestamp(dst []byte, micros int64) []byte {
	return f.appendTimestamp(dst, micros, false)
}

// AppendTimestampTZ appends the text form of a timestamptz in f.Zone.
func (f *DateFormat) AppendTimestampTZ(dst []byte, micros int64) []byte {
	return f.appendTimestamp(dst, micros, true)
}

const (
	dayNames   = "SunMonTueWedThuFriSat"
	monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"
)

// appendTimestamp appends the text form of a timestamp, or a timestamptz in a zone that
// is UTC.
func (f *DateFormat) appendTimestamp(dst []byte, micros int64, zoned bool) []byte {
	switch micros {
	case TimestampNegInfinity:
		return append(dst, "-infinity"...)
	case TimestampInfinity:
		return append(dst, "infinity"...)
	}
	days, rest := micros/MicrosPerDay, micros%MicrosPerDay
	if rest < 0 {
		days--
		rest += MicrosPerDay
	}
	year, month, day := Civil(days)
	if f.style == datePostgres {
		weekday := int((days%7 + 7 + 6) % 7) // 2000-01-01 was a Saturday
		dst = append(append(dst, dayNames[3*weekday:3*weekday+3]...), ' ')
		name := monthNames[3*month-3 : 3*month]
		if f.dayFirst {
			dst = append(append(appendTwoDigits(dst, day), ' '), name...)
		} else {
			dst = appendTwoDigits(append(append(dst, name...), ' '), day)
		}
		dst = AppendTime(append(dst, ' '), rest)
		dst = appendYear(append(dst, ' '), year)
	} else {
		dst = f.appendDays(dst, year, month, day)
		dst = AppendTime(append(dst, ' '), rest)
	}
	if zoned {
		if f.style == dateISO {
			dst = append(dst, "+00"...)
		} else {
			dst = append(append(dst, ' '), f.Zone...)
		}
	}
	if year <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}
