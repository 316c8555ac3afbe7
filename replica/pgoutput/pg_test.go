package pgoutput

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"pgaccel/internal/pgserver"
)

var server *pgserver.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var err error
		if server, err = pgserver.Start(ctx, pgserver.Options{Settings: map[string]string{"logical_decoding_work_mem": "64kB"}}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Stop()
		return m.Run()
	}())
}

func connect(t testing.TB, url string) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func exec(t testing.TB, c *pgconn.PgConn, sql string) {
	t.Helper()
	if _, err := c.Exec(context.Background(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func query(t testing.TB, c *pgconn.PgConn, sql string) [][]string {
	t.Helper()
	results, err := c.Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var rows [][]string
	for _, r := range results[len(results)-1].Rows {
		var row []string
		for _, v := range r {
			row = append(row, string(v))
		}
		rows = append(rows, row)
	}
	return rows
}

func version(t testing.TB, c *pgconn.PgConn) (v int) {
	t.Helper()
	if _, err := fmt.Sscan(query(t, c, "SHOW server_version_num")[0][0], &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// source is a database and a stream of all its changes, from a slot that ends with
// the test.
type source struct {
	t       testing.TB
	url     string
	db      *pgconn.PgConn
	stream  *pgconn.PgConn
	version int
	syncs   int
	// raw are the messages received, with what the Assembler needs to know.
	raw     [][]byte
	keepRaw bool
	letters map[Kind]int
}

// newSource makes a database with the given tables and begins the stream after that.
// settings are the walsender's.
func newSource(t testing.TB, settings, schema string) *source {
	t.Helper()
	name := fmt.Sprintf("t%d", time.Now().UnixNano())
	admin := connect(t, server.URL("postgres", "postgres"))
	exec(t, admin, "CREATE DATABASE "+name)
	s := &source{t: t, url: server.URL("postgres", name), letters: map[Kind]int{}}
	s.db = connect(t, s.url)
	s.version = version(t, s.db)
	exec(t, s.db, schema)
	exec(t, s.db, "CREATE PUBLICATION everything FOR ALL TABLES")
	cfg, err := pgconn.ParseConfig(s.url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["replication"] = "database"
	if settings != "" {
		cfg.RuntimeParams["options"] = settings
	}
	if s.stream, err = pgconn.ConnectConfig(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stream.Close(context.Background()) })
	exec(t, s.stream, "CREATE_REPLICATION_SLOT "+name+" TEMPORARY LOGICAL pgoutput")
	f := s.stream.Frontend()
	f.SendQuery(&pgproto3.Query{String: "START_REPLICATION SLOT " + name + " LOGICAL 0/0 (" + Options(s.version, "everything") + ")"})
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := f.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.CopyBothResponse:
			return s
		case *pgproto3.ErrorResponse:
			t.Fatal(pgconn.ErrorResponseToPgError(m))
		}
	}
}

// receive reads the stream into take until all that was committed before the call
// has come.
func (s *source) receive(take func(b []byte) error) {
	s.t.Helper()
	s.syncs++
	mark := fmt.Sprintf("sync %d", s.syncs)
	exec(s.t, s.db, "SELECT pg_logical_emit_message(true, 'sync', '"+mark+"')")
	defer time.AfterFunc(2*time.Minute, func() { s.stream.Conn().Close() }).Stop()
	seen := false
	for {
		m, err := s.stream.Frontend().Receive()
		if err != nil {
			s.t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.ErrorResponse:
			s.t.Fatal(pgconn.ErrorResponseToPgError(m))
		case *pgproto3.CopyData:
			if m.Data[0] != 'w' {
				continue
			}
			b := m.Data[25:]
			s.letters[Kind(b[0])]++
			if s.keepRaw {
				s.raw = append(s.raw, bytes.Clone(b))
			}
			seen = seen || b[0] == 'M' && bytes.HasSuffix(b, []byte(mark))
			ended := b[0] == 'C' || b[0] == 'c'
			if err := take(b); err != nil {
				s.t.Fatal(err)
			}
			if seen && ended {
				return
			}
		}
	}
}

// model is a Sink that holds the tables as plain maps: the reference that the server's
// own answer is compared with.
type model struct {
	t         testing.TB
	tables    map[uint32]*modelTable
	log       []string // what came, in words, without rows
	open      bool
	xid       uint32
	commits   []uint32
	lastEnd   uint64
	rows      int
	unchanged int
	texts     int
	tooLarge  map[uint32]bool
}

type modelTable struct {
	rel  *Relation
	rows []modelRow
	// byKey are the rows by their identity's values.
	byKey map[string][]int
}

// modelRow are values, each with its kind before it.
type modelRow []string

func newModel(t testing.TB) *model {
	return &model{t: t, tables: map[uint32]*modelTable{}, tooLarge: map[uint32]bool{}}
}

func (m *model) Begin(xid uint32) error {
	if m.open {
		return fmt.Errorf("begin of %d within %d", xid, m.xid)
	}
	m.open, m.xid = true, xid
	m.log = append(m.log, "begin")
	return nil
}

func (m *model) Commit(xid uint32, commitLSN, endLSN uint64) error {
	if !m.open || xid != m.xid || endLSN <= commitLSN || endLSN <= m.lastEnd {
		return fmt.Errorf("commit of %d at %d to %d, in transaction %d (open %v), after %d", xid, commitLSN, endLSN, m.xid, m.open, m.lastEnd)
	}
	m.open, m.lastEnd = false, endLSN
	m.commits = append(m.commits, xid)
	m.log = append(m.log, "commit")
	return nil
}

func (m *model) Relation(rel *Relation) error {
	if !m.open {
		return fmt.Errorf("relation outside of a transaction")
	}
	names := make([]string, len(rel.Columns))
	for i, c := range rel.Columns {
		names[i] = c.Name
		if c.Key {
			names[i] += "!"
		}
	}
	m.log = append(m.log, fmt.Sprintf("relation %s(%s)", rel.Name, strings.Join(names, ",")))
	old := m.tables[rel.OID]
	t := &modelTable{rel: rel, byKey: map[string][]int{}}
	m.tables[rel.OID] = t
	if old == nil {
		return nil
	}
	// Columns that came or went: by name; new ones are null, as without a default.
	for _, row := range old.rows {
		if row == nil {
			continue
		}
		moved := make(modelRow, len(rel.Columns))
		for i, c := range rel.Columns {
			moved[i] = "n"
			if j := slices.IndexFunc(old.rel.Columns, func(o Column) bool { return o.Name == c.Name }); j >= 0 {
				moved[i] = row[j]
			}
		}
		t.add(moved)
	}
	return nil
}

func (t *modelTable) key(row modelRow) string {
	var b []byte
	for i, c := range t.rel.Columns {
		if c.Key {
			b = binary.AppendUvarint(b, uint64(len(row[i])))
			b = append(b, row[i]...)
		}
	}
	return string(b)
}

func (t *modelTable) add(row modelRow) {
	k := t.key(row)
	t.byKey[k] = append(t.byKey[k], len(t.rows))
	t.rows = append(t.rows, row)
}

// take removes the row that old names and returns it.
func (t *modelTable) take(old modelRow) (modelRow, error) {
	k := t.key(old)
	at := t.byKey[k]
	if len(at) == 0 {
		return nil, fmt.Errorf("%s: no row has the key %q", t.rel.Name, k)
	}
	i := at[len(at)-1]
	row := t.rows[i]
	t.rows[i] = nil
	if t.byKey[k] = at[:len(at)-1]; len(at) == 1 {
		delete(t.byKey, k)
	}
	return row, nil
}

func (m *model) row(tuple Tuple) modelRow {
	row := make(modelRow, len(tuple))
	for i, v := range tuple {
		row[i] = string(rune(v.Kind)) + string(v.Data)
		if v.Kind == ValueText {
			m.texts++
		}
	}
	return row
}

func (m *model) Insert(oid uint32, tuple Tuple) error {
	m.rows++
	if !m.open || m.tables[oid] == nil {
		return fmt.Errorf("insert into %d without transaction or relation", oid)
	}
	m.tables[oid].add(m.row(tuple))
	return nil
}

func (m *model) Update(oid uint32, old Tuple, kind OldKind, tuple Tuple) error {
	m.rows++
	t, row := m.tables[oid], m.row(tuple)
	named := row
	if kind != OldNone {
		named = m.row(old)
	}
	before, err := t.take(named)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	for i := range row {
		if row[i] == "u" {
			m.unchanged++
			row[i] = before[i]
		}
	}
	t.add(row)
	return nil
}

func (m *model) Delete(oid uint32, old Tuple, kind OldKind) error {
	m.rows++
	_, err := m.tables[oid].take(m.row(old))
	return err
}

func (m *model) Truncate(oids []uint32, cascade, restart bool) error {
	m.log = append(m.log, fmt.Sprintf("truncate %d cascade=%v restart=%v", len(oids), cascade, restart))
	for _, oid := range oids {
		if t := m.tables[oid]; t != nil {
			m.tables[oid] = &modelTable{rel: t.rel, byKey: map[string][]int{}}
		}
	}
	return nil
}

func (m *model) Message(transactional bool, lsn uint64, prefix string, content []byte) error {
	if transactional != m.open {
		return fmt.Errorf("message %q: transactional %v, open %v", prefix, transactional, m.open)
	}
	if prefix != "sync" {
		m.log = append(m.log, fmt.Sprintf("message %v %s %s", transactional, prefix, content))
	}
	return nil
}

func (m *model) TooLarge(xid uint32, oids []uint32) error {
	m.tooLarge[xid] = true
	m.log = append(m.log, fmt.Sprintf("too large: %d relations", len(oids)))
	return nil
}

// compare asks the server for each table and compares.
func (m *model) compare(s *source) {
	m.t.Helper()
	for oid, table := range m.tables {
		name := query(m.t, s.db, fmt.Sprintf("SELECT coalesce((SELECT oid::regclass::text FROM pg_class WHERE oid = %d), '')", oid))[0][0]
		if name == "" {
			continue // dropped
		}
		// As pgoutput decides it: binary where the type has a send function.
		attributes := query(m.t, s.db, fmt.Sprintf(`SELECT quote_ident(attname), typsend <> 0 FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
			WHERE attrelid = %d AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`, oid))
		var names []string
		var formats []int16
		var kinds []string
		for _, a := range attributes {
			names = append(names, a[0])
			formats = append(formats, map[string]int16{"t": 1, "f": 0}[a[1]])
			kinds = append(kinds, map[string]string{"t": "b", "f": "t"}[a[1]])
		}
		r := s.db.ExecParams(context.Background(), "SELECT "+strings.Join(names, ",")+" FROM ONLY "+name, nil, nil, nil, formats).Read()
		if r.Err != nil {
			m.t.Fatal(r.Err)
		}
		var want, got []string
		for _, row := range r.Rows {
			line := make([]string, len(row))
			for i, v := range row {
				if line[i] = "n"; v != nil {
					line[i] = kinds[i] + string(v)
				}
			}
			want = append(want, fmt.Sprintf("%q", line))
		}
		for _, row := range table.rows {
			if row != nil {
				got = append(got, fmt.Sprintf("%q", []string(row)))
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					m.t.Errorf("%s: %d rows, want %d; the first that differs:\n got %.300s\nwant %.300s", name, len(got), len(want),
						strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), strings.Join(want[min(i, len(want)):min(i+1, len(want))], ""))
					break
				}
			}
		}
	}
}
