package sqltype

import (
	"strings"

	"pgaccel/vector"
)

const oidMACAddr = 829

// macaddrType is held as the 48-bit integer of its six bytes, the first one highest: bytes
// sort without sign.
var macaddrType = word(Type{Kind: vector.MACAddr, Name: "macaddr", OID: oidMACAddr, Category: 'U', Implicit: []vector.Kind{vector.MACAddr8}, NoExtremes: true,
	Binary: BinaryOther, Size: 6, Word: macaddrFromBinary, AppendBinary: appendMACAddrBinary, AppendText: appendMACAddr,
	Least: 0, Greatest: 1<<48 - 1,
	Samples: []string{"00:00:00:00:00:00", "08:00:2b:01:02:03", "08-00-2B-01-02-04", "08002b:010205", "08002b-010206", "0800.2b01.0207", "0800-2b01-0208", "08002b010209", "8:0:2b:1:2:a",
		"7f:ff:ff:ff:ff:ff", "80:00:00:00:00:00", "00:00:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff"},
	Left: []string{"", "8", "8:0:2b:1:2", "8:0:2b:1:2:3:4", "8:0:2b:1:2:g", "8:0:2b:1:2:100", "008:0:2b:1:2:3", "0x8:0:2b:1:2:3", "-8:0:2b:1:2:3", "8: 0:2b:1:2:3", "8:0:2b-1:2:3", "8::2b:1:2:3",
		"08002b01020", "08002b0102030", "08002b:01020", "08002b.010203", "0800:2b01:0203", "0800.2b01-0203", "0800.2b010203", "08 002b010203", "+8002b010203"},
}, parseMACAddr)

// parseMACAddr reads the forms of macaddr_in (src/backend/utils/adt/mac.c): six bytes of one
// or two digits with colons or hyphens between them, or twelve digits in one, two or three
// parts. Signs, blanks and prefixes within, which its sscanf takes, are for Postgres.
func parseMACAddr(s string) (v int64, ok bool) {
	for _, sep := range []string{":", "-"} {
		if parts := strings.Split(s, sep); len(parts) == 6 {
			for _, p := range parts {
				b, good := hexDigits(p, 1, 2)
				if !good {
					return 0, false
				}
				v = v<<8 | b
			}
			return v, true
		}
	}
	switch {
	case len(s) == 13 && (s[6] == ':' || s[6] == '-'):
		s = s[:6] + s[7:]
	case len(s) == 14 && (s[4] == '.' || s[4] == '-') && s[9] == s[4]:
		s = s[:4] + s[5:9] + s[10:]
	}
	return hexDigits(s, 12, 12)
}

// hexDigits reads all of s: between least and most hexadecimal digits.
func hexDigits(s string, least, most int) (v int64, ok bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			v = v<<4 | int64(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			v = v<<4 | int64(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, least <= len(s) && len(s) <= most
}

// appendMACAddr appends the text form: aa:bb:cc:dd:ee:ff.
func appendMACAddr(dst []byte, v int64) []byte {
	const digits = "0123456789abcdef"
	for shift := 40; shift >= 0; shift -= 8 {
		if shift < 40 {
			dst = append(dst, ':')
		}
		dst = append(dst, digits[v>>(shift+4)&15], digits[v>>shift&15])
	}
	return dst
}

func macaddrFromBinary(raw []byte) (v int64) {
	for _, b := range raw {
		v = v<<8 | int64(b)
	}
	return v
}

func appendMACAddrBinary(dst []byte, v int64) []byte {
	return append(dst, byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}
