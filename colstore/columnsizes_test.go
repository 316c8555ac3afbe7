package colstore

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestColumnSizes(t *testing.T) {
	s := New(Options{SegmentRows: 1024})
	defer s.Close()
	if got := s.ColumnSizes(); len(got) != 0 {
		t.Errorf("an empty store: %+v", got)
	}
	var rows []row
	random := rand.New(rand.NewPCG(1, 2))
	for range 2500 {
		rows = append(rows, randomRow(random))
	}
	table := load(t, s, rows, 1)
	s.Publish(s.NewRelation(table))
	names := map[string]bool{}
	var sum int64
	segments := map[string]int{}
	sizes := s.ColumnSizes()
	for _, c := range sizes {
		if c.Table != "public.t" || c.Bytes <= 0 || c.Codec == "unknown" || (c.Segments == 0) != (c.Codec == "dictionary") {
			t.Errorf("%+v", c)
		}
		names[c.Column] = true
		segments[c.Column] += c.Segments
		sum += c.Bytes + c.NullBytes
	}
	for _, c := range table.Meta.Columns {
		if names[c.Name] != (c.Unsupported == "") {
			t.Errorf("column %s: listed %v", c.Name, names[c.Name])
		}
		if c.Unsupported == "" && segments[c.Name] != len(table.Segments) {
			t.Errorf("column %s: %d segments of %d", c.Name, segments[c.Name], len(table.Segments))
		}
	}
	// The rest is alignment.
	if most := s.Statuses()[0].Bytes; sum > most || sum < most/2 {
		t.Errorf("%d bytes, the table has %d", sum, most)
	}
	if !slices.ContainsFunc(sizes, func(c ColumnSize) bool { return c.NullBytes > 0 }) {
		t.Error("no null bitmap")
	}
}
