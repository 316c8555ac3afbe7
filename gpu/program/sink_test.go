package program

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgaccel/plan"
)

// TestAccumulators has every accumulator, over values whose sums carry from word to word and
// change their sign, in every place, with few and with many groups.
func TestAccumulators(t *testing.T) {
	d := newDevice(t)
	for place := PlaceSingle; place <= PlaceHash; place++ {
		for _, groups := range []int64{1, 7, 300, 1500} {
			if place == PlaceSingle && groups > 1 || place == PlaceShared && groups > 300 {
				continue
			}
			t.Run(fmt.Sprint(place, groups), func(t *testing.T) {
				d.t = t
				q := accumulate(place, groups)
				want, err := Reference(q)
				if err != nil || want.Fault {
					t.Fatal(err, want)
				}
				if len(want.Numbers) != int(groups) {
					t.Fatalf("%d groups", len(want.Numbers))
				}
				for _, tuning := range []Tuning{
					{Threads: 64, BlocksPerSM: 1, Positions: 4},
					{Threads: 128, BlocksPerSM: 2, Positions: 8, Queue: true, TableBytes: 8 << 10},
				} {
					got, _ := d.compute(q, tuning, 2)
					if text := differ(q.Program, got, want); text != "" {
						t.Errorf("%+v: %s", tuning, text)
					}
				}
				d.free()
			})
		}
	}
}

func accumulate(place Place, groups int64) *Query {
	r := rand.New(rand.NewPCG(5, uint64(groups)))
	p := &Program{Columns: []Column{{}, {Wide: true}, {}, {Wide: true, Nullable: true}}, Sink: Sink{Kind: SinkGroups, Place: place}}
	q := &Query{Program: p, Groups: uint64(groups), Expect: uint64(groups)}
	for _, rows := range []int{3000, 5000, 1} {
		s := Segment{Rows: rows}
		columns := make([][]int64, 4)
		nulls := make([]uint64, (rows+63)/64)
		for i := range rows {
			sign := int64(1 - 2*(i/700%2)) // long runs of either, so that sums go up and down
			group := int64(i) % groups
			if i/200%2 == 0 { // rows that lie together are of one group
				group = int64(i/200) % groups
			}
			columns[0] = append(columns[0], group)
			columns[1] = append(columns[1], sign*int64(r.Uint64()>>1))
			columns[2] = append(columns[2], sign*int64(r.Uint32()>>1))
			columns[3] = append(columns[3], sign*(math.MaxInt64-int64(r.Uint32())))
			if r.IntN(3) == 0 {
				nulls[i/64] |= 1 << (i % 64)
			}
		}
		for c := range columns {
			s.Columns = append(s.Columns, encode(columns[c]))
		}
		s.Columns[3].Nulls = nulls
		q.Segments = append(q.Segments, s)
	}
	for c := range p.Columns {
		p.Nodes = append(p.Nodes, Node{Op: OpColumn, Index: c, Wide: p.Columns[c].Wide, Nullable: p.Columns[c].Nullable})
	}
	q.Constants = []int64{0}
	p.Nodes = append(p.Nodes, Node{Op: OpConst}, Node{Op: plan.OpLt, Args: []int{2, 4}})
	const small, filter = 2, 5
	if place != PlaceSingle {
		p.Sink.Digits = []Digit{{Node: 0}}
		q.Digits = []DigitData{{Stride: 1}}
	}
	add := func(k AccKind, arg, filter int) {
		p.Sink.Accs = append(p.Sink.Accs, Acc{Kind: k, Arg: arg, Filter: filter})
	}
	for _, f := range []int{-1, filter} {
		add(AccRows, -1, f)
		add(AccSum, small, f)
		for _, arg := range []int{1, 2, 3} {
			for _, k := range []AccKind{AccCount, AccSum128, AccMin, AccMax} {
				add(k, arg, f)
			}
		}
	}
	return q
}

// TestFull has a table of groups that is too small say so.
func TestFull(t *testing.T) {
	d := newDevice(t)
	q := accumulate(PlaceHash, 1500)
	q.Expect = 10
	got, _ := d.compute(q, Tuning{Threads: 64, BlocksPerSM: 1, Positions: 4}, 1)
	if !got.Full {
		t.Errorf("%d groups in a table of %d", len(got.Numbers), hashSlotsMin)
	}
}
