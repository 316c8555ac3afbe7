package sqltype

import (
	"encoding/binary"
	"strings"

	"pgaccel/vector"
)

// Strings of bits (src/backend/utils/adt/varbit.c) are held as a character 0 or 1 for each, by which they sort: one that is the
// beginning of another comes first (bit_cmp).
var (
	bitType = bitsType(Type{Kind: vector.Bit, Name: "bit", OID: 1560, Implicit: []vector.Kind{vector.VarBit},
		Samples: []string{"0", "1"}}) // "bit" is of one bit where no other length is declared
	varbitType = bitsType(Type{Kind: vector.VarBit, Name: "varbit", OID: 1562, Preferred: true, Implicit: []vector.Kind{vector.Bit},
		Samples: []string{"", "0", "1", "10", "100000000", "0000000", "11111111", "1010101010101", "01", "0000000000000001", "111111111111111111111111111111111"}})
)

// bitsType completes the type of a kind of strings of bits.
func bitsType(t Type) Type {
	of := vector.TypeOf(t.Kind)
	t.Category, t.NoExtremes, t.Binary = 'V', true, BinaryKey
	t.Left = []string{"2", "b101", "B1", "x1F", "X", " 1", "1 ", "1_0", "-1"}
	t.AppendString = func(dst []byte, s string) []byte { return append(dst, s...) }
	t.AppendStringBinary = func(dst []byte, s string) []byte {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(s)))
		for i := 0; i < len(s); i += 8 {
			b := byte(0)
			for j, c := range []byte(s[i:min(i+8, len(s))]) {
				b |= (c - '0') << (7 - j)
			}
			dst = append(dst, b)
		}
		return dst
	}
	t.Parse = func(s string) (vector.Datum, bool) {
		return vector.Datum{Type: of, Str: s}, strings.Trim(s, "01") == ""
	}
	t.Receive = func(raw []byte) (vector.Datum, bool) {
		r := reader{rest: string(raw)}
		n := int(r.int32())
		if r.short || n < 0 || (n+7)/8 != len(r.rest) {
			return vector.Datum{}, false
		}
		s := make([]byte, n)
		for i := range s {
			s[i] = '0' + r.rest[i/8]>>(7-i%8)&1
		}
		return vector.Datum{Type: of, Str: string(s)}, true
	}
	return t
}
