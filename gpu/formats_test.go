package gpu

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/compress"
	"pgaccel/gpu/program"
)

// TestSurviving compares the short way with a look at every segment.
func TestSurviving(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	f := newFormats()
	short := 0
	for range 3000 {
		q := &program.Query{Program: &program.Program{
			Columns: make([]program.Column, 2),
			Nodes:   []program.Node{{Op: program.OpColumn, Index: 0}, {Op: program.OpColumn, Index: 1}},
			Steps:   []program.Step{{Kind: program.StepRange, Node: 0}, {Kind: program.StepBits, Node: 1}},
		}}
		lo := int64(r.IntN(20)) - 5
		q.Ranges = []program.Range{{Lo: lo, Hi: lo + int64(r.IntN(20)) - 1}}
		q.Bits = []program.Bits{{Set: compress.Set{Lo: int64(r.IntN(10)), Size: int64(r.IntN(30))}}}
		for range r.IntN(5) {
			s := program.Segment{Rows: 1}
			for range 2 {
				low := int64(r.IntN(12))
				s.Columns = append(s.Columns, program.SegmentColumn{Min: low, Max: low + int64(r.IntN(12))})
			}
			q.Segments = append(q.Segments, s)
		}
		want := program.Surviving(q)
		columns := f.of(q)
		if got := f.surviving(q, columns); !slices.Equal(got, want) {
			t.Fatalf("%v, not %v: %+v", got, want, q)
		}
		if program.AllSurvive(q, func(c int) (int64, int64) { return columns[c].largestMin, columns[c].smallestMax }) && len(want) > 1 {
			short++
		}
	}
	if short < 100 {
		t.Fatalf("the short way was right %d times", short)
	}
}

// TestFormats has one width for a column, that grows and stays, unless one segment is much wider.
func TestFormats(t *testing.T) {
	f := newFormats()
	query := func(table uint64, wide bool, widths ...int) format {
		q := &program.Query{Program: &program.Program{Columns: []program.Column{{Wide: wide}}}, TableID: table}
		for i, w := range widths {
			q.Segments = append(q.Segments, program.Segment{Rows: 65536, Columns: []program.SegmentColumn{{ID: uint64(i + 1), Min: 5, Max: 5 + 1<<w - 1}}})
		}
		return f.of(q)[0]
	}
	if got := query(1, false, 7, 9, 8); got.width != 9 || !got.keyed {
		t.Fatal(got)
	}
	if got := query(2, false, 7, 8, 8); got.width != 9 {
		t.Fatal("the width shrank", got)
	}
	if got := query(3, true, 7, 40, 8); got.width != 40 {
		t.Fatal(got)
	}
	if got := query(4, false, 7, 8, 8); got.width > 32 {
		t.Fatal("a column that is not wide has", got)
	}
	if got := query(5, true, append([]int{62}, slices.Repeat([]int{4}, 50)...)...); got.width != -1 {
		t.Fatal("one wide segment makes all wide", got)
	}
}
