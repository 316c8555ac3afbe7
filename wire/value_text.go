package wire

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"pgaccel/vector"
)

// Infinite dates and timestamps: DATEVAL_NOBEGIN, ... of utils/date.h, DT_NOBEGIN,
// ... of datatype/timestamp.h.
const (
	dateMin      = math.MinInt32
	dateMax      = math.MaxInt32
	timestampMin = math.MinInt64
	timestampMax = math.MaxInt64

	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
)

// appendNumericText is vector.Decimal.AppendText without allocation.
func appendNumericText(dst []byte, d vector.Decimal) []byte {
	var buf [maxDigits]byte
	digits := decimalDigits(&buf, d.Unscaled)
	if d.Unscaled.Sign() < 0 {
		dst = append(dst, '-')
	}
	scale := int(d.Scale)
	if whole := len(digits) - scale; whole > 0 {
		dst = append(dst, digits[:whole]...)
		digits = digits[whole:]
	} else {
		dst = append(dst, '0')
	}
	if scale > 0 {
		dst = append(dst, '.')
		for i := len(digits); i < scale; i++ {
			dst = append(dst, '0')
		}
		dst = append(dst, digits...)
	}
	return dst
}

// dateStyle is the first word of DateStyle.
type dateStyle uint8

const (
	dateISO dateStyle = iota
	datePostgres
	dateSQL
	dateGerman
)

// dateFormat is what EncodeDateOnly and EncodeDateTime
// (src/backend/utils/adt/datetime.c) depend on.
type dateFormat struct {
	style    dateStyle
	dayFirst bool   // DMY; of the output forms MDY and YMD are the same
	zone     string // abbreviation of a zone without offset
}

func parseDateStyle(s string) (style dateStyle, dayFirst bool, err error) {
	name, order, ok := strings.Cut(s, ", ")
	if ok {
		switch order {
		case "DMY":
			dayFirst = true
		case "MDY", "YMD":
		default:
			ok = false
		}
	}
	switch name {
	case "ISO":
		style = dateISO
	case "Postgres":
		style = datePostgres
	case "SQL":
		style = dateSQL
	case "German":
		style = dateGerman
	default:
		ok = false
	}
	if !ok {
		return 0, false, fmt.Errorf("DateStyle %q", s)
	}
	return style, dayFirst, nil
}

// zoneAbbreviation returns what Postgres prints for zones that are UTC at all
// times. Others would need the server's own time zone data.
func zoneAbbreviation(name string) (string, error) {
	switch name {
	case "UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu":
		return "UTC", nil
	case "GMT", "Etc/GMT", "GMT0", "Etc/GMT0", "GMT+0", "Etc/GMT+0", "GMT-0", "Etc/GMT-0", "Greenwich", "Etc/Greenwich":
		return "GMT", nil
	}
	return "", fmt.Errorf("TimeZone %q", name)
}

// civil returns the proleptic Gregorian date of a day counted from 2000-01-01;
// year 0 is 1 BC. (Hinnant, chrono-compatible low-level date algorithms)
func civil(days int64) (year, month, day int) {
	z := days + 730425 // from 0000-03-01
	era := z / 146097
	if z < 0 {
		era = (z - 146096) / 146097
	}
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int(mp + 3)
	y := yoe + era*400
	if month > 12 {
		month -= 12
		y++
	}
	return int(y), month, day
}

// daysOf is the inverse of civil.
func daysOf(year, month, day int) int64 {
	y, m := int64(year), int64(month)
	if m <= 2 {
		y--
		m += 12
	}
	era := y / 400
	if y < 0 {
		era = (y - 399) / 400
	}
	yoe := y - era*400
	doy := (153*(m-3)+2)/5 + int64(day) - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 730425
}

func append2(dst []byte, v int) []byte { return append(dst, byte('0'+v/10), byte('0'+v%10)) }

// appendYear appends at least four digits.
func appendYear(dst []byte, year int) []byte {
	if year <= 0 {
		year = 1 - year
	}
	for p := 1000; p > 1 && year < p; p /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(year), 10)
}

// appendDays appends the date alone in every style but Postgres' form of a
// timestamp.
func (f *dateFormat) appendDays(dst []byte, year, month, day int) []byte {
	if f.style == dateISO {
		dst = append(appendYear(dst, year), '-')
		dst = append(append2(dst, month), '-')
		return append2(dst, day)
	}
	sep, a, b := byte('-'), month, day
	switch f.style {
	case dateSQL:
		sep = '/'
	case dateGerman:
		sep = '.'
	}
	if f.dayFirst || f.style == dateGerman {
		a, b = day, month
	}
	dst = append(append2(dst, a), sep)
	dst = append(append2(dst, b), sep)
	return appendYear(dst, year)
}

func (f *dateFormat) appendDate(dst []byte, days int64) []byte {
	switch days {
	case dateMin:
		return append(dst, "-infinity"...)
	case dateMax:
		return append(dst, "infinity"...)
	}
	year, month, day := civil(days)
	dst = f.appendDays(dst, year, month, day)
	if year <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}

// appendTime appends hh:mm:ss and the fraction, without its trailing zeros.
func appendTime(dst []byte, micros int64) []byte {
	seconds, fraction := int(micros/microsPerSecond), int(micros%microsPerSecond)
	dst = append(append2(dst, seconds/3600), ':')
	dst = append(append2(dst, seconds/60%60), ':')
	dst = append2(dst, seconds%60)
	if fraction != 0 {
		dst = append(dst, '.')
		for p := 100_000; fraction > 0; p /= 10 {
			dst = append(dst, byte('0'+fraction/p))
			fraction %= p
		}
	}
	return dst
}

const (
	dayNames   = "SunMonTueWedThuFriSat"
	monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"
)

func (f *dateFormat) appendTimestamp(dst []byte, micros int64, zoned bool) []byte {
	switch micros {
	case timestampMin:
		return append(dst, "-infinity"...)
	case timestampMax:
		return append(dst, "infinity"...)
	}
	days, rest := micros/microsPerDay, micros%microsPerDay
	if rest < 0 {
		days--
		rest += microsPerDay
	}
	year, month, day := civil(days)
	if f.style == datePostgres {
		weekday := int((days%7 + 7 + 6) % 7) // 2000-01-01 was a Saturday
		dst = append(append(dst, dayNames[3*weekday:3*weekday+3]...), ' ')
		name := monthNames[3*month-3 : 3*month]
		if f.dayFirst {
			dst = append(append(append2(dst, day), ' '), name...)
		} else {
			dst = append2(append(append(dst, name...), ' '), day)
		}
		dst = appendTime(append(dst, ' '), rest)
		dst = appendYear(append(dst, ' '), year)
	} else {
		dst = f.appendDays(dst, year, month, day)
		dst = appendTime(append(dst, ' '), rest)
	}
	if zoned {
		if f.style == dateISO {
			dst = append(dst, "+00"...)
		} else {
			dst = append(append(dst, ' '), f.zone...)
		}
	}
	if year <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}
