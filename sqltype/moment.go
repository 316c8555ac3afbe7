package sqltype

import "strings"

// Moment is the text of a date or timestamp taken apart. The types take different parts
// of it.
type Moment struct {
	// Days is the written date, since 2000-01-01: DateNegInfinity or DateInfinity for
	// -infinity and infinity.
	Days   int64
	Micros int64 // of the written day
	Zoned  bool  // an offset is written; infinity needs none
	Offset int64 // microseconds east of Greenwich
}

// ParseMoment reads the forms that mean the same under every DateStyle and TimeZone, but
// for that of a timestamptz which is not Zoned:
//
//	yyyy-mm-dd[(T| )hh:mm[:ss[.ffffff]][[ ]zone]][ BC]
//	yyyy-mm-dd zone[ BC]
//	[-]infinity
//
// where zone is Z or (+|-)hh[:mm[:ss]] or (+|-)hhmm. (JDBC writes one behind a date.)
func ParseMoment(s string) (m Moment, ok bool) {
	switch s {
	case "infinity":
		return Moment{Days: DateInfinity, Zoned: true}, true
	case "-infinity":
		return Moment{Days: DateNegInfinity, Zoned: true}, true
	}
	year, month, day, rest, ok := cutDate(s)
	if !ok {
		return m, false
	}
	if len(rest) > 1 && (rest[0] == ' ' || rest[0] == 'T') && '0' <= rest[1] && rest[1] <= '9' {
		if m.Micros, rest, ok = cutTime(rest[1:]); !ok || m.Micros == MicrosPerDay {
			return m, false
		}
		if offset, r, found := cutZone(strings.TrimPrefix(rest, " ")); found {
			m.Offset, rest, m.Zoned = offset, r, true
		}
	} else if strings.HasPrefix(rest, " ") {
		if offset, r, found := cutZone(rest[1:]); found {
			m.Offset, rest, m.Zoned = offset, r, true
		}
	}
	if rest == " BC" {
		year, rest = 1-year, ""
	}
	if rest != "" || !validDay(year, month, day) {
		return m, false
	}
	m.Days = DayOf(int64(year), month, day)
	return m, true
}

func (m Moment) infinite() bool { return m.Days == DateNegInfinity || m.Days == DateInfinity }

// Date returns the value as a date, which has neither the time nor the zone (date_in).
func (m Moment) Date() (days int64, ok bool) {
	return m.Days, m.infinite() || m.Days >= dateFirst && m.Days < dateEnd
}

// Timestamp returns the value as a timestamp, which has no zone (timestamp_in).
func (m Moment) Timestamp() (micros int64, ok bool) {
	switch {
	case m.Days == DateInfinity:
		return TimestampInfinity, true
	case m.Days == DateNegInfinity:
		return TimestampNegInfinity, true
	}
	// A zone could lead out of the days at the ends.
	if m.Days <= dateFirst+1 || m.Days >= timestampEnd/MicrosPerDay-1 {
		return 0, false
	}
	return m.Days*MicrosPerDay + m.Micros, true
}

// TimestampTZ returns the value as a timestamptz, in UTC where no zone is written.
func (m Moment) TimestampTZ() (micros int64, ok bool) {
	micros, ok = m.Timestamp()
	return micros - m.Offset, ok
}

var monthDays = [...]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// cutDate reads the yyyy-mm-dd that s begins with.
func cutDate(s string) (year, month, day int, rest string, ok bool) {
	if year, rest, ok = cutDigits(s, 4, 6); !ok || year == 0 || !strings.HasPrefix(rest, "-") {
		return 0, 0, 0, s, false
	}
	if month, rest, ok = cutDigits(rest[1:], 1, 2); !ok || month < 1 || month > 12 || !strings.HasPrefix(rest, "-") {
		return 0, 0, 0, s, false
	}
	if day, rest, ok = cutDigits(rest[1:], 1, 2); !ok || day < 1 || day > monthDays[month-1] {
		return 0, 0, 0, s, false
	}
	return year, month, day, rest, true
}

func validDay(year, month, day int) bool {
	return month != 2 || day < 29 || year%4 == 0 && (year%100 != 0 || year%400 == 0)
}

// cutZone reads the zone that s begins with, in microseconds; found is false where there
// is none.
func cutZone(s string) (offset int64, rest string, found bool) {
	if s == "" {
		return 0, s, false
	}
	switch s[0] {
	case 'Z':
		return 0, s[1:], true
	case '+', '-':
	default:
		return 0, s, false
	}
	h, rest, ok := cutDigits(s[1:], 2, 2)
	minutes := 0
	if !ok {
		if h, rest, ok = cutDigits(s[1:], 4, 4); ok {
			h, minutes = h/100, h%100
		}
	}
	if !ok || h > 15 || minutes > 59 {
		return 0, s, false
	}
	seconds := int64(h)*3600 + int64(minutes)*60
	if rest == s[3:] {
		for unit := int64(60); unit > 0 && strings.HasPrefix(rest, ":"); unit /= 60 {
			v, r, ok := cutDigits(rest[1:], 2, 2)
			if !ok || v > 59 {
				return 0, s, false
			}
			seconds, rest = seconds+int64(v)*unit, r
		}
	}
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds * MicrosPerSecond, rest, true
}
