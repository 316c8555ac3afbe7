package sqltype

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// intervalUnit is a unit of an interval. Each field may come once, and those of a time not beside one.
type intervalUnit struct {
	months, days, micros int64
	field                uint
}

const (
	intervalYears uint = 1 << iota
	intervalMonths
	intervalWeeks
	intervalDays
	intervalHours
	intervalMinutes
	intervalSeconds
	intervalMillis
	intervalMicros

	intervalTimes = intervalHours | intervalMinutes | intervalFractions
	// intervalFractions are the fields of a second with decimals (DTK_ALL_SECS_M in utils/datetime.h).
	intervalFractions = intervalSeconds | intervalMillis | intervalMicros
)

// intervalUnits are units by their names. The server takes more.
var intervalUnits = func() map[string]intervalUnit {
	units := map[string]intervalUnit{}
	add := func(u intervalUnit, names ...string) {
		for _, n := range names {
			units[n] = u
		}
	}
	add(intervalUnit{months: 12, field: intervalYears}, "year", "y", "yr")
	add(intervalUnit{months: 1, field: intervalMonths}, "mon", "month")
	add(intervalUnit{days: 7, field: intervalWeeks}, "week", "w")
	add(intervalUnit{days: 1, field: intervalDays}, "day", "d")
	add(intervalUnit{micros: 3600e6, field: intervalHours}, "hour", "h", "hr")
	add(intervalUnit{micros: 60e6, field: intervalMinutes}, "minute", "m", "min")
	add(intervalUnit{micros: 1e6, field: intervalSeconds}, "second", "s", "sec")
	add(intervalUnit{micros: 1e3, field: intervalMillis}, "millisecond", "msec")
	add(intervalUnit{micros: 1, field: intervalMicros}, "microsecond", "usec")
	return units
}()

// intervalPlurals are the names to which the server adds no s (deltatktbl in datetime.c).
const intervalPlurals = " y m h s d w "

// maxIntervalMicros bounds what one number makes, so that all of them stay within 64 bits.
const maxIntervalMicros = 1_000_000_000_000_000_000

// intervalReader adds up the fields of an interval.
type intervalReader struct {
	months, days, micros int64
	seen                 uint
	values               int // how many there are
}

// ParseInterval reads an interval in the forms of DecodeInterval and DecodeISO8601Interval (datetime.c) that mean the same under every
// IntervalStyle, those that the server writes under each among them: numbers with units, years and months (1-2), days before a
// time, a time, "@ ... ago" and P1Y2M3DT4H5M6S. Only seconds may have decimals. A sign before the first of several numbers belongs to
// all of them under sql_standard, unless others have one, too: that is not read.
func ParseInterval(s string) (months, days, micros int64, ok bool) {
	words := strings.FieldsFunc(s, func(r rune) bool { return r < utf8.RuneSelf && isSpace[r] })
	if len(words) == 0 {
		return 0, 0, 0, false
	}
	var r intervalReader
	if words[0] == "@" {
		words = words[1:]
	}
	ago := len(words) > 1 && strings.EqualFold(words[len(words)-1], "ago")
	if ago {
		words = words[:len(words)-1]
	}
	if len(words) == 1 && strings.HasPrefix(words[0], "P") {
		ok = len(words[0]) == len(s) && r.iso(s[1:]) // no blanks around it
	} else {
		ok = len(words) > 0 && (len(words) == 1 && words[0] == "0" || r.words(words))
	}
	if ago {
		r.months, r.days, r.micros = -r.months, -r.days, -r.micros
	}
	return r.months, r.days, r.micros, ok && r.days == int64(int32(r.days)) && r.months == int64(int32(r.months))
}

