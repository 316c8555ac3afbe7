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

const (
	OIDTimestamp   = 1114
	OIDTimestampTZ = 1184
)

var (
	timestampType = stampType(Type{Kind: vector.Timestamp, Name: "timestamp", OID: OIDTimestamp, Implicit: []vector.Kind{vector.TimestampTZ}, AppendText: isoFormat.AppendTimestamp,
		Samples: []string{"2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "2024-02-29 12:34:56.78", "0001-01-01 00:00:00", "0001-12-31 23:59:59 BC", "0045-02-28 12:00:00.1 BC",
			"10000-01-01 00:00:00", "294276-12-29 00:00:00", "4714-11-26 00:00:00 BC", "infinity", "-infinity"},
		Left: []string{"4714-11-24 00:00:00 BC", "294276-12-31 23:59:59.999999"}})

	// timestampTZType parses only what has a zone: else it is TimeZone's.
	timestampTZType = stampType(Type{Kind: vector.TimestampTZ, Name: "timestamptz", OID: OIDTimestampTZ, Preferred: true, AppendText: isoFormat.AppendTimestampTZ,
		Samples: []string{"2000-01-01 00:00:00+00", "1999-12-31 23:59:59.999999+00", "2024-02-29 12:34:56.78+00", "0001-12-31 23:59:59+00 BC", "10000-01-01 00:00:00+00", "infinity", "-infinity"},
		Left:    []string{"4714-11-24 00:00:00+00 BC", "294276-12-31 23:59:59.999999+00"}})
)

func stampType(t Type) Type {
	t.Category, t.Binary, t.Settings = 'D', BinaryInt8, true
	t.Least, t.Greatest, t.NegInfinity, t.Infinity = TimestampFirst, TimestampLast, TimestampNegInfinity, TimestampInfinity
	zoned := t.Kind == vector.TimestampTZ
	return word(t, func(s string) (int64, bool) {
		m, ok := ParseMoment(s)
		switch {
		case !ok || zoned && !m.Zoned:
			return 0, false
		case zoned:
			return m.TimestampTZ()
		}
		return m.Timestamp()
	})
}

// AppendTimestamp appends the text form of a timestamp.
func (f *DateFormat) AppendTimestamp(dst []byte, micros int64) []byte {
	return f.appendTimestamp(dst, micros, false)
}

// AppendTimestampTZ appends the text form of a timestamptz in f.Zone or f.Rules.
func (f *DateFormat) AppendTimestampTZ(dst []byte, micros int64) []byte {
	return f.appendTimestamp(dst, micros, true)
}

const (
	dayNames   = "SunMonTueWedThuFriSat"
	monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"
)

// appendTimestamp appends the text form of a timestamp, or a timestamptz.
func (f *DateFormat) appendTimestamp(dst []byte, micros int64, zoned bool) []byte {
	switch micros {
	case TimestampNegInfinity:
		return append(dst, "-infinity"...)
	case TimestampInfinity:
		return append(dst, "infinity"...)
	}
	offset := int64(0)
	if zoned && f.Rules != nil {
		offset, _, _ = f.Rules.Offset(micros)
		micros += offset
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
			dst = appendOffset(dst, offset/MicrosPerSecond)
		} else {
			dst = append(append(dst, ' '), f.Zone...)
		}
	}
	if year <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}

// appendOffset appends an offset from UTC in seconds: hours, and minutes and seconds where they are not 0
// (EncodeTimezone in datetime.c).
func appendOffset(dst []byte, seconds int64) []byte {
	sign := byte('+')
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	dst = appendTwoDigits(append(dst, sign), int(seconds/3600))
	if seconds%3600 != 0 {
		dst = appendTwoDigits(append(dst, ':'), int(seconds/60%60))
	}
	if seconds%60 != 0 {
		dst = appendTwoDigits(append(dst, ':'), int(seconds%60))
	}
	return dst
}
