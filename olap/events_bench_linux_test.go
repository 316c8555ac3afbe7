package olap_test

import (
	"bufio"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/events"
	"pgaccel/olap"
	"pgaccel/pushdown"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// eventsTable reads the benchmark's schema.
func eventsTable(t testing.TB) *catalog.Catalog {
	kinds := map[string]vector.Kind{"bigint": vector.Int8, "timestamptz": vector.TimestampTZ, "integer": vector.Int4, "text": vector.Text,
		"smallint": vector.Int2, "numeric(12,2)": vector.Numeric, "double": vector.Float8, "boolean": vector.Bool}
	table := &catalog.Table{OID: 1000, Schema: "public", Name: "events", Rows: 1 << 20}
	for _, line := range strings.Split(events.Schema(), "\n") {
		f := strings.Fields(strings.TrimRight(line, ","))
		if len(f) < 2 || f[0] == "CREATE" {
			continue
		}
		typ := vector.TypeOf(kinds[f[1]])
		switch typ.Kind {
		case vector.Invalid:
			t.Fatalf("type %s", f[1])
		case vector.Text:
			typ.Collation = vector.Collation{OID: 100, Deterministic: true, C: true}
		case vector.Numeric:
			typ.Scale, typ.Typmod = 2, 12<<16+2+4
		}
		table.Columns = append(table.Columns, catalog.Column{Name: f[0], AttNum: int16(len(table.Columns) + 1), Type: typ,
			NotNull: strings.Contains(line, "NOT NULL")})
	}
	table.Indexes = []catalog.Index{{Name: "key", Unique: true, Columns: []int{0}}}
	return &catalog.Catalog{Shadowed: map[string]bool{}, Tables: []*catalog.Table{table}}
}

// eventsField is the 64-bit form of a field that is not null nor text.
func eventsField(t vector.Type, field string) (int64, error) {
	switch t.Kind {
	case vector.TimestampTZ:
		at, err := time.Parse("2006-01-02 15:04:05.999999-07", field)
		return at.UnixMicro() - 946_684_800_000_000, err
	case vector.Bool:
		return int64(strings.Index("ft", field)), nil
	case vector.Numeric:
		field = strings.Replace(field, ".", "", 1) // always with all decimals
	case vector.Float8:
		v, err := strconv.ParseFloat(field, 64)
		return vector.Float(v).I, err
	}
	return strconv.ParseInt(field, 10, 64)
}

// loadEvents generates the benchmark's table into a store.
func loadEvents(t testing.TB, meta *catalog.Table, rows int64) *colstore.Table {
	store := colstore.New(colstore.Options{})
	t.Cleanup(func() { store.Close() })
	r, pipe := io.Pipe()
	go func() { pipe.CloseWithError(events.Generate(t.Context(), rows, pipe)) }()
	loader := store.NewLoader(meta)
	w := loader.NewWriter()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		rest := lines.Text()
		for i := range meta.Columns {
			var field string
			field, rest, _ = strings.Cut(rest, "\t")
			if field == `\N` {
				w.Null(i)
			} else if typ := meta.Columns[i].Type; typ.Kind.IsString() {
				w.Text(i, []byte(field))
			} else if v, err := eventsField(typ, field); err != nil {
				t.Fatal(err)
			} else {
				w.Int(i, v)
			}
		}
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	table, err := loader.Finish()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Release)
	return table
}

// BenchmarkEvents runs the queries of internal/events on one worker and reports the best
// nanoseconds a row of the table of each. PGACCEL_EVENTS_ROWS sets the rows and
// PGACCEL_EVENTS_QUERY picks queries by names, separated by commas. Times are the
// thread's own, as in BenchmarkSSB.
func BenchmarkEvents(b *testing.B) {
	rows := int64(1_000_000)
	if s := os.Getenv("PGACCEL_EVENTS_ROWS"); s != "" {
		var err error
		if rows, err = strconv.ParseInt(s, 10, 64); err != nil {
			b.Fatal(err)
		}
	}
	names := os.Getenv("PGACCEL_EVENTS_QUERY")
	cat := eventsTable(b)
	table := loadEvents(b, cat.Tables[0], rows)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, query := range events.Queries(rows) {
		if names != "" && !strings.Contains(names, query.Name) {
			continue
		}
		st := pushdown.Plan(syntax.Parse(query.SQL), nil, cat)
		if st.Star == nil {
			b.Fatalf("%s: %v", query.Name, st.Forward)
		}
		q := ssbQuery{name: query.Name, q: st.Star, in: olap.Input{Tables: []*colstore.Table{table}}}
		b.Run(query.Name, func(b *testing.B) {
			best := int64(1 << 62)
			for b.Loop() {
				began := threadTime(b)
				q.run(b, 1)
				best = min(best, threadTime(b)-began)
			}
			b.ReportMetric(float64(best)/float64(rows), "best-ns/row")
		})
	}
}
