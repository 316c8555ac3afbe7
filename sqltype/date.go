package sqltype

import (
	"math"

	"pgaccel/vector"
)

// Infinite dates (DATEVAL_NOBEGIN, ... in src/include/utils/date.h), and the range of
// finite ones: 4714-11-24 BC to 5874897-12-31.
const (
	DateNegInfinity = math.MinInt32
	DateInfinity    = math.MaxInt32

	dateFirst = -2451545
	dateEnd   = 2145031949
)

const OIDDate = 1082

var dateType = word(Type{Kind: vector.Date, Name: "date", OID: OIDDate, Category: 'D', Implicit: []vector.Kind{vector.Timestamp, vector.TimestampTZ},
	Binary: BinaryInt4, AppendText: isoFormat.AppendDate, Settings: true,
	Least: dateFirst, Greatest: dateEnd - 1, NegInfinity: DateNegInfinity, Infinity: DateInfinity,
	Samples: []string{"2000-01-01", "1999-12-31", "2000-02-29", "1900-03-01", "0001-01-01", "0001-12-31 BC", "0045-02-28 BC", "4714-11-24 BC", "9999-12-31", "10000-01-01", "294276-12-31",
		"infinity", "-infinity"},
	Left: []string{"5874897-12-31"},
}, parseDate)

func parseDate(s string) (int64, bool) {
	m, ok := ParseMoment(s)
	if !ok {
		return 0, false
	}
	return m.Date()
}

// AppendDate appends the text form of a date.
func (f *DateFormat) AppendDate(dst []byte, days int64) []byte {
	switch days {
	case DateNegInfinity:
		return append(dst, "-infinity"...)
	case DateInfinity:
		return append(dst, "infinity"...)
	}
	year, month, day := Civil(days)
	dst = f.appendDays(dst, year, month, day)
	if year <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}
