package colstore

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/internal/ssb"
	"pgaccel/vector"
)

// lineorderMeta is the fact table of the Star Schema Benchmark.
func lineorderMeta() *catalog.Table {
	t := &catalog.Table{OID: 1, Schema: "public", Name: "lineorder"}
	for _, name := range []string{"lo_orderkey", "lo_linenumber", "lo_custkey", "lo_partkey", "lo_suppkey", "lo_orderdate",
		"lo_orderpriority", "lo_shippriority", "lo_quantity", "lo_extendedprice", "lo_ordtotalprice", "lo_discount",
		"lo_revenue", "lo_supplycost", "lo_tax", "lo_commitdate", "lo_shipmode"} {
		kind := vector.Int4
		if name == "lo_orderpriority" || name == "lo_shippriority" || name == "lo_shipmode" {
			kind = vector.Varchar
		}
		t.Columns = append(t.Columns, catalog.Column{Name: name, Type: vector.TypeOf(kind), NotNull: true})
	}
	return t
}

// TestLineorderSize: the store of the largest table is at most a quarter of its
// heap in Postgres, which takes about 106 bytes a row. PGACCEL_SSB_PARTS=1 loads
// all 6 million rows of scale factor 1 instead of a share of them, for its times.
func TestLineorderSize(t *testing.T) {
	parts := 20
	if s := os.Getenv("PGACCEL_SSB_PARTS"); s != "" {
		var err error
		if parts, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	if err := ssb.Source.Generate("lineorder", 1, 0, parts, &text); err != nil {
		t.Fatal(err)
	}
	meta := lineorderMeta()
	s := New(Options{})
	defer s.Close()
	l := s.NewLoader(meta)
	w := l.NewWriter()
	// Fields are cut beforehand, so that the time is the store's own.
	var ints []int64
	var texts [][]byte
	rows := 0
	for {
		line, err := text.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		for i, f := range bytes.Split(bytes.TrimSuffix(line, []byte("\n")), []byte("\t")) {
			if meta.Columns[i].Type.Kind.IsText() {
				texts = append(texts, f)
				continue
			}
			v, err := strconv.ParseInt(string(f), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			ints = append(ints, v)
		}
		rows++
	}
	began := time.Now()
	for range rows {
		for i := range meta.Columns {
			if meta.Columns[i].Type.Kind.IsText() {
				w.Text(i, texts[0])
				texts = texts[1:]
			} else {
				w.Int(i, ints[0])
				ints = ints[1:]
			}
		}
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
	defer table.Release()
	t.Logf("%d rows, %.1f ns a value", rows, float64(time.Since(began).Nanoseconds())/float64(rows*len(meta.Columns)))
	for i := range meta.Columns {
		size := 0
		for _, seg := range table.Segments {
			size += seg.Columns[i].Data.Bytes()
		}
		t.Logf("%-18s %-8v %6.3f bytes a row", meta.Columns[i].Name, table.Segments[0].Columns[i].Data.Codec(), float64(size)/float64(rows))
	}
	perRow := float64(table.Bytes()) / float64(rows)
	t.Logf("%.2f bytes a row in all", perRow)
	if perRow > 26 {
		t.Errorf("%.2f bytes a row", perRow)
	}
}
