package program

import (
	"fmt"
	"testing"
)

// TestBitmaps has rows found, of which few or many pass: of tables whose bitmaps are read as they are, and of such of
// which words leave the device, as long as they are few.
func TestBitmaps(t *testing.T) {
	d := newDevice(t)
	p := &Program{Columns: []Column{{}}, Nodes: []Node{{Op: OpColumn}}, Steps: []Step{{Kind: StepRange}}, Sink: Sink{Kind: SinkBitmap}}
	tuning := Tuning{Threads: 64, BlocksPerSM: 1, Positions: 4}
	g, err := Generate(p, tuning)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[bool]int{} // of bitmaps: whether words of them may leave
	for _, sizes := range [][]int{{1}, {63, 64, 65}, {1023, 1024, 1025}, {65536, 1, 65535}, {65536, 65536, 40000, 64}} {
		q := &Query{Program: p, Ranges: make([]Range, 1)}
		n := int64(0)
		for _, rows := range sizes {
			values := make([]int64, rows)
			for i := range values {
				values[i] = n * 7919 % 100_003
				n++
			}
			q.Segments = append(q.Segments, Segment{Rows: rows, Columns: []SegmentColumn{encode(values)}})
		}
		for _, last := range []int64{-1, 0, 3, 400, 1000, 2000, 100_003} { // 400: of a quarter of the words
			q.Ranges[0].Hi = last
			q.Ranges[0].Lo = min(last, 0)
			l := g.layout(q)
			kinds[l.wordsMax > 0]++
			want, err := Reference(q)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := d.compute(q, tuning, 1+len(sizes)%2)
			if text := differ(p, got, want); text != "" {
				t.Errorf("%v rows, up to %d: %s", sizes, last, text)
			}
			for i := range got.Bitmaps {
				if (got.Bitmaps[i] == nil) != (want.Bitmaps[i] == nil) {
					t.Error(fmt.Sprint(sizes, last), "segment", i, "has a bitmap without rows")
				}
			}
		}
		d.free()
	}
	if kinds[false] == 0 || kinds[true] == 0 {
		t.Error(kinds)
	}
}
