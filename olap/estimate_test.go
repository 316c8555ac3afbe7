package olap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/vector"
)

// clusteredTable has a column of which so many neighbours are equal, in multiples of 32.
func clusteredTable(t testing.TB, rows, neighbours int) *randomTable {
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "clustered", Columns: []catalog.Column{{Name: "key", Type: vector.TypeOf(vector.Int8)}}}
	l := newStore(t, 0).NewLoader(meta)
	w := l.NewWriter()
	for i := range rows {
		w.Int(0, int64(i/neighbours)*32)
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	table, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Release)
	return &randomTable{meta: meta, table: table}
}

// The rows of a group are neighbours: that a sample has all of them says nothing of how many
// groups there are.
func TestEstimateOfClusteredKeys(t *testing.T) {
	const rows = 1 << 20
	for neighbours, partitioned := range map[int]bool{1: true, 4: true, 1024: false} {
		table := clusteredTable(t, rows, neighbours)
		in := (&world{tables: []*randomTable{table}}).input()
		text := Explain(groupedBy(table, 0), in)
		if got := strings.Contains(text, "partitioned"); got != partitioned {
			t.Errorf("%d rows a group:\n%s", neighbours, text)
		}
		q := groupedBy(table, 0)
		q.Aggs, q.Output = q.Aggs[:2], q.Output[:3] // counts and sums
		text = Explain(q, in)
		if got, want := strings.Contains(text, "added up"), neighbours == 4; got != want {
			t.Errorf("%d rows a group:\n%s", neighbours, text)
		}
	}
}

// BenchmarkClustered groups by keys whose rows are neighbours: with aggregates of many kinds, and with sums alone.
func BenchmarkClustered(b *testing.B) {
	const rows = 1 << 21
	for _, neighbours := range []int{1, 4, 64} {
		table := clusteredTable(b, rows, neighbours)
		for i, s := range append(strategies, strategies[0]) {
			sums := i == len(strategies)
			name := fmt.Sprintf("%d/%s", neighbours, s.name)
			if sums {
				name = fmt.Sprintf("%d/sums", neighbours)
			}
			b.Run(name, func(b *testing.B) {
				q := groupedBy(table, 0)
				if sums {
					q.Aggs, q.Output = q.Aggs[:2], q.Output[:3]
				}
				q.Order = []plan.Order{{Expr: q.Output[0]}}
				q.Limit = plan.Const{Datum: vector.Int(vector.Int8, 100)}
				benchQuery(b, q, (&world{tables: []*randomTable{table}}).input(), Options{grouping: s.how, MemoryLimit: 4 << 30})
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			})
		}
	}
}

func benchQuery(b *testing.B, q *plan.Star, in Input, opt Options) {
	for b.Loop() {
		if _, err := Execute(context.Background(), q, in, opt); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEstimateOfSample draws tiles of keys whose number is known.
func TestEstimateOfSample(t *testing.T) {
	const rows = 4 << 20
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name     string
		key      func(row int) uint64
		keys     float64
		from, to float64 // the estimate's share
	}{
		{"one", func(int) uint64 { return 7 }, 1, 1, 1},
		{"unique", func(row int) uint64 { return uint64(row) }, rows, 0.9, 1},
		{"ascending, 4 rows each", func(row int) uint64 { return uint64(row / 4) }, rows / 4, 0.9, 1.1},
		{"ascending, 4096 rows each", func(row int) uint64 { return uint64(row / 4096) }, rows / 4096, 0.4, 24},
		{"even, few", func(int) uint64 { return uint64(r.IntN(1000)) }, 1000, 0.9, 1.1},
		{"even", func(int) uint64 { return uint64(r.IntN(500_000)) }, 500_000, 0.7, 1.3},
		{"half of all rows one key", func(int) uint64 { return uint64(r.IntN(2) * r.IntN(500_000)) }, 500_000, 0.05, 1.3},
	} {
		s, n := newSampled(1), 0
		for tile := range sampleTiles {
			var keys []uint64
			for row := range tileRows {
				keys = append(keys, c.key(tile*(rows/sampleTiles)+row))
			}
			s.add(keys, make([]uint32, len(keys)), tile+1)
			n += len(keys)
		}
		if got := s.estimate(n, rows); got < c.from*c.keys || got > c.to*c.keys {
			t.Errorf("%s: about %.0f keys, are %.0f", c.name, got, c.keys)
		}
	}
}
