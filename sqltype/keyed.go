package sqltype

import (
	"encoding/binary"
	"strconv"
	"strings"

	"pgaccel/vector"
)

// Types whose values are held as strings that sort as they do, of a size.
var (
	// macaddr8Type is held as its bytes, by which it sorts (macaddr8_cmp_internal in src/backend/utils/adt/mac8.c).
	macaddr8Type = sized(Type{Kind: vector.MACAddr8, Name: "macaddr8", OID: 774, Category: 'U', Implicit: []vector.Kind{vector.MACAddr}, NoExtremes: true, Size: 8,
		AppendString: appendMACAddr8,
		Samples:      []string{"00:00:00:00:00:00:00:00", "08:00:2b:01:02:03:04:05", "08-00-2B-01-02-03-04-06", "7f:ff:ff:ff:ff:ff:ff:ff", "80:00:00:00:00:00:00:00", "00:00:00:00:00:00:00:ff", "ff:ff:ff:ff:ff:ff:ff:ff"},
		Left:         []string{"", "08:00:2b:01:02:03", "8:0:2b:1:2:3:4:5", "08002b0102030405", "08:00:2b:01:02:03:04:0g", "08:00:2b:01:02:03:04", "08:00:2b:01-02:03:04:05"}}, parseMACAddr8)

	// lsnType is held as its eight bytes, by which it sorts (pg_lsn_cmp in src/backend/utils/adt/pg_lsn.c).
	lsnType = sized(Type{Kind: vector.LSN, Name: "pg_lsn", OID: 3220, Category: 'U', Size: 8,
		AppendString: func(dst []byte, s string) []byte {
			dst = appendUpperHex(dst, binary.BigEndian.Uint32([]byte(s)))
			return appendUpperHex(append(dst, '/'), binary.BigEndian.Uint32([]byte(s[4:])))
		},
		Samples: []string{"0/0", "0/1", "16/B374D848", "16/b374d849", "80000000/0", "7FFFFFFF/FFFFFFFF", "FFFFFFFF/FFFFFFFF", "0/80000000", "00000001/00000002"},
		Left:    []string{"", "/", "1", "1/", "/1", "1/123456789", "123456789/1", "g/1", "1/-1", "1/1/1"}}, parseLSN)

	// timetzType is held as its moment in UTC, then the zone west of it: so it sorts (timetz_cmp_internal in date.c).
	timetzType = sized(Type{Kind: vector.TimeTZ, Name: "timetz", OID: 1266, Category: 'D', Size: 12,
		AppendString: func(dst []byte, s string) []byte { return appendTimeTZ(dst, timeTZBinary(s)) },
		Samples:      []string{"00:00:00+00", "24:00:00-12", "12:34:56.789+05:30", "23:59:59.999999-15:59:59", "01:02:03+15:59", "10:00:00-00:30", "12:00:00+00", "13:00:00+01", "11:00:00-01", "00:00:00+15:59:59", "24:00:00-15:59:59"},
		Left:         []string{"", "12:00:00", "12:00+00", "12:00:00 UTC", "12:00:00+16", "25:00:00+00", "12:00:00+1", "12:00:00+00:60", "+00", "12:00:00+00:00:60"}}, parseTimeTZ)
)

// sized completes the Type of a kind that is held as a string of its size, which is the binary form but for timetz.
func sized(t Type, parse func(s string) (string, bool)) Type {
	of := vector.TypeOf(t.Kind)
	t.Binary = BinaryBytes
	t.Parse = func(s string) (vector.Datum, bool) {
		v, ok := parse(s)
		return vector.Datum{Type: of, Str: v}, ok
	}
	size := t.Size
	t.Receive = func(raw []byte) (vector.Datum, bool) {
		return vector.Datum{Type: of, Str: string(raw)}, len(raw) == size
	}
	if t.Kind == vector.TimeTZ {
		t.Binary, t.AppendStringBinary = BinaryKey, func(dst []byte, s string) []byte { return append(dst, timeTZBinary(s)...) }
		t.Receive = func(raw []byte) (vector.Datum, bool) {
			if len(raw) != size {
				return vector.Datum{}, false
			}
			key, ok := timeTZKey(int64(binary.BigEndian.Uint64(raw)), int32(binary.BigEndian.Uint32(raw[8:])))
			return vector.Datum{Type: of, Str: key}, ok
		}
	}
	return t
}

