package vector

import "testing"

func TestDatumDecimal(t *testing.T) {
	varying := NumericType(VaryingScale)
	wide := Decimal{Unscaled: Int128Of(1 << 62).Add(Int128Of(1 << 62)), Scale: 3}
	for _, c := range []struct {
		d    Datum
		want Decimal
	}{
		{Int(Int2, -7), Decimal{Unscaled: Int128Of(-7)}},
		{Datum{Type: NumericType(2), I: 150}, Decimal{Unscaled: Int128Of(150), Scale: 2}},
		{Datum{Type: NumericType(2)}, Decimal{Scale: 2}},
		{Datum{Type: NumericType(3), Num: wide}, wide},
		{Datum{Type: varying, Num: Decimal{Scale: 4}}, Decimal{Scale: 4}},
		{Datum{Type: varying}, Decimal{}},
	} {
		if got := c.d.Decimal(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.d, got, c.want)
		}
	}
}
