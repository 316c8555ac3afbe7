package replica

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// A sample is some runs of adjacent rows, from places all over the table. What columns take depends
// on what lies side by side: TABLESAMPLE SYSTEM picks pages that do not, of which a column that
// ascends would take many times as much as it does.
const (
	sampleRuns  = 4
	sampleRows  = 16384    // of a run, about
	sampleBytes = 16 << 20 // of a run, about, out of line values included
	pageRowsMax = 226      // of a page, where nothing is known: rows of one integer
)

// Sample is a part of a table, encoded as a copy is.
type Sample struct {
	Table *colstore.Table // the caller releases it
	// Rows is about how many the whole table has.
	Rows int64
	// Whole says that the sample is the table.
	Whole bool
}

// sampledLeaf is a leaf of a table and its size.
type sampledLeaf struct {
	catalog.Part
	pages, bytes, rows int64 // rows is -1 where it is not known
}

// leaves asks how large those of a table are. Where one is locked, what VACUUM or ANALYZE saw has to do.
func (s *Survey) leaves(ctx context.Context, meta *catalog.Table) ([]sampledLeaf, error) {
	all, err := s.leafSizes(ctx, meta, "pg_catalog.pg_relation_size(c.oid)", "pg_catalog.pg_table_size(c.oid)")
	if isLockTimeout(err) {
		const pages = "(c.relpages * pg_catalog.current_setting('block_size')::pg_catalog.int8)"
		return s.leafSizes(ctx, meta, pages, pages)
	}
	return all, err
}

// leafSizes estimates rows as estimate_rel_size does: by the density that VACUUM saw, times the pages of now.
func (s *Survey) leafSizes(ctx context.Context, meta *catalog.Table, rowsSize, allSize string) (all []sampledLeaf, err error) {
	parts := leavesOf(meta)
	oids := make([]uint32, len(parts))
	for i, p := range parts {
		oids[i] = p.OID
	}
	rows, err := s.Conn.Query(ctx, `WITH n AS (SELECT t.i, coalesce(`+rowsSize+`, 0) / pg_catalog.current_setting('block_size')::pg_catalog.int8 AS pages,
		coalesce(`+allSize+`, 0) AS bytes, coalesce(c.reltuples, 0)::pg_catalog.float8 AS tuples, coalesce(c.relpages, 0) AS relpages
		FROM pg_catalog.unnest($1::pg_catalog.oid[]) WITH ORDINALITY t(oid, i) LEFT JOIN pg_catalog.pg_class c ON c.oid = t.oid)
		SELECT n.pages, n.bytes, CASE WHEN n.pages = 0 THEN 0 WHEN n.tuples < 0 OR n.relpages = 0 THEN -1
		ELSE pg_catalog.round(n.tuples / n.relpages * n.pages) END::pg_catalog.int8 FROM n ORDER BY n.i`, oids)
	if err != nil {
		return nil, err
	}
	var l sampledLeaf
	_, err = pgx.ForEachRow(rows, []any{&l.pages, &l.bytes, &l.rows}, func() error {
		l.Part = parts[len(all)]
		all = append(all, l)
		return nil
	})
	return all, err
}

// Sample reads some rows of those columns of a table that the role may read, into the store. Where the server
// refuses, the error is a *pgconn.PgError, and the session goes on.
func (s *Survey) Sample(ctx context.Context, store *colstore.Store, meta *catalog.Table) (*Sample, error) {
	leaves, err := s.leaves(ctx, meta)
	if err != nil {
		return nil, err
	}
	meta = s.readable(meta)
	ranges, whole := sampleRanges(leaves)
	percent := 0.0
	if len(s.Unreadable(meta)) > 0 {
		ranges, percent = allOf(leaves, ranges)
	}
	loader := store.NewLoader(meta)
	defer loader.Abort() // nothing after Finish
	if err := s.sampleRows(ctx, loader, meta, ranges, percent); err != nil {
		return nil, err
	}
	t, err := loader.Finish()
	if err != nil {
		return nil, err
	}
	sample := &Sample{Table: t, Whole: whole}
	pages, _, rows := total(leaves)
	sample.Rows = rows
	read := int64(0)
	for _, r := range ranges {
		read += r.to - r.from
	}
	if percent > 0 {
		read = int64(percent * float64(pages) / 100)
	}
	if sample.Rows < t.Rows || whole {
		sample.Rows = t.Rows
		if read > 0 && !whole {
			sample.Rows = t.Rows * pages / read
		}
	}
	return sample, nil
}

