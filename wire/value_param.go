package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"pgaccel/vector"
)

// DecodeParam reads a bound parameter of the type that Postgres reported for it;
// raw is nil for null. Text forms are taken only where their meaning depends on no
// setting: ISO dates, times with a zone for timestamptz. Everything else is an
// error and no verdict: the caller forwards and lets Postgres decide.
//
// Text is taken as UTF-8. A session with another client_encoding must forward
// where raw is not ASCII.
//
// A numeric has its own number of decimals as Type.Scale, Num always, and I where
// the unscaled value fits 64 bits.
func DecodeParam(oid uint32, format int16, raw []byte) (vector.Datum, error) {
	kind := vector.KindOf(oid)
	if oid == vector.OIDUnknown {
		kind = vector.Text
	}
	if kind == vector.Invalid {
		return vector.Datum{}, fmt.Errorf("parameter of type %d", oid)
	}
	if raw == nil {
		t := vector.TypeOf(kind)
		return vector.Null(t), nil
	}
	if kind.IsText() {
		if format != FormatText && format != FormatBinary {
			return vector.Datum{}, fmt.Errorf("parameter format %d", format)
		}
		if !utf8.Valid(raw) || strings.IndexByte(string(raw), 0) >= 0 {
			return vector.Datum{}, fmt.Errorf("text parameter is not UTF-8")
		}
		return vector.Datum{Type: vector.TypeOf(kind), Str: string(raw)}, nil
	}
	var d vector.Datum
	var ok bool
	switch format {
	case FormatText:
		d, ok = textParam(kind, string(raw))
	case FormatBinary:
		d, ok = binaryParam(kind, raw)
	default:
		return d, fmt.Errorf("parameter format %d", format)
	}
	if !ok {
		return vector.Datum{}, fmt.Errorf("%s parameter in a form that Postgres must judge", kind)
	}
	return d, nil
}

func textParam(kind vector.Kind, s string) (d vector.Datum, ok bool) {
	var v int64
	switch kind {
	case vector.Bool:
		v, ok = parseBool(s)
	case vector.Int2:
		v, ok = parseInt(s, 16)
	case vector.Int4:
		v, ok = parseInt(s, 32)
	case vector.Int8:
		v, ok = parseInt(s, 64)
	case vector.Numeric:
		dec, ok := vector.ParseDecimal(s)
		return numericDatum(dec), ok
	case vector.Float4:
		v, ok = parseFloat(s, 32)
	case vector.Float8:
		v, ok = parseFloat(s, 64)
	case vector.Date:
		v, ok = parseDate(s)
	case vector.Time:
		var rest string
		v, rest, ok = parseClock(s)
		ok = ok && rest == ""
	case vector.Timestamp:
		v, _, ok = parseTimestamp(s, false)
	case vector.TimestampTZ:
		var zoned bool
		v, zoned, ok = parseTimestamp(s, true)
		ok = ok && zoned
	}
	return vector.Int(kind, v), ok
}

func numericDatum(dec vector.Decimal) vector.Datum {
	d := vector.Datum{Type: vector.NumericType(dec.Scale), Num: dec}
	if v, ok := dec.Unscaled.Int64(); ok {
		d.I = v
	}
	return d
}

func parseBool(s string) (int64, bool) {
	switch strings.ToLower(s) {
	case "t", "true", "y", "yes", "on", "1":
		return 1, true
	case "f", "false", "n", "no", "off", "0":
		return 0, true
	}
	return 0, false
}

func parseInt(s string, width int) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, width)
	return v, err == nil
}

// parseFloat takes plain decimals, infinities and NaN; hexadecimal and overlong
// forms, overflow and underflow go to Postgres.
func parseFloat(s string, width int) (int64, bool) {
	nonzero := false
	switch body := strings.TrimLeft(s, "+-"); {
	case strings.EqualFold(s, "nan"), strings.EqualFold(body, "infinity"), strings.EqualFold(body, "inf"):
		if len(s)-len(body) > 1 {
			return 0, false
		}
		nonzero = true
	default:
		exponent := false
		for i := 0; i < len(body); i++ {
			switch c := body[i]; {
			case c >= '0' && c <= '9':
				nonzero = nonzero || c != '0' && !exponent
			case c == 'e' || c == 'E':
				exponent = true
			case c == '.' || c == '+' || c == '-':
			default:
				return 0, false
			}
		}
	}
	f, err := strconv.ParseFloat(s, width)
	if err != nil || f == 0 && nonzero {
		return 0, false
	}
	if f != f {
		return 0x7ff8 << 48, true // Postgres' NaN; Go's own has another bit set
	}
	return int64(math.Float64bits(f)), true
}

