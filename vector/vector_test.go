package vector

import (
	"math"
	"math/big"
	"testing"
)

func TestDecimalText(t *testing.T) {
	f := func(unscaled int64, scale int16, want string) {
		t.Helper()
		if got := (Decimal{Int128Of(unscaled), scale}).String(); got != want {
			t.Errorf("%d scale %d: got %s, want %s", unscaled, scale, got, want)
		}
	}
	f(0, 0, "0")
	f(0, 2, "0.00")
	f(-5, 2, "-0.05")
	f(12345, 2, "123.45")
	f(-12345, 0, "-12345")
	f(-1<<63, 3, "-9223372036854775.808")
}

// The expected texts are what Postgres 15 prints for the same divisions.
func TestDivAsPostgres(t *testing.T) {
	f := func(a, b, want string) {
		t.Helper()
		x, _ := ParseDecimal(a)
		y, _ := ParseDecimal(b)
		q, ok := Div(x, y)
		if !ok || q.String() != want {
			t.Errorf("%s / %s: got %s (%v), want %s", a, b, q, ok, want)
		}
	}
	f("6", "2", "3.0000000000000000")
	f("3", "2", "1.5000000000000000")
	f("4.00", "2", "2.0000000000000000")
	f("30000", "2", "15000.000000000000")
	f("0", "3", "0.00000000000000000000")
	f("-1", "3", "-0.33333333333333333333")
	f("1", "3", "0.33333333333333333333")
	f("200", "3", "66.6666666666666667")
	f("0.0001", "3", "0.000033333333333333333333")
	if _, ok := Div(Decimal{Int128Of(1), 0}, Decimal{}); ok {
		t.Error("division by zero succeeded")
	}
}

func TestInt128AgainstBig(t *testing.T) {
	vals := []int64{0, 1, -1, 2, 1 << 62, -1 << 63, 1<<63 - 1, 123456789012345}
	for _, a := range vals {
		for _, b := range vals {
			want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
			if got := Mul64(a, b).Big(); got.Cmp(want) != 0 {
				t.Errorf("%d*%d: got %s, want %s", a, b, got, want)
			}
			p := Mul64(a, b).Add(Int128Of(a))
			want.Add(want, big.NewInt(a))
			if p.Big().Cmp(want) != 0 {
				t.Errorf("%d*%d+%d: got %s, want %s", a, b, a, p.Big(), want)
			}
			back, ok := Int128FromBig(want)
			if !ok || back != p {
				t.Errorf("Int128FromBig(%s): %v %v", want, back, ok)
			}
			if p.Cmp(Int128Of(b)) != want.Cmp(big.NewInt(b)) {
				t.Errorf("Cmp(%s, %d)", want, b)
			}
		}
	}
}

func TestFloatKey(t *testing.T) {
	nan2 := math.Float64frombits(0xfff8000000000123)
	order := []float64{math.Inf(-1), -math.MaxFloat64, -1.5, -math.SmallestNonzeroFloat64, 0,
		math.SmallestNonzeroFloat64, 1, 1.5, math.MaxFloat64, math.Inf(1), math.NaN()}
	key := func(f float64) int64 { return FloatKey(int64(math.Float64bits(f))) }
	for i := 1; i < len(order); i++ {
		if key(order[i-1]) >= key(order[i]) {
			t.Errorf("key(%v) >= key(%v)", order[i-1], order[i])
		}
	}
	if key(math.Copysign(0, -1)) != key(0) || key(nan2) != key(math.NaN()) {
		t.Error("-0 or NaN have several keys")
	}
	for _, f := range order {
		back := math.Float64frombits(uint64(FloatOfKey(key(f))))
		if back != f && !(math.IsNaN(f) && math.IsNaN(back)) {
			t.Errorf("FloatOfKey(FloatKey(%v)) = %v", f, back)
		}
	}
}
