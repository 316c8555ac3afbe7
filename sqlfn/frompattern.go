package sqlfn

import (
	"slices"
	"strings"

	"pgaccel/vector"
)

// to_date and to_timestamp of a text, by PostgreSQL's formatting.c (DCH_from_char and do_to_timestamp). The server reads texts that
// are laid out otherwise than their pattern in ways of its own: read here is what is laid out as the pattern says.

// patternField is a field of a moment.
type patternField int

const (
	yearField patternField = iota
	monthField
	dayField
	hourField
	minuteField
	secondField
	fractionField
	halfField // of the day
	patternFields
)

// patternKeyword reads digits, as many as width at most, or a name.
type patternKeyword struct {
	field patternField
	width int
	names []string // in small letters; nil: digits
}

var patternKeywords = map[string]patternKeyword{
	"YYYY": {yearField, 4, nil}, "YY": {yearField, 2, nil}, "MM": {monthField, 2, nil}, "DD": {dayField, 2, nil},
	"MON": {monthField, 0, firstThree(monthNames)}, "MONTH": {monthField, 0, lowerCased(monthNames)},
	"HH24": {hourField, 2, nil}, "HH12": {hourField, 2, nil}, "HH": {hourField, 2, nil}, "MI": {minuteField, 2, nil}, "SS": {secondField, 2, nil},
	"MS": {fractionField, 3, nil}, "US": {fractionField, 6, nil}, "AM": {halfField, 0, []string{"am", "pm"}}, "PM": {halfField, 0, []string{"am", "pm"}},
}

func lowerCased(names []string) (list []string) {
	for _, n := range names {
		list = append(list, strings.ToLower(n))
	}
	return list
}

func firstThree(names []string) (list []string) {
	for _, n := range lowerCased(names) {
		list = append(list, n[:3])
	}
	return list
}

// patternPart is a keyword, or text of which keyword is nil.
type patternPart struct {
	keyword *patternKeyword
	literal string
	twelve  bool // an hour of half a day
}

// momentPattern reads a pattern. ok is false for one that is left to the server: of other keywords, of a field twice, of one
// without that which it is a part of, and of the half of a day before its hour.
func momentPattern(pattern string) (parts []patternPart, ok bool) {
	list, ok := toCharParts(pattern)
	var has [patternFields]bool
	twelve := false
	for _, p := range list {
		if p.text == nil {
			if strings.ContainsFunc(p.literal, func(r rune) bool { return !isLetter(r) && len(p.literal) > 1 }) || isDigits(p.literal) {
				return nil, false
			}
			parts = append(parts, patternPart{literal: p.literal})
			continue
		}
		name := strings.ToUpper(p.literal)
		k, known := patternKeywords[name]
		if !known || !p.fill || has[k.field] || k.field == halfField && !twelve {
			return nil, false
		}
		has[k.field] = true
		half := name == "HH" || name == "HH12"
		twelve = twelve || half
		parts = append(parts, patternPart{keyword: &k, twelve: half})
	}
	finer := func(a, b patternField) bool { return !has[a] || has[b] }
	return parts, ok && has[yearField] && finer(dayField, monthField) && finer(minuteField, hourField) && finer(secondField, minuteField) && finer(fractionField, secondField)
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

func isDigits(s string) bool { return s != "" && leadingDigits(s) == len(s) }

// leadingDigits counts the digits that s begins with.
func leadingDigits(s string) int {
	if n := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }); n >= 0 {
		return n
	}
	return len(s)
}

// readMoment reads a text by a pattern. It may end behind any field, and go on behind the last one, as in the server.
func readMoment(s string, parts []patternPart) (fields [patternFields]int64, ok bool) {
	fields[monthField], fields[dayField] = 1, 1
	for i, p := range parts {
		k := p.keyword
		switch {
		case s == "":
			return fields, i > 0 && parts[i-1].keyword != nil
		case k == nil:
			if !strings.HasPrefix(s, p.literal) {
				return fields, false
			}
			s = s[len(p.literal):]
			continue
		}
		v, n, read := k.read(s, i+1 == len(parts) || parts[i+1].keyword == nil)
		if !read {
			return fields, false
		}
		if p.twelve {
			if v < 1 || v > 12 {
				return fields, false
			}
			v %= 12
		}
		fields[k.field], s = v, s[n:]
	}
	return fields, true
}

