package sqltype

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestUnscaledFromBinary(t *testing.T) {
	num := func(weight int16, sign uint16, digits ...uint16) []byte {
		b := binary.BigEndian.AppendUint16(nil, uint16(len(digits)))
		b = binary.BigEndian.AppendUint16(b, uint16(weight))
		b = append(binary.BigEndian.AppendUint16(b, sign), 0, 0)
		for _, d := range digits {
			b = binary.BigEndian.AppendUint16(b, d)
		}
		return b
	}
	for _, c := range []struct {
		b      []byte
		scale  int
		want   int64
		reason string
	}{
		{num(0, 0), 2, 0, ""},
		{num(4, 0, 922, 3372, 368, 5477, 5807), 0, math.MaxInt64, ""},
		{num(4, 0x4000, 922, 3372, 368, 5477, 5808), 0, math.MinInt64, ""},
		{num(4, 0, 922, 3372, 368, 5477, 5808), 0, 0, "it holds a value that exceeds 64 bits"},
		{num(4, 0x4000, 922, 3372, 368, 5477, 5809), 0, 0, "it holds a value that exceeds 64 bits"},
		{num(4, 0, 1844, 6744, 737, 955, 1616), 0, 0, "it holds a value that exceeds 64 bits"},
		{num(5, 0, 1), 0, 0, "it holds a value that exceeds 64 bits"},
		{num(100, 0, 0), 0, 0, ""},
		{num(-1, 0, 1), 3, 0, "it holds a value with more decimals than declared"},
		{num(-1, 0, 1230), 3, 123, ""},
		{num(-2, 0, 1), 3, 0, "it holds a value with more decimals than declared"},
		{num(0, 0xC000), 0, 0, "it holds NaN"},
		{num(0, 0xD000), 0, 0, "it holds infinity"},
		{num(0, 0x1234), 0, 0, "a numeric value has a bad sign"},
		{num(0, 0, 1)[:9], 0, 0, "a numeric value has a bad length"},
		{[]byte{0}, 0, 0, "a numeric value is cut off"},
	} {
		if got, reason := UnscaledFromBinary(c.b, c.scale); got != c.want || reason != c.reason {
			t.Errorf("%x: %d %q, want %d %q", c.b, got, reason, c.want, c.reason)
		}
	}
}
