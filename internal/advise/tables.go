package advise

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/replica"
)

// table is one that could be copied.
type table struct {
	Name   string  `json:"name"` // schema.name
	Kind   string  `json:"kind"` // table, partitioned
	Server int64   `json:"server_bytes"`
	Memory memory  `json:"memory"`
	Usage  usage   `json:"usage"`
	Left   []left  `json:"columns_not_kept,omitempty"`
	Needs  []need  `json:"needs,omitempty"` // before it can be copied
	Take   bool    `json:"take"`
	Why    string  `json:"why"`
	Gain   float64 `json:"estimated_gain_ms,omitempty"` // of the statements that are accelerated and read it

	meta *catalog.Table

	// While pgaccel runs, which holds copies already.
	held    int64   // bytes of its copy; 0 where there is none
	fixed   bool    // a pattern has it copied, whatever is chosen
	copyMS  float64 // the server's time that its copy would take
	blocked string  // why it cannot be copied as it is
}

// left is a column that is not copied.
type left struct {
	Column string `json:"column"`
	Reason string `json:"reason"`
}

// need is something to be mended.
type need struct {
	Table  string `json:"table,omitempty"`
	Reason string `json:"reason"`
	SQL    string `json:"sql,omitempty"`
}

// usage is what pg_stat_user_tables counts, of all partitions.
type usage struct {
	SeqScans int64 `json:"seq_scan"`
	SeqRows  int64 `json:"seq_tup_read"`
	IdxScans int64 `json:"idx_scan"`
	IdxRows  int64 `json:"idx_tup_fetch"`
	Inserts  int64 `json:"n_tup_ins"`
	Updates  int64 `json:"n_tup_upd"`
	Deletes  int64 `json:"n_tup_del"`
}

// sampleTime bounds the time that samples take: the largest tables come first, and what is left is guessed.
const sampleTime = 2 * time.Minute

// tablesOf describes the tables of a survey, the largest first.
func tablesOf(ctx context.Context, s *replica.Survey) (all []*table, err error) {
	for _, meta := range s.Catalog.Tables {
		t, err := describe(ctx, s, meta)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b *table) int { return cmp.Compare(b.Server, a.Server) })
	until := time.Now().Add(sampleTime)
	for _, t := range all {
		if t.Memory, err = memoryOf(ctx, s, t.meta, time.Now().Before(until)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// describe says of a table what there is to say without a sample.
func describe(ctx context.Context, s *replica.Survey, meta *catalog.Table) (t *table, err error) {
	t = &table{Name: meta.QualifiedName(), Kind: "table", meta: meta}
	if meta.Parts != nil {
		t.Kind = "partitioned"
	}
	if _, t.Server, _, err = s.SizeOf(ctx, meta); err != nil {
		return nil, err
	}
	for _, c := range meta.Columns {
		if c.Unsupported != "" {
			t.Left = append(t.Left, left{c.Name, c.Unsupported})
		}
	}
	for _, n := range s.Needs(meta) {
		t.Needs = append(t.Needs, need{Reason: n.Reason, SQL: n.SQL})
	}
	return t, t.usageOf(ctx, s.Conn)
}

func (t *table) usageOf(ctx context.Context, conn *pgx.Conn) error {
	oids := []uint32{t.meta.OID}
	for _, p := range t.meta.Parts {
		oids = append(oids, p.OID)
	}
	u := &t.Usage
	return conn.QueryRow(ctx, `SELECT coalesce(pg_catalog.sum(s.seq_scan), 0)::pg_catalog.int8, coalesce(pg_catalog.sum(s.seq_tup_read), 0)::pg_catalog.int8,
		coalesce(pg_catalog.sum(s.idx_scan), 0)::pg_catalog.int8, coalesce(pg_catalog.sum(s.idx_tup_fetch), 0)::pg_catalog.int8, coalesce(pg_catalog.sum(s.n_tup_ins), 0)::pg_catalog.int8,
		coalesce(pg_catalog.sum(s.n_tup_upd), 0)::pg_catalog.int8, coalesce(pg_catalog.sum(s.n_tup_del), 0)::pg_catalog.int8
		FROM pg_catalog.pg_stat_user_tables s WHERE s.relid = ANY($1::pg_catalog.oid[])`, oids).Scan(
		&u.SeqScans, &u.SeqRows, &u.IdxScans, &u.IdxRows, &u.Inserts, &u.Updates, &u.Deletes)
}

const (
	indexBytes = 8    // a row, of the index by which changed rows are found
	spare      = 1.25 // what is left for changes
)

// needsMemory is what the table's columns take, changes included.
func (t *table) needsMemory() int64 {
	if t.held > 0 {
		return t.held
	}
	n := t.Memory.Bytes
	if t.Usage.Updates+t.Usage.Deletes > 0 {
		n += indexBytes * t.Memory.Rows
	}
	return int64(float64(n) * spare)
}

// read and changed are rows.
func (u *usage) read() int64    { return u.SeqRows + u.IdxRows }
func (u *usage) changed() int64 { return u.Updates + u.Deletes }
