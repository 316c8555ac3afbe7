package catalog

import "testing"

func TestNormalizeLSN(t *testing.T) {
	const seg, block = 16 << 20, 8192
	for _, c := range []struct{ in, want uint64 }{
		{0, 0},
		{0xA3A50018, 0xA3A50000},          // just past a page header
		{0xA3A50028, 0xA3A50028},          // 40 inside a segment is a record
		{5*seg + 40, 5 * seg},             // just past a segment's header
		{5*seg + 24, 5 * seg},             // cannot happen, and must not wait past the start
		{5*seg + 8192 + 24, 5*seg + 8192}, // the segment's second page
		{5*seg + 8192, 5*seg + 8192},
		{5*seg + 8192 + 23, 5*seg + 8192 + 23},
		{5*seg + 8192 + 25, 5*seg + 8192 + 25},
	} {
		if got := NormalizeLSN(c.in, seg, block); got != c.want {
			t.Errorf("NormalizeLSN(%X) = %X, want %X", c.in, got, c.want)
		}
	}
	if got := NormalizeLSN(24, 0, 0); got != 24 {
		t.Errorf("without sizes: %d", got)
	}
}

func TestParseLSN(t *testing.T) {
	for text, want := range map[string]uint64{"0/0": 0, "16/B374D848": 0x16B374D848, "FFFFFFFF/FFFFFFFF": 1<<64 - 1, "a/b": 0xA0000000B} {
		if got, err := ParseLSN(text); err != nil || got != want {
			t.Errorf("%q: %X, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "/", "0/", "/0", "0/0/0", "0/0 ", "100000000/0", "0/100000000", "-1/0", "0/x"} {
		if got, err := ParseLSN(text); err == nil {
			t.Errorf("%q was taken as %X", text, got)
		}
	}
}