// words reads what is no P... .
func (r *intervalReader) words(words []string) bool {
	signed, first := 0, words[0][0] == '-'
	for _, w := range words {
		if w[0] == '-' || w[0] == '+' {
			signed++
		}
	}
	if months, ok := yearsAndMonths(words[0]); ok {
		r.months, r.seen, r.values, words = months, intervalYears|intervalMonths, 1, words[1:]
	}
	if n := len(words); n > 0 && strings.Contains(words[n-1], ":") {
		t, ok := intervalTime(words[n-1])
		if !ok {
			return false
		}
		r.micros, r.seen, r.values, words = t, r.seen|intervalTimes, r.values+1, words[:n-1]
		if n := len(words); n%2 == 1 {
			if !r.add(words[n-1], "day") {
				return false
			}
			words = words[:n-1]
		}
	}
	if len(words)%2 == 1 {
		return false
	}
	for ; len(words) > 0; words = words[2:] {
		if !r.add(words[0], words[1]) {
			return false
		}
	}
	return !(first && signed == 1 && r.values > 1)
}

// add adds a number of a unit.
func (r *intervalReader) add(number, unit string) bool {
	u, known := unitOfInterval(unit)
	whole, fraction, decimal := strings.Cut(number, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	most := int64(math.MaxInt32)
	if u.micros > 1 {
		most = min(most, maxIntervalMicros/u.micros)
	} else if u.micros == 1 {
		most = maxIntervalMicros
	}
	if err != nil || !known || n > most || n < -most || r.seen&u.field != 0 {
		return false
	}
	if decimal {
		if u.field != intervalSeconds || len(fraction) == 0 || len(fraction) > 6 || r.seen&intervalFractions != 0 {
			return false
		}
		part, err := strconv.ParseUint(fraction+strings.Repeat("0", 6-len(fraction)), 10, 32)
		if err != nil {
			return false
		}
		if strings.HasPrefix(whole, "-") {
			r.micros -= int64(part)
		} else {
			r.micros += int64(part)
		}
		u.field = intervalFractions
	}
	r.seen |= u.field
	r.values++
	r.months, r.days, r.micros = r.months+n*u.months, r.days+n*u.days, r.micros+n*u.micros
	return true
}

func unitOfInterval(name string) (u intervalUnit, known bool) {
	name = strings.ToLower(name)
	if u, known = intervalUnits[name]; known {
		return u, true
	}
	one, plural := strings.CutSuffix(name, "s")
	if !plural || strings.Contains(intervalPlurals, " "+one+" ") {
		return u, false
	}
	u, known = intervalUnits[one]
	return u, known
}

// cutSign takes the sign that s begins with, if there is one.
func cutSign(s string) (sign int64, rest string) {
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		return -1, rest
	}
	return 1, strings.TrimPrefix(s, "+")
}

// yearsAndMonths reads 1-2, with a sign that is both's.
func yearsAndMonths(s string) (months int64, ok bool) {
	sign, s := cutSign(s)
	years, rest, ok := cutDigits(s, 1, 6)
	if !ok || !strings.HasPrefix(rest, "-") {
		return 0, false
	}
	part, rest, ok := cutDigits(rest[1:], 1, 2)
	return sign * (int64(years)*12 + int64(part)), ok && rest == "" && part < 12
}

// isoUnits are the units of P1Y2M3W4DT5H6M7S in their order, those before T and those behind it.
var isoUnits = [2]string{"YMWD", "HMS"}

var isoNames = [2]map[byte]string{{'Y': "year", 'M': "month", 'W': "week", 'D': "day"}, {'H': "hour", 'M': "minute", 'S': "second"}}

// iso reads what is behind P.
func (r *intervalReader) iso(s string) bool {
	date, clock, timed := strings.Cut(s, "T")
	for i, part := range [2]string{date, clock} {
		order := isoUnits[i]
		for part != "" {
			end := strings.IndexAny(part, order)
			if end <= 0 || part[0] == '+' || !r.add(part[:end], isoNames[i][part[end]]) {
				return false
			}
			order = order[strings.IndexByte(order, part[end])+1:]
			part = part[end+1:]
		}
	}
	return r.values > 0 && (!timed || clock != "")
}

// intervalTime reads a time with a sign and any number of hours of one to six digits.
func intervalTime(s string) (micros int64, ok bool) {
	sign, s := cutSign(s)
	h, rest, ok := cutDigits(s, 1, 6)
	if !ok {
		return 0, false
	}
	micros, rest, ok = cutTime("00" + rest)
	return sign * (micros + int64(h)*3600*MicrosPerSecond), ok && rest == ""
}