// parseMACAddr8 reads eight bytes of two digits with colons or hyphens between; six bytes, and other forms, are for Postgres.
func parseMACAddr8(s string) (string, bool) {
	if len(s) != 8*3-1 || s[2] != ':' && s[2] != '-' {
		return "", false
	}
	var b [8]byte
	for i, part := range strings.Split(s, s[2:3]) {
		v, ok := hexDigits(part, 2, 2)
		if !ok || i == len(b) {
			return "", false
		}
		b[i] = byte(v)
	}
	return string(b[:]), strings.Count(s, s[2:3]) == len(b)-1
}

// appendMACAddr8 writes bytes with colons between.
func appendMACAddr8(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	for i := range len(s) {
		if i > 0 {
			dst = append(dst, ':')
		}
		dst = append(dst, digits[s[i]>>4], digits[s[i]&15])
	}
	return dst
}

// parseLSN reads what pg_lsn_in_internal does: two numbers of one to eight digits.
func parseLSN(s string) (string, bool) {
	high, low, ok := strings.Cut(s, "/")
	h, okHigh := hexDigits(high, 1, 8)
	l, okLow := hexDigits(low, 1, 8)
	return string(binary.BigEndian.AppendUint64(nil, uint64(h)<<32|uint64(l))), ok && okHigh && okLow
}

// appendUpperHex writes a number in hexadecimal digits, those above 9 in upper case.
func appendUpperHex(dst []byte, n uint32) []byte {
	return append(dst, strings.ToUpper(strconv.FormatUint(uint64(n), 16))...)
}

// zoneLimit is the least displacement, in seconds, that no zone has (TZDISP_LIMIT of datatype/timestamp.h).
const zoneLimit = 16 * 3600

// timeTZKey is the string by which a time in a zone is held: both parts are moved so that they have no sign.
func timeTZKey(micros int64, west int32) (key string, ok bool) {
	b := binary.BigEndian.AppendUint64(nil, uint64(micros+int64(west)*MicrosPerSecond)^1<<63)
	return string(binary.BigEndian.AppendUint32(b, uint32(west)^1<<31)), 0 <= micros && micros <= MicrosPerDay && -zoneLimit < west && west < zoneLimit
}

// timeTZBinary is the binary form of what timeTZKey has.
func timeTZBinary(key string) string {
	west := int32(binary.BigEndian.Uint32([]byte(key[8:])) ^ 1<<31)
	micros := int64(binary.BigEndian.Uint64([]byte(key))^1<<63) - int64(west)*MicrosPerSecond
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(micros)), uint32(west)))
}

// parseTimeTZ reads a time with seconds before a zone of two digits for hours, which may have minutes and seconds.
func parseTimeTZ(s string) (string, bool) {
	at := strings.IndexAny(s, "+-")
	if at < len("00:00:00") {
		return "", false
	}
	micros, ok := timeType.ParseWord(s[:at])
	west := int64(0)
	for i, part := range strings.Split(s[at+1:], ":") {
		if len(part) != 2 || i > 2 || part[0] < '0' || part[0] > '9' || part[1] < '0' || part[1] > '9' || i > 0 && part > "59" {
			return "", false
		}
		n := int64(part[0]-'0')*10 + int64(part[1]-'0')
		west += n * [...]int64{3600, 60, 1}[i]
	}
	if s[at] == '+' {
		west = -west
	}
	key, inRange := timeTZKey(micros, int32(west))
	return key, ok && inRange
}
