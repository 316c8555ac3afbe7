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

var dateType = word(vector.Date, BinaryInt4,
	func(s string) (int64, bool) {
		m, ok := ParseMoment(s)
		if !ok {
			return 0, false
		}
		return m.Date()
	},
	func(v int64) bool {
		return v == DateNegInfinity || v == DateInfinity || v >= dateFirst && v < dateEnd
	})

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
