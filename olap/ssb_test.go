package olap_test

import (
	"bufio"
	"context"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/simd"
	"pgaccel/internal/ssb"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// ssbTables reads the benchmark's schema.
func ssbTables(t testing.TB) *catalog.Catalog {
	cat := &catalog.Catalog{Shadowed: map[string]bool{}}
	kinds := map[string]vector.Kind{"integer": vector.Int4, "varchar": vector.Varchar}
	var table *catalog.Table
	for _, line := range strings.Split(ssb.Source.Schema(), "\n") {
		f := strings.Fields(line)
		switch {
		case len(f) > 2 && f[0] == "CREATE":
			table = &catalog.Table{OID: uint32(1000 + len(cat.Tables)), Schema: "public", Name: f[2], Rows: 1 << 20}
			cat.Tables = append(cat.Tables, table)
		case len(f) > 2 && table != nil && strings.Contains(line, "NOT NULL"):
			base, rest, text := strings.Cut(f[1], "(")
			typ := vector.TypeOf(kinds[base])
			if typ.Kind == vector.Invalid {
				t.Fatalf("type %s", f[1])
			}
			if text {
				n, err := strconv.Atoi(strings.TrimRight(rest, "),"))
				if err != nil {
					t.Fatal(err)
				}
				typ.Typmod = int32(n) + 4
				typ.Collation = vector.Collation{OID: 100, Deterministic: true, C: true}
			}
			table.Columns = append(table.Columns, catalog.Column{Name: f[0], AttNum: int16(len(table.Columns) + 1), Type: typ, NotNull: true})
		}
	}
	for _, table := range cat.Tables {
		for _, statement := range strings.Split(ssb.Source.Keys(), ";") {
			f := strings.Fields(statement)
			if len(f) < 3 || f[2] != table.Name {
				continue
			}
			_, list, _ := strings.Cut(statement, "(")
			index := catalog.Index{Name: "key", Unique: true}
			for _, name := range strings.Split(strings.TrimRight(list, ")"), ",") {
				index.Columns = append(index.Columns, table.Column(strings.TrimSpace(name)))
			}
			table.Indexes = append(table.Indexes, index)
		}
	}
	return cat
}

// loadSSB generates the benchmark's tables into a store.
func loadSSB(t testing.TB, cat *catalog.Catalog, scale float64) map[uint32]*colstore.Table {
	store := colstore.New(colstore.Options{})
	t.Cleanup(func() { store.Close() })
	tables := map[uint32]*colstore.Table{}
	for _, meta := range cat.Tables {
		r, pipe := io.Pipe()
		go func() { pipe.CloseWithError(ssb.Source.Generate(meta.Name, scale, 0, 1, pipe)) }()
		loader := store.NewLoader(meta)
		w := loader.NewWriter()
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			rest := lines.Bytes()
			for i := range meta.Columns {
				field := rest
				for k, b := range rest {
					if b == '\t' {
						field, rest = rest[:k], rest[k+1:]
						break
					}
				}
				if meta.Columns[i].Type.Kind.IsString() {
					w.Text(i, field)
					continue
				}
				v, err := strconv.ParseInt(string(field), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				w.Int(i, v)
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
		tables[meta.OID] = table
	}
	return tables
}

// ssbQuery is one of the 13, planned.
type ssbQuery struct {
	name string
	q    *plan.Star
	in   olap.Input
}

func ssbQueries(t testing.TB, scale float64) (out []ssbQuery) {
	cat := ssbTables(t)
	tables := loadSSB(t, cat, scale)
	for _, query := range ssb.Queries() {
		st := pushdown.Plan(syntax.Parse(query.SQL), nil, cat)
		if st.Star == nil {
			t.Fatalf("%s: %v", query.Name, st.Forward)
		}
		q := ssbQuery{name: query.Name, q: st.Star}
		for _, table := range st.Deps.Tables {
			q.in.Tables = append(q.in.Tables, tables[table.Meta.OID])
		}
		out = append(out, q)
	}
	return out
}

func (q *ssbQuery) run(t testing.TB, workers int) *vector.Batch {
	b, err := olap.Execute(context.Background(), q.q, q.in, olap.Options{Workers: workers})
	if err != nil {
		t.Fatalf("%s: %v", q.name, err)
	}
	return b
}

// TestSSBLevels compares the answers of all 13 queries at every level.
func TestSSBLevels(t *testing.T) {
	was := simd.Active()
	defer simd.Use(was)
	for _, q := range ssbQueries(t, 0.02) {
		simd.Use(simd.Plain)
		want := q.run(t, 2)
		for level := simd.AVX2; level <= simd.Best(); level++ {
			simd.Use(level)
			if got := q.run(t, 2); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v has another answer", q.name, level)
			}
		}
	}
}
