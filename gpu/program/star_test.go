package program

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgaccel/compress"
	"pgaccel/gpu/device"
	"pgaccel/plan"
)

// star makes the shapes of the Star Schema Benchmark's queries over made-up rows.
type star struct {
	*rand.Rand
	fact []Segment
}

const (
	starDate, starSupplier, starCustomer, starPart  = 0, 1, 2, 3
	starQuantity, starDiscount, starPrice, starCost = 4, 5, 6, 7
)

func encode(values []int64) SegmentColumn {
	c := SegmentColumn{Min: math.MaxInt64, Max: math.MinInt64}
	for _, v := range values {
		c.Min, c.Max = min(c.Min, v), max(c.Max, v)
	}
	c.Words = compress.Words(compress.Encode(values, func(n int) []uint32 { return make([]uint32, n) }))
	return c
}

var starRanges = [][2]int64{{0, 2555}, {1, 2000}, {1, 3000}, {1, 4000}, {1, 50}, {0, 10}, {90000, 10494950}, {54000, 125939}}

func newStar() *star {
	s := &star{Rand: rand.New(rand.NewPCG(7, 7))}
	for _, rows := range []int{4096, 3000, 1025, 31} {
		seg := Segment{Rows: rows}
		for _, r := range starRanges {
			values := make([]int64, rows)
			for i := range values {
				values[i] = r[0] + s.Int64N(r[1]-r[0]+1)
			}
			seg.Columns = append(seg.Columns, encode(values))
		}
		s.fact = append(s.fact, seg)
	}
	return s
}

// dimension is the build of a lookup from rows of which one in some passes; its entries are
// one of a few numbers.
func (s *star) dimension(keys [2]int64, oneIn, numbers int64, kind LookupKind) (Lookup, LookupData) {
	n := keys[1] - keys[0] + 1
	key, attribute, number := make([]int64, n), make([]int64, n), make([]int64, n)
	for i := range key {
		key[i], attribute[i], number[i] = keys[0]+int64(i), s.Int64N(oneIn), 100+s.Int64N(numbers)
	}
	p := &Program{
		Columns: []Column{{}, {}, {}},
		Nodes:   []Node{{Op: OpColumn}, {Op: OpColumn, Index: 1}, {Op: OpColumn, Index: 2}},
		Steps:   []Step{{Kind: StepRange, Node: 1, Permille: 250}},
		Sink:    Sink{Kind: SinkBuild, Build: kind, Key: 0},
	}
	q := &Query{Program: p, Ranges: []Range{{0, 0}}, BuildLo: keys[0], BuildSize: n,
		Segments: []Segment{{Rows: int(n), Columns: []SegmentColumn{encode(key), encode(attribute), encode(number)}}}}
	if kind != LookupBits {
		p.Sink.Digits = []Digit{{Node: 2}}
		q.Digits = []DigitData{{Lo: 100, Stride: 1}}
	}
	return Lookup{Kind: kind}, LookupData{Lo: keys[0], Size: n, Build: q}
}

// query adds ranges and lookups over the fact table's columns.
func (s *star) query() (*Query, func(column int, lo, hi int64, share uint16), func(column int, oneIn, numbers int64, kind LookupKind) (entry int)) {
	p := &Program{Sink: Sink{Kind: SinkGroups}}
	q := &Query{Program: p, Segments: s.fact, Groups: 1}
	for c := range starRanges {
		p.Columns = append(p.Columns, Column{})
		p.Nodes = append(p.Nodes, Node{Op: OpColumn, Index: c})
	}
	between := func(column int, lo, hi int64, share uint16) {
		p.Steps = append(p.Steps, Step{Kind: StepRange, Node: column, Index: len(q.Ranges), Permille: 125 * share})
		q.Ranges = append(q.Ranges, Range{lo, hi})
	}
	join := func(column int, oneIn, numbers int64, kind LookupKind) int {
		l, d := s.dimension(starRanges[column], oneIn, numbers, kind)
		l.Key = column
		p.Steps = append(p.Steps, Step{Kind: StepProbe, Index: len(p.Lookups), Permille: uint16(1000 / oneIn)})
		p.Lookups, q.Lookups = append(p.Lookups, l), append(q.Lookups, d)
		if kind == LookupBits {
			return -1
		}
		p.Nodes = append(p.Nodes, Node{Op: OpEntry, Index: len(p.Lookups) - 1})
		p.Sink.Place = PlaceShared
		p.Sink.Digits = append(p.Sink.Digits, Digit{Node: len(p.Nodes) - 1})
		q.Digits = append(q.Digits, DigitData{Stride: q.Groups})
		q.Groups *= uint64(numbers)
		return len(p.Nodes) - 1
	}
	return q, between, join
}

