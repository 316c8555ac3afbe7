package bench

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
)

// checkIndexTables: the device answered all of the part's queries, and asked indexes of some tables where these were forced,
// and of none where they were off.
func checkIndexTables(t *testing.T, tables []gpuTable) {
	t.Helper()
	asked, n := 0, 0
	for _, table := range tables {
		if table.Part != "index" || !slices.Contains(table.Columns, "asked") {
			continue
		}
		n++
		at := slices.Index(table.Columns, "computing: off")
		for _, row := range table.Rows {
			if slices.Contains(row[at:at+len(indexModes)], nil) {
				t.Errorf("%s: %v: not the device's", table.Title, row)
			}
			with := row[len(row)-1].(string)
			if strings.Contains(with, "off") {
				t.Errorf("%s: %v", table.Title, row)
			}
			if strings.Contains(with, "force") {
				asked++
			}
		}
	}
	if n != 4 || asked < 3 {
		t.Errorf("%d tables, of which %d queries asked indexes", n, asked)
	}
}

const indexTestRows = 100_000

func indexTestTables(t *testing.T) []*indexTable {
	t.Helper()
	tables, err := indexTables(indexTestRows)
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// rowsOf reads rows [from, to) as their columns, the key first.
func (x *indexTable) rowsOf(t *testing.T, from, to int) (columns [1 + indexAttributes][]int32) {
	t.Helper()
	text, err := io.ReadAll(newCopyReader(x, from, to))
	if err != nil {
		t.Fatal(err)
	}
	head := []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	text, ok := bytes.CutPrefix(text, head)
	text, ended := bytes.CutSuffix(text, []byte{0xff, 0xff})
	if !ok || !ended {
		t.Fatalf("%s: no header or no trailer", x.name)
	}
	for len(text) > 0 {
		if n := binary.BigEndian.Uint16(text); n != 1+indexAttributes {
			t.Fatalf("%s: a row of %d values", x.name, n)
		}
		text = text[2:]
		for c := range columns {
			size, v := binary.BigEndian.Uint32(text), int32(0)
			switch size {
			case 2:
				v = int32(int16(binary.BigEndian.Uint16(text[4:])))
			case 4:
				v = int32(binary.BigEndian.Uint32(text[4:]))
			default:
				t.Fatalf("%s: a value of %d bytes", x.name, size)
			}
			columns[c], text = append(columns[c], v), text[4+size:]
		}
	}
	return columns
}

func TestIndexTables(t *testing.T) {
	for _, x := range indexTestTables(t) {
		whole := x.rowsOf(t, 0, indexTestRows)
		var inPieces [1 + indexAttributes][]int32
		for i := range 7 {
			from, to := x.piece(i, 7)
			for c, values := range x.rowsOf(t, from, to) {
				inPieces[c] = append(inPieces[c], values...)
			}
		}
		for c := range whole {
			if !slices.Equal(whole[c], inPieces[c]) {
				t.Errorf("%s: column %d in 7 pieces differs from the whole", x.name, c)
			}
		}
		for row, key := range whole[0] {
			if int(key) != row {
				t.Fatalf("%s: key %d in row %d", x.name, key, row)
			}
		}
	}
}

func TestPlateaus(t *testing.T) {
	var walks plateaus
	for a := range walks {
		walks[a] = randomWalk(a, indexTestRows)
		from := 0
		for i, p := range walks[a] {
			if n := p.end - from; n > plateauMax || n < plateauMin && i < len(walks[a])-1 || p.value < 0 || p.value >= wideDomain {
				t.Fatalf("column %d: %d rows of %d", a, n, p.value)
			}
			from = p.end
		}
	}
	for _, columns := range []int{2, 4, 8} {
		ranges := walks.ranges(columns, 0.02)
		want, values := 0, make([][]int32, columns)
		for c := range values {
			values[c] = make([]int32, indexTestRows)
			walks.fill(c, 0, values[c])
		}
		for row := range indexTestRows {
			in := true
			for c, r := range ranges {
				in = in && r.lo <= int(values[c][row]) && int(values[c][row]) <= r.hi
			}
			if in {
				want++
			}
		}
		// One plateau more is what the next narrower ranges lack.
		if got := walks.left(ranges); got != want || got < indexTestRows/50 || got > indexTestRows/50+plateauMax {
			t.Errorf("%d columns: %v leave %d rows, in fact %d", columns, ranges, got, want)
		}
	}
}

func TestBinRanges(t *testing.T) {
	for _, bins := range [][]int{{3, 70, 11, 2, 2, 2, 2, 23}, {25, 25, 16, 16, 16, 16, 2, 3}, {69, 69, 69, 69, 69, 69, 69, 68}} {
		for _, n := range indexBins {
			sum := 0
			for _, r := range binRanges(bins, n) {
				sum += r.hi - r.lo + 1
				if r.lo < 1 || r.hi >= bins[r.attribute] {
					t.Errorf("%v, %d bins: %v", bins, n, r)
				}
			}
			if sum != n {
				t.Errorf("%v: %d bins instead of %d", bins, sum, n)
			}
		}
	}
}
