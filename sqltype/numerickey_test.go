package sqltype

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// keyedNumerics are numerics in ascending order; those between which there is a blank are equal.
var keyedNumerics = []string{"-Infinity", "-1" + strings.Repeat("0", 300), "-" + strings.Repeat("9", 45), "-170141183460469231731687303715884105727", "-10001", "-10000.0001", "-10000 -10000.00", "-9999.9999", "-12.34", "-12.3 -12.3000", "-1.0001",
	"-1 -1.0", "-0.0001", "-0.00001 -0.000010", "0 0.0 0.00000000", "0." + strings.Repeat("0", 900) + "1", "0.00001", "0.0001 0.00010", "0.01", "1 1.0 1.0000", "1.0001", "1.1", "9999", "9999.0001", "10000 10000.0", "10000.0001", "10001",
	"99990001", "100000000", "170141183460469231731687303715884105727", "340282366920938463463374607431768211456", strings.Repeat("9", 45) + ".5", "1" + strings.Repeat("0", 131071), "Infinity", "NaN"}

// TestNumericKeys: keys sort as the values do, equal ones begin alike, and decimals come back as they were.
func TestNumericKeys(t *testing.T) {
	var last []byte
	for _, equal := range keyedNumerics {
		var prefix []byte
		for _, s := range strings.Fields(equal) {
			key, ok := NumericKeyFromText(nil, s)
			if !ok {
				t.Fatalf("%.40s is not read", s)
			}
			if bytes.Compare(last, key) >= 0 {
				t.Errorf("%.40s: %.40x is not behind %.40x", s, key, last)
			}
			last = key
			d, held := NumericOfKey(key)
			if special := strings.ContainsAny(s, "Ny"); special {
				if held || len(key) != 1 {
					t.Errorf("%s has the key %x", s, key)
				}
				continue
			}
			start := key[:len(key)-2]
			if prefix != nil && !bytes.Equal(prefix, start) {
				t.Errorf("%s: %x, want %x before the scale", s, key, prefix)
			}
			prefix = start
			fits, _ := new(big.Int).SetString(strings.ReplaceAll(s, ".", ""), 10)
			if want := fits.BitLen() <= 127; held != want {
				t.Errorf("%.60s: held is %v, want %v", s, held, want)
			}
			if !held {
				continue
			}
			if d.String() != s {
				t.Errorf("%s comes back as %s", s, d)
			}
			if fromBinary, ok := NumericKeyFromBinary(nil, AppendNumericBinary(nil, d)); !ok || !bytes.Equal(fromBinary, key) {
				t.Errorf("%s: %x of the binary form, want %x", s, fromBinary, key)
			}
		}
	}
	for raw, want := range map[string]string{"\x00\x00\x00\x00\xc0\x00\x00\x00": "NaN", "\x00\x00\x00\x00\xd0\x00\x00\x20": "Infinity", "\x00\x00\x00\x00\xf0\x00\x00\x20": "-Infinity",
		"\x00\x03\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00": "7"} {
		key, ok := NumericKeyFromBinary(nil, []byte(raw))
		if text, _ := NumericKeyFromText(nil, want); !ok || !bytes.Equal(key, text) {
			t.Errorf("%s: %x, want %x", want, key, text)
		}
	}
	for _, s := range []string{"", "-", ".5", "5.", "1e5", "1.2.3", "--1", "+1", "x", "1 ", "nan"} {
		if _, ok := NumericKeyFromText(nil, s); ok {
			t.Errorf("%q is read", s)
		}
	}
	for _, raw := range []string{"", "\x00\x01\x00\x00\x00\x00\x00\x00", "\x00\x01\x00\x00\x00\x00\x00\x00\x27\x10", "\x00\x00\x00\x00\x12\x34\x00\x00"} {
		if _, ok := NumericKeyFromBinary(nil, []byte(raw)); ok {
			t.Errorf("%x is read", raw)
		}
	}
	for _, key := range []string{"", "\x02", "\x03\x80\x00", "\x09\x80\x00\x00\x02\x00\x00\x00\x00", "\x03" + string(slices.Repeat([]byte{0x80, 0}, 100))} {
		if d, ok := NumericOfKey(key); ok {
			t.Errorf("%.20x is %s", key, d)
		}
	}
}
