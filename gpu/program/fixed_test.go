package program

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestFixedPoint adds up doubles as halves of fixed-point numbers, at edge lengths and at the edges of
// their window, and compares with sums of big integers. What is outside of the window is a fault.
func TestFixedPoint(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(4, 4))
	for i, n := range edgeLengths {
		const width = 63
		base := []int64{1, 900, 1023, 2046 - width}[i%4]
		double := func(exponent int64) int64 {
			return r.Int64N(1<<52) | exponent<<52 | int64(r.IntN(2))<<63
		}
		values := make([]int64, n)
		for k := range values {
			switch values[k] = double(base + r.Int64N(width+1)); r.IntN(9) {
			case 0:
				values[k] = 0
			case 1:
				values[k] = double(base) | (1<<52 - 1)
			case 2:
				values[k] = double(base+width) | (1<<52 - 1)
			}
		}
		want := new(big.Int)
		for _, v := range values {
			x := new(big.Float).SetPrec(200).SetFloat64(math.Float64frombits(uint64(v)))
			x.SetMantExp(x, int(1075-base))
			whole, exact := x.Int(nil)
			if exact != big.Exact {
				t.Fatal(v, base)
			}
			want.Add(want, whole)
		}
		q := sumOfDoubles(values, base)
		for _, tuning := range []Tuning{{Threads: 64, BlocksPerSM: 1, Positions: 4}, {Threads: 128, BlocksPerSM: 2, Positions: 8, Queue: true}} {
			got, _ := d.compute(q, tuning, 1)
			if got.Fault || (len(got.Rows) > 0) != (n > 0) {
				t.Fatalf("%d rows: %+v", n, got)
			}
			if n == 0 {
				continue
			}
			half := func(a int) *big.Int {
				v := new(big.Int).Lsh(big.NewInt(got.Accs[a].Hi[0]), 64)
				return v.Add(v, new(big.Int).SetUint64(uint64(got.Accs[a].V[0])))
			}
			sum := half(0)
			if sum.Lsh(sum, 63).Add(sum, half(1)); sum.Cmp(want) != 0 {
				t.Errorf("%d rows from %d on: %v, want %v", n, base, sum, want)
			}
		}
		d.free()
	}
	inf, nan := math.Inf(1), math.NaN()
	for _, x := range []struct {
		v     float64
		base  int64
		fault bool
	}{{1, 1023, false}, {1, 1024, true}, {1, 1023 - 63, false}, {1, 1023 - 64, true}, {-1, 1023, false}, {0, 1, false},
		{math.Copysign(0, -1), 1, true}, {inf, 2047 - 20, true}, {-inf, 1983, true}, {nan, 1983, true}, {5e-324, 1, true}, {0x1p-1022, 1, false}} {
		q := sumOfDoubles([]int64{int64(math.Float64bits(x.v))}, x.base)
		want, err := Reference(q)
		got, _ := d.compute(q, Tuning{Threads: 64, BlocksPerSM: 1, Positions: 4}, 1)
		if err != nil || got.Fault != x.fault || want.Fault != x.fault {
			t.Errorf("%v from %d on: fault %v, of the reference %v, %v", x.v, x.base, got.Fault, want.Fault, err)
		} else if text := differ(q.Program, got, want); text != "" {
			t.Error(fmt.Sprint(x), text)
		}
		d.free()
	}
}

func sumOfDoubles(values []int64, base int64) *Query {
	p := &Program{Columns: []Column{{Wide: true}}, Nodes: []Node{{Op: OpColumn, Wide: true},
		{Op: OpFixedHigh, Args: []int{0}, Wide: true}, {Op: OpFixedLow, Args: []int{0}, Wide: true}},
		Sink: Sink{Kind: SinkGroups, Accs: []Acc{{Kind: AccSum128, Arg: 1, Filter: -1}, {Kind: AccSum128, Arg: 2, Filter: -1}}}}
	return &Query{Program: p, Groups: 1, Constants: []int64{base}, Segments: []Segment{{Rows: len(values), Columns: []SegmentColumn{encode(values)}}}}
}

// TestPrefix groups by numbers that 64 bits do not hold, at edge lengths and over several segments.
func TestPrefix(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(8, 8))
	for i, n := range edgeLengths {
		for _, distinct := range []bool{false, true} {
			p := &Program{Columns: []Column{{Wide: true, Nullable: true}, {}, {Wide: true}},
				Nodes: []Node{{Op: OpColumn, Wide: true, Nullable: true}, {Op: OpColumn, Index: 1}, {Op: OpColumn, Index: 2, Wide: true}},
				Sink:  Sink{Kind: SinkGroups, Place: PlaceHash, Prefix: 1, Distinct: distinct, Digits: []Digit{{Node: 0, Nullable: true}, {Node: 1}, {Node: 2}}}}
			if !distinct {
				p.Sink.Accs = []Acc{{Kind: AccSum128, Arg: 2, Filter: -1}, {Kind: AccMin, Arg: 1, Filter: -1}}
			}
			// The largest numbers that there may be: of the prefix and of the others.
			q := &Query{Program: p, Expect: uint64(n), Digits: []DigitData{{Lo: math.MinInt64, Stride: 1}, {Lo: -3, Stride: 1}, {Lo: 0, Stride: 7}}}
			most := int64(SuffixMax/7) - 1
			for _, rows := range []int{n, 100, 0, n} {
				columns := make([][]int64, 3)
				nulls := make([]uint64, (rows+63)/64)
				for k := range rows {
					if r.IntN(5) == 0 {
						nulls[k/64] |= 1 << (k % 64)
					}
					columns[0] = append(columns[0], []int64{math.MinInt64, math.MaxInt64 - 2, 5, r.Int64N(40) << 50}[r.IntN(4)])
					columns[1] = append(columns[1], -3+r.Int64N(7))
					columns[2] = append(columns[2], []int64{0, most, most - r.Int64N(3)}[r.IntN(3)])
				}
				s := Segment{Rows: rows}
				for c := range columns {
					s.Columns = append(s.Columns, encode(columns[c]))
				}
				s.Columns[0].Nulls = nulls
				if rows == 100 {
					s.Live = []uint64{r.Uint64(), r.Uint64() & (1<<36 - 1)}
				}
				q.Segments = append(q.Segments, s)
			}
			want, err := Reference(q)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := d.compute(q, Tuning{Threads: 64, BlocksPerSM: 1 + i%2, Positions: 4, Queue: i%2 == 0}, 2)
			if text := differ(p, got, want); text != "" {
				t.Errorf("%d rows: %s", n, text)
			}
			d.free()
		}
	}
	q := accumulate(PlaceHash, 1500)
	q.Sink.Prefix, q.Expect = 1, 10
	if got, _ := d.compute(q, Tuning{Threads: 64, BlocksPerSM: 1, Positions: 4}, 1); !got.Full {
		t.Errorf("%d prefixes in a table of %d", len(got.Numbers), hashSlotsMin)
	}
}