// read returns a field's value, and how many bytes it takes of s. open says that no keyword follows: then digits may be fewer.
func (k *patternKeyword) read(s string, open bool) (v int64, n int, ok bool) {
	if k.names != nil {
		at := slices.IndexFunc(k.names, func(name string) bool { return len(s) >= len(name) && strings.EqualFold(s[:len(name)], name) })
		if at < 0 {
			return 0, 0, false
		}
		if n = len(k.names[at]); len(s) > n && isLetter(rune(s[n])) {
			return 0, 0, false
		}
		if k.field == monthField {
			at++
		}
		return int64(at), n, true
	}
	n = leadingDigits(s)
	switch {
	case n < k.width && (!open || n == 0 || k.field == yearField), open && n > k.width:
		return 0, 0, false
	}
	n = min(n, k.width)
	for _, c := range []byte(s[:n]) {
		v = v*10 + int64(c-'0')
	}
	switch {
	case k.field == fractionField: // .5 is half a second
		for range 6 - n {
			v *= 10
		}
	case k.field == yearField && k.width == 2 && v < 70:
		v += 2000
	case k.field == yearField && k.width == 2:
		v += 1900
	}
	return v, n, true
}

var momentParts = memo[[]patternPart]{make: momentPattern}

// toMoment is to_date or to_timestamp in UTC.
func toMoment(k vector.Kind) func(args []vector.Value) (vector.Value, error) {
	return func(args []vector.Value) (vector.Value, error) {
		parts, ok := momentParts.of(args[1].Str)
		var f [patternFields]int64
		if ok {
			f, ok = readMoment(args[0].Str, parts)
		}
		if !ok {
			return vector.NullValue, failed("text that is not laid out as " + args[1].Str)
		}
		day, err := dayOf(f[yearField], f[monthField], f[dayField])
		if err != nil {
			return vector.NullValue, err
		}
		hour := f[hourField] + 12*f[halfField]
		if hour > 23 || f[minuteField] > 59 || f[secondField] > 59 {
			return vector.NullValue, failed("date/time field value out of range")
		}
		if k == vector.Date {
			return vector.Value{I: day}, nil
		}
		return dateAndTime(day, ((hour*60+f[minuteField])*60+f[secondField])*secondMicros+f[fractionField])
	}
}

// takesMomentPattern is Param.Also of patterns.
func takesMomentPattern(s string) bool {
	_, ok := momentPattern(s)
	return ok
}

// momentPatterns are samples of what is taken.
var momentPatterns = []string{"YYYY-MM-DD", "YYYY-MM-DD HH24:MI:SS", "YYYY-MM-DD HH24:MI:SS.US", "YYYY-MM-DD HH24:MI:SS.MS", "YYYYMMDD", "YYYYMMDDHH24MISS", "YYYY-MM", "YYYYMM", "YYYY", "MM/DD/YYYY",
	"DD.MM.YYYY", "DD/MM/YY", "DD Mon YYYY", "DD-MON-YY", "Month DD, YYYY", "YYYY-MM-DD\"T\"HH24:MI:SS", "MM/DD/YYYY HH12:MI:SS AM", "DDMonYYYY", "YYYY/MM/DD HH:MI pm"}

var patternSamples = []string{"2024-02-29", "2023-02-29", "1999-12-31 23:59:59", "1999-12-31 23:59:59.999999", "2000-01-01 00:00:00.5", "2000-1-1", "", "x", "2024", "202402", "20240229", "20240229123456", "2024-02", "2024-13", "0000-01-01", "2024-02-29 24:00:00", "2024-02-29 10:60:00",
	"2024-02-29 10:00", "2024-02-29 ", "2024-02-29x", "2024-02-291", "2024-02-29T10:11:12", "02/29/2024", "2/9/2024", "29.02.2024", "29/02/24", "29/02/69", "29/02/72", "01/01/70", "29 Feb 2024", "1 may 1999", "29-FEB-24", "February 29, 2024", "MAY 1, 2024", "Mayo 1, 2024", "29Feb2024", "1Feb2024", "february 30, 2024",
	"02/29/2024 12:00:01 AM", "02/29/2024 12:00:01 pm", "02/29/2024 1:0:1 PM", "02/29/2024 13:00:01 PM", "02/29/2024 00:00:00 AM", "2024/02/29 11:59 PM", "2024/02/29 11:59 am", " 2024-02-29", "-2024-02-29", "2024--02-29", "2024-02-29 1:2:3.45", "2024-02-29 1:2:3.1234567"}
