package program

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/plan"
)

// TestTopCode orders values of all magnitudes: a larger one has no smaller code, and small ones have codes of their own.
func TestTopCode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var words [][2]int64
	for n := range 127 {
		for _, add := range []int64{-2, -1, 0, 1, r.Int64()} {
			one := new(big.Int).Lsh(big.NewInt(1), uint(n))
			one.Add(one, new(big.Int).Rsh(big.NewInt(add), uint(max(63-n, 0))))
			one.Add(one, big.NewInt(add%3))
			for _, v := range []*big.Int{one, new(big.Int).Neg(one)} {
				hi := new(big.Int).Rsh(v, 64).Int64()
				lo := new(big.Int).And(v, new(big.Int).SetUint64(1<<64-1)).Uint64()
				words = append(words, [2]int64{hi, int64(lo)})
			}
		}
	}
	for v := int64(-1 << topMantissa); v <= 1<<topMantissa; v++ {
		words = append(words, [2]int64{v >> 63, v})
	}
	slices.SortFunc(words, func(a, b [2]int64) int { return wideValue(a[0], a[1]).Cmp(wideValue(b[0], b[1])) })
	for i, w := range words {
		code := topCode(w[0], w[1])
		if code >= topCodes {
			t.Fatalf("%v has code %d", wideValue(w[0], w[1]), code)
		}
		if i == 0 {
			continue
		}
		x, y := wideValue(words[i-1][0], words[i-1][1]), wideValue(w[0], w[1])
		before := topCode(words[i-1][0], words[i-1][1])
		small := x.CmpAbs(big.NewInt(2<<topMantissa)) < 0 && y.CmpAbs(big.NewInt(2<<topMantissa)) < 0
		if before > code || small && before == code && x.Cmp(y) != 0 {
			t.Errorf("%v has code %d, %v has code %d", x, before, y, code)
		}
	}
}

// TestTop has the first of few and of many groups leave the device, by the rows and by accumulators, in both directions,
// in every place.
func TestTop(t *testing.T) {
	d := newDevice(t)
	left := 0 // groups that did not leave it
	for place := PlaceShared; place <= PlaceHash; place++ {
		for i, by := range []int{-1, 1, 3, 4, 19} { // rows, a sum, one of 128 bits, a minimum, a maximum of few rows
			for _, groups := range []int64{1, 63, 64, 127, 128, 129, 511, 512, 513} {
				if place == PlaceShared && groups > 300 {
					continue
				}
				q := accumulate(place, groups)
				q.Program.Sink.Top, q.Program.Sink.TopBy, q.Program.Sink.TopDesc = true, by, (i+int(place))%2 == 0
				q.TopDigit = DigitPlace{1, q.Groups}
				q.Program.Sink.TopThen, q.Program.Sink.TopThenDesc = TopThen((i+int(groups))%2), i%3 == 0
				if i == 0 && q.Program.Sink.TopThen != TopAll && groups > 300 {
					q.Program.Sink.TopBy = TopTied
				}
				all, err := Reference(q)
				if err != nil {
					t.Fatal(err)
				}
				for _, q.Top = range []uint64{0, 1, 64, 129}[int(place+Place(groups))%2:] {
					want, err := Reference(q)
					if err != nil {
						t.Fatal(err)
					}
					left += len(all.Numbers) - len(want.Numbers)
					if text := leftOut(q, want, all); text != "" {
						t.Errorf("%d groups in place %d by %d, %d wanted: %s", groups, place, by, q.Top, text)
					}
					got, _ := d.compute(q, Tuning{Threads: 64, BlocksPerSM: 1, Positions: 4}, 2)
					if text := differ(q.Program, got, want); text != "" {
						t.Errorf("%d groups in place %d by %d, %d wanted: %s", groups, place, by, q.Top, text)
					}
				}
				d.free()
			}
		}
	}
	if left < 5000 {
		t.Errorf("%d groups were left out", left)
	}
}

// leftOut says which group is not there that is among the first, by the values themselves.
func leftOut(q *Query, r, all *Result) string {
	s := &q.Sink
	value := func(r *Result, i int) *big.Int {
		if s.TopBy == TopTied {
			return new(big.Int)
		}
		if s.TopBy < 0 {
			return big.NewInt(r.Rows[i])
		}
		if a := &r.Accs[s.TopBy]; a.Hi != nil {
			return wideValue(a.Hi[i], a.V[i])
		}
		return big.NewInt(r.Accs[s.TopBy].V[i])
	}
	there := map[uint64]bool{}
	for _, n := range r.Numbers {
		there[n] = true
	}
	for i, n := range all.Numbers {
		if there[n] {
			continue
		}
		before := 0
		for k := range r.Numbers {
			c := value(r, k).Cmp(value(all, i))
			if s.TopDesc {
				c = -c
			}
			if c == 0 && s.TopThen != TopAll {
				if c = cmp.Compare(r.Numbers[k], n); s.TopThenDesc {
					c = -c
				}
			}
			if c < 0 {
				before++
			}
		}
		if q.Top == 0 || before < int(q.Top) {
			return fmt.Sprintf("group %d is not there, before which there are %d", n, before)
		}
	}
	return ""
}

// wideValue is a value of 128 bits.
func wideValue(hi, lo int64) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(hi), 64)
	return v.Add(v, new(big.Int).SetUint64(uint64(lo)))
}

// TestTopIsRefused: there is nothing to be left out of one group, or of groups of which only is asked which there are.
func TestTopIsRefused(t *testing.T) {
	for _, s := range []Sink{
		{Place: PlaceSingle, Top: true, TopBy: -1},
		{Place: PlaceHash, Digits: []Digit{{}}, Distinct: true, Top: true, TopBy: -1},
		{Place: PlaceHash, Digits: []Digit{{}, {}}, Prefix: 1, Distinct: true, Counted: true, Top: true, TopBy: -1, TopThen: TopPrefix},
		{Place: PlaceHash, Digits: []Digit{{}}, Distinct: true, Counted: true, Top: true, TopBy: TopTied, TopThen: TopNumber},
		{Place: PlaceHash, Digits: []Digit{{}}, Top: true},
		{Place: PlaceHash, Digits: []Digit{{}}, Top: true, TopBy: -2},
	} {
		p := &Program{Nodes: []Node{{Op: OpConst}, {Op: plan.OpNot, Args: []int{0}}}, Sink: s}
		if err := validate(p); err == nil {
			t.Error(fmt.Sprint(s), "is no error")
		}
	}
}
