package sqlfn

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// to_char of moments, by PostgreSQL's formatting.c (parse_format and DCH_to_char): a pattern is a sequence of
// keywords, quoted text and separators.

// toCharKeywords are all keywords of dates and times, nil where the pattern is forwarded. Those that do not print
// letters have the same meaning in small letters.
var toCharKeywords = withSmall(map[string]toCharText{
	"A.D.": nil, "A.M.": nil, "AD": nil, "AM": halfOf(true), "B.C.": nil, "BC": nil, "CC": nil,
	"DAY": dayName(strings.ToUpper), "DDD": padded(3, func(t *civil) int64 { return t.doy }), "DD": padded(2, func(t *civil) int64 { return t.day }),
	"DY": shortDay(strings.ToUpper), "Day": dayName(asIs), "Dy": shortDay(asIs), "D": padded(1, func(t *civil) int64 { return t.dow + 1 }),
	"FF": nil, "FX": nil, "HH24": padded(2, func(t *civil) int64 { return t.hour }), "HH12": padded(2, hour12), "HH": padded(2, hour12),
	"IDDD": nil, "ID": padded(1, func(t *civil) int64 { return (t.dow+6)%7 + 1 }), "IW": padded(2, func(t *civil) int64 { return t.isoWeek }),
	"IYYY": padded(4, func(t *civil) int64 { return t.isoYear }), "IYY": nil, "IY": nil, "I": nil, "J": nil,
	"MI": padded(2, func(t *civil) int64 { return t.minute }), "MM": padded(2, func(t *civil) int64 { return t.month }),
	"MONTH": monthName(strings.ToUpper), "MON": shortMonth(strings.ToUpper), "MS": always(3, func(t *civil) int64 { return t.micros / 1000 }),
	"Month": monthName(asIs), "Mon": shortMonth(asIs), "OF": nil, "P.M.": nil, "PM": halfOf(true),
	"Q": padded(1, func(t *civil) int64 { return (t.month-1)/3 + 1 }), "RM": nil, "SSSSS": nil, "SSSS": nil,
	"SS": padded(2, func(t *civil) int64 { return t.second }), "TZH": nil, "TZM": nil, "TZ": nil,
	"US": always(6, func(t *civil) int64 { return t.micros }), "WW": padded(2, func(t *civil) int64 { return (t.doy-1)/7 + 1 }),
	"W": padded(1, func(t *civil) int64 { return (t.day-1)/7 + 1 }), "Y,YYY": nil, "YYYY": padded(4, func(t *civil) int64 { return t.year }),
	"YYY": nil, "YY": padded(2, func(t *civil) int64 { return t.year % 100 }), "Y": nil,
	"am": halfOf(false), "day": dayName(strings.ToLower), "dy": shortDay(strings.ToLower), "month": monthName(strings.ToLower),
	"mon": shortMonth(strings.ToLower), "pm": halfOf(false),
})

// toCharText prints a keyword; fill is false behind FM.
type toCharText = func(t *civil, fill bool) string

func withSmall(m map[string]toCharText) map[string]toCharText {
	for name, text := range maps.Clone(m) {
		if small := strings.ToLower(name); m[small] == nil {
			m[small] = text
		}
	}
	return m
}

// unitOfKeywords is a unit of time throughout which what some keywords print stays the same.
type unitOfKeywords struct {
	unit     string
	keywords []string
}

// toCharUnits are all units, the longest first. That of other keywords is a day; parts of a second have none.
var toCharUnits = []unitOfKeywords{
	{"year", []string{"YYYY", "YY"}}, {"quarter", []string{"Q"}}, {"month", []string{"MM", "MONTH", "MON"}}, {"day", nil},
	{"hour", []string{"HH24", "HH12", "HH", "AM", "PM"}}, {"minute", []string{"MI"}}, {"second", []string{"SS"}}, {"", []string{"MS", "US"}},
}

// toCharUnit returns the unit of time throughout which a pattern prints the same; "" for none.
func toCharUnit(pattern string) string {
	parts, _ := toCharParts(pattern)
	finest := 0
	for _, p := range parts {
		if p.text == nil {
			continue
		}
		at := slices.IndexFunc(toCharUnits, func(u unitOfKeywords) bool {
			return slices.Contains(u.keywords, strings.ToUpper(p.literal))
		})
		if at < 0 {
			at = 3
		}
		finest = max(finest, at)
	}
	return toCharUnits[finest].unit
}

// toCharPatterns are samples of what is taken.
var toCharPatterns = []string{"YYYY-MM-DD", "YYYY-MM", "YYYY", "HH24:MI:SS", "YYYY-MM-DD HH24:MI:SS.US", "yyyy-mm-dd hh24:mi:ss.ms", "Mon YYYY", "FMMonth FMDD, YYYY",
	"Month", "MONTH/month", "DAY Day day", "Dy, DD Mon YY", "FMDay", "MON mon DY dy", "IYYY-\"W\"IW-ID", "DDD D Q W WW", "FMDDD FMHH24 FMMI FMUS FMMS FMIW FMYY FMMM FMQ FMAM FMMon FMYYYY", "HH12:MI AM", "HH:MI pm",
	"YYYY-MM-DD\"T\"HH24:MI:SS", "MMDD", "YYYYMMDD", "\"Q\"Q", "YYYY_MM"}

var monthNames = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
var dayNames = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}

// civil are the fields of a moment. isoYear and year are those that are printed.
type civil struct {
	year, month, day, hour, minute, second, micros, dow, doy, isoYear, isoWeek int64
}

