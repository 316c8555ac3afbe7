package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sort"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"pgaccel/papers/wahdata"
)

// indexAttributes is how many attributes each of the tables has that bitmap indexes are measured on.
const indexAttributes = 8

// indexTable is one of these tables: a key, which counts the rows from 0, and attributes of one type.
type indexTable struct {
	name    string
	prefix  string // of the attributes' names, a number follows
	width   int    // bytes of an attribute: 2, a smallint, or 4, an int
	rows    int
	fill    func(attribute, from int, dst []int32) // writes an attribute of the rows from, from+1 and so on
	queries []indexQuery
}

// indexTables makes the tables: three of the papers' data sets, repeated, and one of large values.
func indexTables(rows int) ([]*indexTable, error) {
	var tables []*indexTable
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, s := range wahdata.Sets(false)[:3] { // Zipf is in no order, as linkage is
		s.Rows = min(s.Rows, rows)
		columns := new([indexAttributes][]uint8)
		for a := range columns {
			g.Go(func() error { columns[a] = s.Column(a, nil); return nil })
		}
		t := &indexTable{name: strings.ToLower(s.Name), prefix: "a", width: 2, rows: rows}
		t.fill = func(attribute, from int, dst []int32) {
			column := columns[attribute]
			for i := range dst {
				dst[i] = int32(column[(from+i)%len(column)])
			}
		}
		t.queries = t.binQueries(s.Bins[:indexAttributes])
		tables = append(tables, t)
	}
	var walks plateaus
	for a := range walks {
		g.Go(func() error { walks[a] = randomWalk(a, rows); return nil })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	wide := &indexTable{name: "wide", prefix: "c", width: 4, rows: rows, fill: walks.fill}
	wide.queries = wide.wideQueries(&walks)
	// It takes longest to load.
	return append([]*indexTable{wide}, tables...), nil
}

// schema is the statements that make the table of so many pieces, each a partition: connections that fill one heap at a
// time mix their pages, and so cut runs to the rows of a page.
func (t *indexTable) schema(pieces int) string {
	kind := map[int]string{2: "smallint", 4: "int"}[t.width]
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (key int NOT NULL", t.name)
	for a := range indexAttributes {
		fmt.Fprintf(&b, ", %s%d %s NOT NULL", t.prefix, a, kind)
	}
	b.WriteString(") PARTITION BY RANGE (key);\n")
	for i := range pieces {
		from, to := t.piece(i, pieces)
		fmt.Fprintf(&b, "CREATE TABLE %s_%d PARTITION OF %s FOR VALUES FROM (%d) TO (%d);\n", t.name, i, t.name, from, to)
		fmt.Fprintf(&b, "ALTER TABLE %s_%d REPLICA IDENTITY FULL;\n", t.name, i)
	}
	return b.String()
}

// piece is the rows [from, to) of a piece.
func (t *indexTable) piece(i, pieces int) (from, to int) {
	return t.rows * i / pieces, t.rows * (i + 1) / pieces
}

// loadIndexTables fills the tables by as many connections as there are processors.
func loadIndexTables(ctx context.Context, dsn string, tables []*indexTable, p *progress) error {
	pieces := runtime.GOMAXPROCS(0)
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	total := int64(0)
	for _, t := range tables {
		total += int64(t.rows)
		if _, err := c.Exec(ctx, t.schema(pieces)).ReadAll(); err != nil {
			return fmt.Errorf("creating %s: %w", t.name, err)
		}
	}
	bar := p.start("loading", total)
	defer bar.done()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(pieces)
	for _, t := range tables {
		for i := range pieces {
			g.Go(func() error {
				name := fmt.Sprintf("%s_%d", t.name, i)
				from, to := t.piece(i, pieces)
				r := newCopyReader(t, from, to)
				r.progress = func(row int) { bar.set(name, int64(row-from)) }
				if err := loadPiece(ctx, dsn, name, r); err != nil {
					return fmt.Errorf("loading %s: %w", name, err)
				}
				return nil
			})
		}
	}
	return g.Wait()
}

func loadPiece(ctx context.Context, dsn, name string, rows io.Reader) error {
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	// FREEZE wants a table emptied in the same transaction: the first copy then finds no hint bits to set.
	if _, err := c.Exec(ctx, "BEGIN; TRUNCATE "+name).ReadAll(); err != nil {
		return err
	}
	if _, err := c.CopyFrom(ctx, rows, "COPY "+name+" FROM STDIN (FORMAT binary, FREEZE)"); err != nil {
		return err
	}
	_, err = c.Exec(ctx, "COMMIT; ANALYZE "+name).ReadAll()
	return err
}

// copyReader reads rows of a table in COPY's binary form, in which all have one length: a block of them is laid out once,
// and then only values are written.
type copyReader struct {
	t        *indexTable
	row, end int
	progress func(row int) // nil: none
	block    []byte        // copyBlock rows
	values   []int32
	rest     []byte // to be read
	ended    bool   // the trailer is in rest, or read
}

const copyBlock = 4096 // rows

func newCopyReader(t *indexTable, from, to int) *copyReader {
	row := binary.BigEndian.AppendUint16(nil, 1+indexAttributes)
	row = append(binary.BigEndian.AppendUint32(row, 4), 0, 0, 0, 0)
	for range indexAttributes {
		row = append(binary.BigEndian.AppendUint32(row, uint32(t.width)), 0, 0, 0, 0)[:len(row)+4+t.width]
	}
	r := &copyReader{t: t, row: from, end: to, values: make([]int32, copyBlock)}
	for range copyBlock {
		r.block = append(r.block, row...)
	}
	r.rest = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00") // no flags, no extension
	return r
}

// Read never fails but at the end.
func (r *copyReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		r.next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next puts the next rows into the block, or the trailer behind the last.
func (r *copyReader) next() {
	n := min(copyBlock, r.end-r.row)
	if n == 0 {
		r.ended, r.rest = true, []byte{0xff, 0xff}
		return
	}
	size := len(r.block) / copyBlock
	at := 2 + 4 // behind the number of values and the length of the first
	for i := range n {
		binary.BigEndian.PutUint32(r.block[at+i*size:], uint32(r.row+i))
	}
	at += 4
	values := r.values[:n]
	for a := range indexAttributes {
		r.t.fill(a, r.row, values)
		to := r.block[at+4:]
		if r.t.width == 2 {
			for i, v := range values {
				binary.BigEndian.PutUint16(to[i*size:], uint16(v))
			}
		} else {
			for i, v := range values {
				binary.BigEndian.PutUint32(to[i*size:], uint32(v))
			}
		}
		at += 4 + r.t.width
	}
	r.row += n
	r.rest = r.block[:n*size]
	if r.progress != nil {
		r.progress(r.row)
	}
}

// Of the table of large values each column is a random walk of plateaus.
const (
	wideDomain  = 1 << 30 // values are below
	plateauMin  = 500     // rows
	plateauMax  = 5000
	plateauStep = wideDomain / 4 // at most, up or down: a segment has plateaus from all of the domain
)

// plateau is a run of equal values, up to row end, which is not of it.
type plateau struct {
	end   int
	value int32
}

// plateaus are those of all columns.
type plateaus [indexAttributes][]plateau

// randomWalk is a column's plateaus. In the long run all values are equally likely.
func randomWalk(column, rows int) []plateau {
	rng := rand.New(rand.NewPCG(30, uint64(column)))
	value := rng.IntN(wideDomain)
	var walk []plateau
	for end := 0; end < rows; {
		end = min(rows, end+plateauMin+rng.IntN(plateauMax-plateauMin+1))
		walk = append(walk, plateau{end, int32(value)})
		value += rng.IntN(2*plateauStep+1) - plateauStep
		if value < 0 { // thrown back
			value = -1 - value
		} else if value >= wideDomain {
			value = 2*wideDomain - 1 - value
		}
	}
	return walk
}

func (w *plateaus) fill(column, from int, dst []int32) {
	walk := w[column]
	at := sort.Search(len(walk), func(i int) bool { return walk[i].end > from })
	for i := range dst {
		for walk[at].end <= from+i {
			at++
		}
		dst[i] = walk[at].value
	}
}

// wideRange is the values of a range, both ends included.
type wideRange struct{ lo, hi int }

// left is how many rows are in the ranges of the first columns.
func (w *plateaus) left(ranges []wideRange) (rows int) {
	var at [indexAttributes]int
	last := w[0][len(w[0])-1].end
	for row := 0; row < last; {
		end, in := last, true
		for c, r := range ranges {
			p := w[c][at[c]]
			end = min(end, p.end)
			in = in && r.lo <= int(p.value) && int(p.value) <= r.hi
		}
		if in {
			rows += end - row
		}
		for c := range ranges {
			if w[c][at[c]].end == end {
				at[c]++
			}
		}
		row = end
	}
	return rows
}

// ranges are of equal width over the first columns, and leave the share of the rows or a little more.
func (w *plateaus) ranges(columns int, share float64) []wideRange {
	of := func(width int) []wideRange {
		list := make([]wideRange, columns)
		for c := range list {
			lo := (wideDomain - width) / 2 // wider ones include narrower ones
			if c%2 == 1 {
				lo = (wideDomain - width) / 3
			}
			list[c] = wideRange{lo, lo + width - 1}
		}
		return list
	}
	want := share * float64(w[0][len(w[0])-1].end)
	return of(1 + sort.Search(wideDomain-1, func(i int) bool { return float64(w.left(of(1+i))) >= want }))
}
