package sqltype

import (
	"strings"

	"pgaccel/vector"
)

const OIDTime = 1083

var timeType = word(Type{Kind: vector.Time, Name: "time", OID: OIDTime, Category: 'D', Implicit: []vector.Kind{vector.Interval, vector.TimeTZ}, Binary: BinaryInt8, AppendText: AppendTime, Least: 0, Greatest: MicrosPerDay,
	Samples: []string{"00:00:00", "00:00:00.000001", "12:34:56.7", "23:59:59.999999", "24:00:00"}}, parseTime)

// parseTime reads hh:mm[:ss[.ffffff]] up to 24:00:00, in microseconds.
func parseTime(s string) (micros int64, ok bool) {
	micros, rest, ok := cutTime(s)
	return micros, ok && rest == ""
}

// cutTime reads the time of day that s begins with.
func cutTime(s string) (micros int64, rest string, ok bool) {
	var h, m, sec int
	if h, rest, ok = cutDigits(s, 2, 2); !ok || !strings.HasPrefix(rest, ":") {
		return 0, s, false
	}
	if m, rest, ok = cutDigits(rest[1:], 2, 2); !ok {
		return 0, s, false
	}
	if strings.HasPrefix(rest, ":") {
		if sec, rest, ok = cutDigits(rest[1:], 2, 2); !ok {
			return 0, s, false
		}
		if strings.HasPrefix(rest, ".") {
			at := rest[1:]
			var f int
			if f, rest, ok = cutDigits(at, 1, 6); !ok {
				return 0, s, false
			}
			for range 6 - (len(at) - len(rest)) {
				f *= 10
			}
			micros = int64(f)
		}
	}
	micros += (int64(h)*3600 + int64(m)*60 + int64(sec)) * MicrosPerSecond
	return micros, rest, m < 60 && sec < 60 && micros <= MicrosPerDay
}

// cutDigits reads the digits that s begins with: between least and most, and no more.
func cutDigits(s string, least, most int) (v int, rest string, ok bool) {
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

// AppendTime appends hh:mm:ss and the fraction, without its trailing zeros.
func AppendTime(dst []byte, micros int64) []byte {
	seconds, fraction := int(micros/MicrosPerSecond), int(micros%MicrosPerSecond)
	dst = append(appendTwoDigits(dst, seconds/3600), ':')
	dst = append(appendTwoDigits(dst, seconds/60%60), ':')
	dst = appendTwoDigits(dst, seconds%60)
	if fraction != 0 {
		dst = append(dst, '.')
		for p := 100_000; fraction > 0; p /= 10 {
			dst = append(dst, byte('0'+fraction/p))
			fraction %= p
		}
	}
	return dst
}

func appendTwoDigits(dst []byte, v int) []byte { return append(dst, byte('0'+v/10), byte('0'+v%10)) }
