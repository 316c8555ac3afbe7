package bench

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/ssb"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// ssbData is the benchmark's tables in columns, without a server: the generator's rows
// go straight into the store.
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

// loadSSB generates all tables into a store of their own, with every processor. memory
// bounds the store in bytes.
func loadSSB(ctx context.Context, scale float64, memory int64) (d *ssbData, err error) {
	d = &ssbData{tables: map[uint32]*colstore.Table{}}
	if d.cat, err = ssbCatalog(); err != nil {
		return nil, err
	}
	d.store = colstore.New(colstore.Options{MemoryLimit: memory})
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	for _, meta := range d.cat.Tables {
		t, err := loadSSBTable(ctx, d.store, meta, scale)
		if err != nil {
			return nil, fmt.Errorf("generating %s: %w", meta.Name, err)
		}
		meta.Rows = t.Rows
		d.tables[meta.OID] = t
		d.bytes += t.Bytes()
		if meta.Name == "lineorder" {
			d.rows = t.Rows
		}
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

func loadSSBTable(ctx context.Context, store *colstore.Store, meta *catalog.Table, scale float64) (*colstore.Table, error) {
	loader := store.NewLoader(meta)
	parts := runtime.GOMAXPROCS(0)
	if meta.Name != "lineorder" {
		parts = 1
	}
	writers := make([]*colstore.Writer, parts)
	for i := range writers {
		writers[i] = loader.NewWriter()
	}
	errs := make([]error, parts)
	var all sync.WaitGroup
	for i, w := range writers {
		all.Go(func() {
			errs[i] = ssb.Source.Generate(meta.Name, scale, i, parts, &copyText{ctx: ctx, meta: meta, w: w})
			if err := w.Close(); errs[i] == nil {
				errs[i] = err
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			loader.Abort()
			return nil, err
		}
	}
	t, err := loader.Finish()
	if err != nil {
		loader.Abort()
	}
	return t, err
}

// copyText takes COPY text, whole lines at a time as the generator writes them, into a
// writer of columns.
type copyText struct {
	ctx  context.Context
	meta *catalog.Table
	w    *colstore.Writer
}

// Write implements io.Writer.
func (c *copyText) Write(text []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n := len(text)
	for len(text) > 0 {
		for i := range c.meta.Columns {
			end := byte('\t')
			if i == len(c.meta.Columns)-1 {
				end = '\n'
			}
			if !c.meta.Columns[i].Type.Kind.IsText() {
				v, k := int64(0), 0
				for ; k < len(text) && '0' <= text[k] && text[k] <= '9'; k++ {
					v = 10*v + int64(text[k]-'0')
				}
				if k == 0 || k >= len(text) || text[k] != end {
					return 0, fmt.Errorf("%s: no number at %.20q", c.meta.Columns[i].Name, text)
				}
				c.w.Int(i, v)
				text = text[k+1:]
				continue
			}
			k := bytes.IndexByte(text, end)
			if k < 0 {
				return 0, fmt.Errorf("%s: no end of %.20q", c.meta.Columns[i].Name, text)
			}
			c.w.Text(i, text[:k])
			text = text[k+1:]
		}
		if err := c.w.EndRow(); err != nil {
			return 0, err
		}
	}
	return n, nil
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
