package bench

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/ssb"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// ssbData is the benchmark's tables in columns, without a server: the rows of the generator,
// or of dbgen's files, go straight into the store.
type ssbData struct {
	store  *colstore.Store
	tables map[uint32]*colstore.Table
	cat    *catalog.Catalog
	rows   int64 // of lineorder
	bytes  int64 // of all tables
}

// ssbPlanned is one of the 13 queries with the tables that it reads.
type ssbPlanned struct {
	name  string
	q     *plan.Star
	in    olap.Input
	reads [][]int // by table: the columns that the statement reads
}

// ssbCatalog is the catalog that a server with the benchmark's schema and keys would
// show.
func ssbCatalog() (*catalog.Catalog, error) {
	cat := &catalog.Catalog{Shadowed: map[string]bool{}}
	kinds := map[string]vector.Kind{"integer": vector.Int4, "varchar": vector.Varchar}
	var table *catalog.Table
	for line := range strings.Lines(ssb.Source.Schema()) {
		f := strings.Fields(line)
		switch {
		case len(f) > 2 && f[0] == "CREATE":
			table = &catalog.Table{OID: uint32(1000 + len(cat.Tables)), Schema: "public", Name: f[2]}
			cat.Tables = append(cat.Tables, table)
		case len(f) > 2 && table != nil && strings.Contains(line, "NOT NULL"):
			base, rest, text := strings.Cut(f[1], "(")
			typ := vector.TypeOf(kinds[base])
			if typ.Kind == vector.Invalid {
				return nil, fmt.Errorf("column type %s", f[1])
			}
			if text {
				n, err := strconv.Atoi(strings.TrimRight(rest, "),"))
				if err != nil {
					return nil, fmt.Errorf("column type %s: %w", f[1], err)
				}
				typ.Typmod = int32(n) + 4
				typ.Collation = vector.Collation{OID: 100, Deterministic: true, C: true}
			}
			table.Columns = append(table.Columns, catalog.Column{Name: f[0], AttNum: int16(len(table.Columns) + 1), Type: typ, NotNull: true})
		}
	}
	for statement := range strings.SplitSeq(ssb.Source.Keys(), ";") {
		f := strings.Fields(statement)
		if len(f) < 3 {
			continue
		}
		found := cat.Lookup("", f[2])
		if len(found) != 1 {
			return nil, fmt.Errorf("a key of %q, which is no table", f[2])
		}
		_, list, _ := strings.Cut(statement, "(")
		index := catalog.Index{Name: f[2] + "_pkey", Unique: true}
		for name := range strings.SplitSeq(strings.TrimRight(strings.TrimSpace(list), ")"), ",") {
			index.Columns = append(index.Columns, found[0].Column(strings.TrimSpace(name)))
		}
		found[0].Indexes = append(found[0].Indexes, index)
	}
	return cat, nil
}

// ssbSource is where the tables' rows come from.
type ssbSource interface {
	// parts is how many writers take a table's rows at once.
	parts(table string) int
	// write has all rows of a part, counted from 0, into a writer, which it does not close.
	write(ctx context.Context, meta *catalog.Table, part int, w *colstore.Writer) error
}

// generatedSSB are the rows of our own generator.
type generatedSSB struct{ scale float64 }

func (g generatedSSB) parts(table string) int {
	if table == "lineorder" {
		return runtime.GOMAXPROCS(0)
	}
	return 1
}

func (g generatedSSB) write(ctx context.Context, meta *catalog.Table, part int, w *colstore.Writer) error {
	err := ssb.Source.Generate(meta.Name, g.scale, part, g.parts(meta.Name), &copyText{ctx, newRowParser(meta, w, '\t', false)})
	if err != nil {
		return fmt.Errorf("generating %s: %w", meta.Name, err)
	}
	return nil
}

// loadSSB brings all tables into a store of their own, side by side: a program that writes
// several files may write them in any order, or all at once. memory bounds the store in bytes.
func loadSSB(ctx context.Context, source ssbSource, memory int64) (d *ssbData, err error) {
	d = &ssbData{tables: map[uint32]*colstore.Table{}}
	if d.cat, err = ssbCatalog(); err != nil {
		return nil, err
	}
	d.store = colstore.New(colstore.Options{MemoryLimit: memory})
	tables := make([]*colstore.Table, len(d.cat.Tables))
	all, each := errgroup.WithContext(ctx)
	for i, meta := range d.cat.Tables {
		all.Go(func() (err error) {
			tables[i], err = loadSSBTable(each, d.store, source, meta)
			return err
		})
	}
	err = all.Wait()
	for i, meta := range d.cat.Tables {
		t := tables[i]
		if t == nil {
			continue
		}
		meta.Rows = t.Rows
		d.tables[meta.OID] = t
		d.bytes += t.Bytes()
		if meta.Name == "lineorder" {
			d.rows = t.Rows
		}
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// close gives the memory back. Nothing may read the tables any more.
func (d *ssbData) close() {
	for _, t := range d.tables {
		t.Release()
	}
	clear(d.tables)
	d.store.Close()
}

func loadSSBTable(ctx context.Context, store *colstore.Store, source ssbSource, meta *catalog.Table) (*colstore.Table, error) {
	loader := store.NewLoader(meta)
	all, each := errgroup.WithContext(ctx)
	for part := range source.parts(meta.Name) {
		w := loader.NewWriter()
		all.Go(func() error {
			err := source.write(each, meta, part, w)
			if closed := w.Close(); err == nil {
				err = closed
			}
			return err
		})
	}
	err := all.Wait()
	var t *colstore.Table
	if err == nil {
		t, err = loader.Finish()
	}
	if err != nil {
		loader.Abort()
		return nil, err
	}
	return t, nil
}

// copyText takes COPY text, whole lines at a time as the generator writes them.
type copyText struct {
	ctx context.Context
	*rowParser
}

// Write implements io.Writer.
func (c *copyText) Write(text []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if err := c.parse(text); err != nil {
		return 0, err
	}
	return len(text), nil
}

// queries plans the 13 queries.
func (d *ssbData) queries() ([]ssbPlanned, error) {
	var out []ssbPlanned
	for _, query := range ssb.Queries() {
		p, err := d.plan(query.Name, query.SQL)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// onDevice has a device answer a query, for a client.
func (q *ssbPlanned) onDevice(ctx context.Context, m *gpuManager, caller uint64) (got *vector.Batch, did olap.Report, err error) {
	got, err = olap.Execute(ctx, q.q, q.in, olap.Options{Device: m, DeviceWait: true, DeviceCaller: caller, Report: &did})
	if err == nil && did.Device == "" {
		if err = fmt.Errorf("the device did not answer: %s", did.Fallback); did.Err != nil {
			err = fmt.Errorf("%w: %w", err, did.Err)
		}
	}
	return got, did, err
}

// plan plans a query over the tables.
func (d *ssbData) plan(name, sql string) (ssbPlanned, error) {
	st := pushdown.Plan(syntax.Parse(sql), nil, d.cat)
	if st.Star == nil {
		return ssbPlanned{}, fmt.Errorf("%s is not planned: %w", name, st.Forward)
	}
	p := ssbPlanned{name: name, q: st.Star}
	for _, t := range st.Deps.Tables {
		p.reads = append(p.reads, t.Columns)
		p.in.Tables = append(p.in.Tables, d.tables[t.Meta.OID])
	}
	return p, nil
}