// digitsOf reads between least and most leading digits of s.
func digitsOf(s string, least, most int) (v int, rest string, ok bool) {
	i := 0
	for i < len(s) && i < most && s[i] >= '0' && s[i] <= '9' {
		v = v*10 + int(s[i]-'0')
		i++
	}
	if i < least || i < len(s) && s[i] >= '0' && s[i] <= '9' {
		return 0, s, false
	}
	return v, s[i:], true
}

var monthDays = [...]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// parseDays reads yyyy-mm-dd, which means the same under every DateStyle.
func parseDays(s string) (year, month, day int, rest string, ok bool) {
	if year, rest, ok = digitsOf(s, 4, 6); !ok || year == 0 || !strings.HasPrefix(rest, "-") {
		return 0, 0, 0, s, false
	}
	if month, rest, ok = digitsOf(rest[1:], 2, 2); !ok || month < 1 || month > 12 || !strings.HasPrefix(rest, "-") {
		return 0, 0, 0, s, false
	}
	if day, rest, ok = digitsOf(rest[1:], 2, 2); !ok || day < 1 || day > monthDays[month-1] {
		return 0, 0, 0, s, false
	}
	return year, month, day, rest, true
}

func validDay(year, month, day int) bool {
	return month != 2 || day < 29 || year%4 == 0 && (year%100 != 0 || year%400 == 0)
}

func infinity(s string, min, max int64) (int64, bool) {
	switch s {
	case "infinity":
		return max, true
	case "-infinity":
		return min, true
	}
	return 0, false
}

// parseDate reads a date with an optional zone, which Postgres ignores (JDBC sends
// one), and an optional BC.
func parseDate(s string) (int64, bool) {
	if v, ok := infinity(s, dateMin, dateMax); ok {
		return v, true
	}
	year, month, day, rest, ok := parseDays(s)
	if !ok {
		return 0, false
	}
	if _, r, found := parseZone(strings.TrimPrefix(rest, " ")); found && rest != "" && rest[0] == ' ' {
		rest = r
	}
	if rest == " BC" {
		year, rest = 1-year, ""
	}
	days := daysOf(year, month, day)
	return days, rest == "" && validDay(year, month, day) && days >= -2451545
}

// parseClock reads hh:mm[:ss[.ffffff]] up to 24:00:00.
func parseClock(s string) (micros int64, rest string, ok bool) {
	var h, m, sec int
	if h, rest, ok = digitsOf(s, 2, 2); !ok || !strings.HasPrefix(rest, ":") {
		return 0, s, false
	}
	if m, rest, ok = digitsOf(rest[1:], 2, 2); !ok {
		return 0, s, false
	}
	if strings.HasPrefix(rest, ":") {
		if sec, rest, ok = digitsOf(rest[1:], 2, 2); !ok {
			return 0, s, false
		}
		if strings.HasPrefix(rest, ".") {
			at := rest[1:]
			var f int
			if f, rest, ok = digitsOf(at, 1, 6); !ok {
				return 0, s, false
			}
			for range 6 - (len(at) - len(rest)) {
				f *= 10
			}
			micros = int64(f)
		}
	}
	micros += (int64(h)*3600 + int64(m)*60 + int64(sec)) * microsPerSecond
	return micros, rest, m < 60 && sec < 60 && micros <= microsPerDay
}

// parseZone reads Z, ±hh, ±hh:mm, ±hh:mm:ss or nothing; found tells which.
func parseZone(s string) (seconds int64, rest string, found bool) {
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
	h, rest, ok := digitsOf(s[1:], 2, 2)
	if !ok || h > 15 {
		return 0, s, false
	}
	seconds = int64(h) * 3600
	for unit := int64(60); unit > 0 && strings.HasPrefix(rest, ":"); unit /= 60 {
		v, r, ok := digitsOf(rest[1:], 2, 2)
		if !ok || v > 59 {
			return 0, s, false
		}
		seconds, rest = seconds+int64(v)*unit, r
	}
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, rest, true
}

// parseTimestamp reads a date, then optionally a time of day after a blank or T,
// then optionally a zone, then optionally BC. The zone is applied or, as for type
// timestamp, ignored.
func parseTimestamp(s string, apply bool) (micros int64, zoned, ok bool) {
	if v, ok := infinity(s, timestampMin, timestampMax); ok {
		return v, true, true
	}
	year, month, day, rest, ok := parseDays(s)
	if !ok {
		return 0, false, false
	}
	var offset int64
	if len(rest) > 3 && (rest[0] == ' ' || rest[0] == 'T') && rest[1] >= '0' && rest[1] <= '9' {
		if micros, rest, ok = parseClock(rest[1:]); !ok || micros == microsPerDay {
			return 0, false, false
		}
		offset, rest, zoned = parseZone(rest)
		if !apply {
			offset = 0
		}
	}
	if rest == " BC" {
		year, rest = 1-year, ""
	}
	if rest != "" || !validDay(year, month, day) {
		return 0, false, false
	}
	days := daysOf(year, month, day)
	// 4714-11-24 BC to 294276-12-31; a zone could lead out of the days at the ends.
	if days <= -2451545+1 || days >= 106751983-1 {
		return 0, false, false
	}
	return days*microsPerDay + micros - offset*microsPerSecond, zoned, true
}