func asIs(s string) string { return s }

func hour12(t *civil) int64 { return (t.hour+11)%12 + 1 }

func padded(width int, f func(t *civil) int64) toCharText {
	return func(t *civil, fill bool) string {
		if !fill {
			return strconv.FormatInt(f(t), 10)
		}
		return fmt.Sprintf("%0*d", width, f(t))
	}
}

// always prints parts of a second, whose zeros FM leaves.
func always(width int, f func(t *civil) int64) toCharText {
	return func(t *civil, _ bool) string { return fmt.Sprintf("%0*d", width, f(t)) }
}

// named pads a whole name with blanks to the longest one's length.
func named(name func(t *civil) string, to func(string) string) toCharText {
	return func(t *civil, fill bool) string {
		if !fill {
			return to(name(t))
		}
		return fmt.Sprintf("%-9s", to(name(t)))
	}
}

func dayName(to func(string) string) toCharText {
	return named(func(t *civil) string { return dayNames[t.dow] }, to)
}

func monthName(to func(string) string) toCharText {
	return named(func(t *civil) string { return monthNames[t.month-1] }, to)
}

func shortDay(to func(string) string) toCharText {
	return func(t *civil, _ bool) string { return to(dayNames[t.dow][:3]) }
}

func shortMonth(to func(string) string) toCharText {
	return func(t *civil, _ bool) string { return to(monthNames[t.month-1][:3]) }
}

func halfOf(capital bool) toCharText {
	return func(t *civil, _ bool) string {
		s := "am"
		if t.hour >= 12 {
			s = "pm"
		}
		if capital {
			return strings.ToUpper(s)
		}
		return s
	}
}

// toCharPart is a keyword, or text that stands as it is.
type toCharPart struct {
	text    toCharText
	fill    bool
	literal string // of a keyword its name
}

var toCharMemo = memo[[]toCharPart]{make: toCharParts}

// toCharParts reads a pattern. ok is false for one that is left to the server.
func toCharParts(pattern string) (parts []toCharPart, ok bool) {
	for s := pattern; s != ""; {
		fill := true
		if strings.HasPrefix(s, "FM") {
			fill, s = false, s[2:]
		}
		found := false
		for n := min(6, len(s)); n > 0 && !found; n-- { // the longest that stands there
			text, known := toCharKeywords[s[:n]]
			if !known {
				continue
			}
			name := s[:n]
			s = s[n:]
			if text == nil || strings.HasPrefix(s, "TH") || strings.HasPrefix(s, "th") || strings.HasPrefix(s, "SP") {
				return nil, false
			}
			parts, found = append(parts, toCharPart{text: text, fill: fill, literal: name}), true
		}
		switch {
		case found:
		case !fill || s == "":
			return nil, false
		case s[0] == '"':
			end := strings.IndexByte(s[1:], '"')
			if end < 0 || strings.Contains(s[:end+1], `\`) {
				return nil, false
			}
			parts, s = append(parts, toCharPart{literal: s[1 : end+1]}), s[end+2:]
		case strings.IndexByte(" -/:.,_", s[0]) >= 0:
			parts, s = append(parts, toCharPart{literal: s[:1]}), s[1:]
		default:
			return nil, false
		}
	}
	return parts, len(parts) > 0
}

// toCharOf is to_char of a timestamp, or of a moment in UTC.
func toCharOf(oid uint32, k vector.Kind) Function {
	return Function{
		Name: "to_char", OID: oid, Result: vector.Text, Zone: zoneOf(k), in: localOf(0),
		Args: []Param{{Kind: k}, {Kind: vector.Text, Constants: toCharPatterns, Also: func(s string) bool {
			_, ok := toCharParts(s)
			return ok
		}}},
		Samples: [][]string{append([]string{"2024-12-30 12:00:00", "2023-05-07 00:05:09.000001", "2022-09-01 11:59:59.5"}, timestampSamples...), nil},
		Around: func(c Call, i int) func(v int64) (lo, hi int64) {
			if unit := toCharUnit(c.Args[1].Const.Str); i == 0 && unit != "" {
				return func(v int64) (int64, int64) { return unitAround(unit, v) }
			}
			return nil
		},
		Eval: func(args []vector.Value) (vector.Value, error) {
			v := args[0].I
			if v < sqltype.TimestampFirst || v > sqltype.TimestampLast {
				return vector.NullValue, failed("to_char() of an infinite date")
			}
			day := sqltype.FloorDiv(v, dayMicros)
			micros := v - day*dayMicros
			y, m, d := sqltype.Civil(day)
			t := civil{year: y, month: int64(m), day: int64(d), hour: micros / hourMicros, minute: micros / minuteMicros % 60, second: micros / secondMicros % 60,
				micros: micros % secondMicros, dow: weekday(day), doy: day - sqltype.DayOf(y, 1, 1) + 1}
			t.isoYear, t.isoWeek = isoWeek(day)
			if t.year < 2 || t.year > 9998 {
				return vector.NullValue, failed("to_char() of a year beyond 2 to 9998")
			}
			parts, ok := toCharMemo.of(args[1].Str)
			if !ok {
				return vector.NullValue, failed("to_char() with this pattern")
			}
			var b strings.Builder
			for _, p := range parts {
				if p.text == nil {
					b.WriteString(p.literal)
				} else {
					b.WriteString(p.text(&t, p.fill))
				}
			}
			return vector.Value{Str: b.String()}, nil
		},
	}
}