// readable returns the table without the columns that the role may not read.
func (s *Survey) readable(meta *catalog.Table) *catalog.Table {
	out := *meta
	out.Columns = slices.Clone(meta.Columns)
	hidden := s.Unreadable(meta)
	for i := range out.Columns {
		c := &out.Columns[i]
		if c.Unsupported == "" && slices.Contains(hidden, c.Name) {
			c.Unsupported = "no SELECT privilege"
		}
	}
	if len(hidden) > 0 {
		out.Identity = nil // it may be of such columns, too: no hash of it
	}
	return &out
}

// sampleRanges returns the pages to be read, whole ones, so that they say how many rows a page has.
func sampleRanges(leaves []sampledLeaf) (ranges []pageRange, whole bool) {
	pages, bytes, rows := total(leaves)
	if pages == 0 {
		return nil, true
	}
	perPage := max(rows/pages, 1)
	if rows <= 0 {
		perPage = pageRowsMax
	}
	run := max(1, min(sampleRows/perPage, sampleBytes*pages/max(bytes, 1)))
	if run*sampleRuns >= pages {
		return rangesFrom(leaves, 0, pages), true
	}
	for i := range int64(sampleRuns) {
		ranges = append(ranges, rangesFrom(leaves, (pages-run)*i/(sampleRuns-1), run)...)
	}
	return ranges, false
}

// rangesFrom returns so many pages of the leaves, one after the other, from a page on.
func rangesFrom(leaves []sampledLeaf, from, pages int64) (ranges []pageRange) {
	for _, l := range leaves {
		n := min(l.pages-from, pages)
		if n > 0 {
			ranges = append(ranges, pageRange{leaf: l.Part, from: from, to: from + n})
			pages -= n
		}
		from = max(0, from-l.pages)
	}
	return ranges
}

// allOf returns all pages of the leaves, and how many in a hundred of them the ranges are: of columns one may be
// allowed to read some, but never ctid. Then TABLESAMPLE it is.
func allOf(leaves []sampledLeaf, ranges []pageRange) (all []pageRange, percent float64) {
	pages, _, _ := total(leaves)
	read := int64(0)
	for _, r := range ranges {
		read += r.to - r.from
	}
	return rangesFrom(leaves, 0, pages), 100 * float64(read) / float64(max(pages, 1))
}

// sampleRows reads the ranges, each into a writer of its own; with percent so much of them.
func (s *Survey) sampleRows(ctx context.Context, loader *colstore.Loader, meta *catalog.Table, ranges []pageRange, percent float64) error {
	cols := append(copied(meta), hashedIdentity(meta)...)
	if len(cols) == 0 {
		return nil
	}
	for _, r := range ranges {
		w := loader.NewPartWriter(r.leaf.OID)
		d := newCopyDecoder(meta, cols, w)
		d.identity = w.Identity
		sink := &copySink{take: d.message}
		sql := copySQL(meta, r, cols)
		if percent > 0 {
			sql = fmt.Sprintf("COPY (SELECT %s FROM ONLY %s.%s TABLESAMPLE SYSTEM (%g) REPEATABLE (0)) TO STDOUT (FORMAT binary)", columnList(meta, cols),
				catalog.QuoteIdentifier(r.leaf.Schema), catalog.QuoteIdentifier(r.leaf.Name), min(percent, 100))
		}
		_, err := s.Conn.PgConn().CopyTo(ctx, sink, sql)
		if err := firstError(firstError(err, sink.err), w.Close()); err != nil {
			return err
		}
	}
	return nil
}

// copySink takes the messages of a COPY. What follows an error is read all the same, so that the session
// can be used afterwards.
type copySink struct {
	take func(b []byte) error
	err  error
}

// Write implements io.Writer.
func (c *copySink) Write(b []byte) (int, error) {
	if c.err == nil {
		c.err = c.take(b)
	}
	return len(b), nil
}

// SizeOf says how large a table is on the server, its partitions together: the pages of its rows, all bytes but
// those of indexes, and about how many rows there are, -1 where nobody has counted.
func (s *Survey) SizeOf(ctx context.Context, meta *catalog.Table) (pages, bytes, rows int64, err error) {
	leaves, err := s.leaves(ctx, meta)
	pages, bytes, rows = total(leaves)
	return pages, bytes, rows, err
}

// total adds up the leaves of a table.
func total(leaves []sampledLeaf) (pages, bytes, rows int64) {
	for _, l := range leaves {
		pages, bytes = pages+l.pages, bytes+l.bytes
		if l.rows < 0 || rows < 0 {
			rows = -1
		} else {
			rows += l.rows
		}
	}
	return pages, bytes, rows
}
