package sqltype

import (
	"strconv"
	"strings"
)

// dateStyle is the first word of DateStyle.
type dateStyle uint8

const (
	dateISO dateStyle = iota
	datePostgres
	dateSQL
	dateGerman
)

// DateFormat is what EncodeDateOnly and EncodeDateTime (src/backend/utils/adt/datetime.c)
// depend on. The zero value is ISO.
type DateFormat struct {
	style    dateStyle
	dayFirst bool // DMY; of the output forms MDY and YMD are the same
	// Zone is what timestamptz prints for the time zone, see UTCAbbreviation.
	Zone string
	// Rules are those of another zone than UTC, in the style ISO; else nil.
	Rules *Zone
}

// IsISO reports whether the style is ISO, in which a time zone is printed as its offset.
func (f *DateFormat) IsISO() bool { return f.style == dateISO }

// isoFormat is that of DateStyle ISO and the time zone UTC.
var isoFormat = &DateFormat{Zone: "UTC"}

// SetStyle takes the setting DateStyle, such as "ISO, MDY"; ok is false for what is none.
func (f *DateFormat) SetStyle(setting string) (ok bool) {
	name, order, _ := strings.Cut(setting, ", ")
	switch order {
	case "DMY":
		f.dayFirst = true
	case "MDY", "YMD":
		f.dayFirst = false
	default:
		return false
	}
	switch name {
	case "ISO":
		f.style = dateISO
	case "Postgres":
		f.style = datePostgres
	case "SQL":
		f.style = dateSQL
	case "German":
		f.style = dateGerman
	default:
		return false
	}
	return true
}

// appendYear appends at least four digits.
func appendYear(dst []byte, year int64) []byte {
	if year <= 0 {
		year = 1 - year
	}
	for p := int64(1000); p > 1 && year < p; p /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, year, 10)
}

// appendDays appends the date alone in every style but Postgres' form of a
// timestamp.
func (f *DateFormat) appendDays(dst []byte, year int64, month, day int) []byte {
	if f.style == dateISO {
		dst = append(appendYear(dst, year), '-')
		dst = append(appendTwoDigits(dst, month), '-')
		return appendTwoDigits(dst, day)
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
	dst = append(appendTwoDigits(dst, a), sep)
	dst = append(appendTwoDigits(dst, b), sep)
	return appendYear(dst, year)
}