func (s *star) sum(q *Query, op Op, a, b int) *Query {
	arg := a
	if op != OpConst {
		q.Nodes = append(q.Nodes, Node{Op: op, Args: []int{a, b}})
		arg = len(q.Nodes) - 1
	}
	q.Sink.Accs = []Acc{{Kind: AccSum, Arg: arg, Filter: -1}}
	return q
}

func (s *star) queries() map[string]*Query {
	out := map[string]*Query{}
	q, between, _ := s.query()
	between(starDiscount, 1, 3, 2)
	between(starQuantity, 1, 24, 4)
	between(starDate, 366, 730, 1)
	out["1.1"] = s.sum(q, plan.OpMul, starPrice, starDiscount)

	q, _, join := s.query()
	join(starSupplier, 5, 1, LookupBits)
	join(starPart, 6, 40, Lookup8)
	join(starDate, 1, 7, Lookup8)
	out["2.1"] = s.sum(q, OpConst, starPrice, 0)

	q, _, join = s.query()
	join(starSupplier, 5, 5, Lookup8)
	join(starCustomer, 5, 5, Lookup16)
	join(starDate, 1, 6, Lookup32)
	out["3.1"] = s.sum(q, OpConst, starPrice, 0)

	q, _, join = s.query()
	join(starSupplier, 5, 1, LookupBits)
	join(starCustomer, 5, 5, Lookup8)
	join(starPart, 2, 1, LookupBits)
	join(starDate, 1, 7, Lookup8)
	out["4.1"] = s.sum(q, plan.OpSub, starPrice, starCost)
	return out
}

// TestStar runs the benchmark's shapes as TuningFor has them, lookups built on the device.
func TestStar(t *testing.T) {
	d := newDevice(t)
	for name, q := range newStar().queries() {
		want, err := Reference(q)
		if err != nil {
			t.Fatal(err)
		}
		if len(want.Numbers) == 0 || want.Fault {
			t.Fatalf("query %s: %d groups, fault %v", name, len(want.Numbers), want.Fault)
		}
		var widths []int8
		for _, r := range starRanges {
			widths = append(widths, int8(LaneFormatOf(&SegmentColumn{Min: r[0], Max: r[1]}).Width))
		}
		was := chosen
		for _, c := range []choices{{}, {carries: true, together: true}, {carries: true, windows: true, search: true, rows: 2}} {
			c.threads, c.blocks = was.threads, was.blocks
			chosen = c
			tuning := TuningFor(q, &d.info, widths...)
			chosen = was
			for _, threads := range []int{tuning.Threads, 1024} {
				tuning.Threads = threads
				got, _ := d.compute(q, tuning, 1)
				if text := differ(q.Program, got, want); text != "" {
					t.Errorf("query %s, %+v, %d threads: %s", name, c, threads, text)
				}
				d.free()
			}
		}
		if testing.Verbose() {
			hopper := device.Info{Kind: device.CUDA, SharedPerBlock: 227 << 10}
			x := TuningFor(q, &hopper, widths...)
			t.Logf("query %s: %+v", name, x)
			g, err := Generate(q.Program, x)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("query %s\n%s", name, g.Source.Code)
		}
	}
}