func binaryParam(kind vector.Kind, raw []byte) (d vector.Datum, ok bool) {
	var v int64
	switch kind {
	case vector.Bool:
		if len(raw) == 1 {
			ok = true
			if raw[0] != 0 {
				v = 1
			}
		}
	case vector.Int2:
		if ok = len(raw) == 2; ok {
			v = int64(int16(binary.BigEndian.Uint16(raw)))
		}
	case vector.Int4:
		if ok = len(raw) == 4; ok {
			v = int64(int32(binary.BigEndian.Uint32(raw)))
		}
	case vector.Date:
		if ok = len(raw) == 4; ok {
			v = int64(int32(binary.BigEndian.Uint32(raw)))
			ok = v == dateMin || v == dateMax || v >= -2451545 && v < 2145031949
		}
	case vector.Float4:
		if ok = len(raw) == 4; ok {
			v = float4Bits(binary.BigEndian.Uint32(raw))
		}
	case vector.Int8, vector.Float8:
		if ok = len(raw) == 8; ok {
			v = int64(binary.BigEndian.Uint64(raw))
		}
	case vector.Time:
		if ok = len(raw) == 8; ok {
			v = int64(binary.BigEndian.Uint64(raw))
			ok = v >= 0 && v <= microsPerDay
		}
	case vector.Timestamp, vector.TimestampTZ:
		if ok = len(raw) == 8; ok {
			v = int64(binary.BigEndian.Uint64(raw))
			ok = v == timestampMin || v == timestampMax || v >= -211813488000000000 && v < 9223371331200000000
		}
	case vector.Numeric:
		dec, ok := numericFromBinary(raw)
		return numericDatum(dec), ok
	}
	return vector.Int(kind, v), ok
}

// numericFromBinary is the inverse of appendNumericBinary. NaN, infinities, values
// beyond 38 digits and digits hidden by dscale (numeric_recv cuts them off) are
// not taken.
func numericFromBinary(raw []byte) (dec vector.Decimal, ok bool) {
	if len(raw) < 8 {
		return dec, false
	}
	n := int(binary.BigEndian.Uint16(raw))
	weight := int(int16(binary.BigEndian.Uint16(raw[2:])))
	sign := binary.BigEndian.Uint16(raw[4:])
	scale := int(binary.BigEndian.Uint16(raw[6:]))
	if len(raw) != 8+2*n || sign != numericPos && sign != numericNeg || scale > 1000 || n > 20 {
		return dec, false
	}
	var hi, lo uint64 // the unscaled value
	mulAdd := func(f, add uint64) bool {
		h1, l1 := bits.Mul64(lo, f)
		h2, l2 := bits.Mul64(hi, f)
		if h2 != 0 {
			return false
		}
		var carry uint64
		if lo, carry = bits.Add64(l1, add, 0); carry != 0 {
			h1++
		}
		if hi, carry = bits.Add64(h1, l2, 0); carry != 0 {
			return false
		}
		return hi>>63 == 0
	}
	// Digit i stands for 10^(4*(weight-i)), that is for 10^(4*(weight-i)+scale)
	// of the unscaled value.
	for i := range n {
		g := uint64(binary.BigEndian.Uint16(raw[8+2*i:]))
		if g > 9999 {
			return dec, false
		}
		exp := 4*(weight-i) + scale
		if exp < 0 {
			// The last group may reach beyond dscale with zeros.
			if exp <= -4 {
				if g != 0 {
					return dec, false
				}
				continue
			}
			p := uint64(vector.Pow10(-exp))
			if g%p != 0 || !mulAdd(uint64(vector.Pow10(4+exp)), g/p) {
				return dec, false
			}
			continue
		}
		if !mulAdd(10000, g) {
			return dec, false
		}
	}
	if n > 0 && hi|lo != 0 {
		for exp := 4*(weight-n+1) + scale; exp > 0; exp-- {
			if !mulAdd(10, 0) {
				return dec, false
			}
		}
	}
	u := vector.Int128{Hi: int64(hi), Lo: lo}
	if sign == numericNeg {
		u = u.Neg()
	}
	return vector.Decimal{Unscaled: u, Scale: int16(scale)}, true
}
