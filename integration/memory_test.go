package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"pgaccel/internal/bench"
)

const memorySchema = `CREATE TABLE big (id int PRIMARY KEY, g int NOT NULL, t text COLLATE "C", d numeric(12,2), f float8, ts timestamptz, n numeric);
INSERT INTO big SELECT i, (i::bigint * 7919 % 200003)::int, CASE WHEN i % 11 > 0 THEN 'text ä ' || i % 5000 END, CASE WHEN i % 13 > 0 THEN i % 77777 / 4.0 END, i / 7.0, 'epoch'::timestamptz + i * interval '1 hour', i * 1.10 FROM generate_series(1, 200000) i;
VACUUM ANALYZE big`

// TestBeyondQueryMemory: sorts, groups and results of many times what queries may have are answered
// here, from temporary files, byte for byte; also in portals that are read in parts. Nothing of it is
// left, and without the files all is forwarded.
func TestBeyondQueryMemory(t *testing.T) {
	s := privateStack(t, memorySchema, "--query-memory", "8MiB", "--temp-dir", t.TempDir())
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	statements := []string{
		"SELECT id, g, t, d, f, ts FROM big ORDER BY id",
		"SELECT t, d, g, f FROM big ORDER BY t DESC, d NULLS FIRST, id",
		"SELECT id, f, d FROM big WHERE g % 3 > 0 ORDER BY d DESC, f, id",
		"SELECT g, count(*), sum(d), avg(f), min(t), count(DISTINCT d) FROM big GROUP BY g ORDER BY g",
		"SELECT g, sum(d) FROM big GROUP BY g ORDER BY 2 DESC NULLS LAST, 1 LIMIT 50000 OFFSET 7",
		"SELECT DISTINCT id FROM big ORDER BY id DESC",
		"SELECT DISTINCT t, g FROM big ORDER BY g, t",
		"SELECT g + 1, max(ts), sum(d) / 3 FROM big GROUP BY g HAVING count(*) > 0 ORDER BY 1",
	}
	for _, sql := range statements {
		for _, format := range [][]int16{nil, {1}} {
			want := ask(t, direct, sql, format)
			s.accelerates(t, 1, func() {
				if got := ask(t, proxy, sql, format); got.String() != want.String() {
					t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			})
		}
	}
	if !spilled(t, s) {
		t.Error("nothing was written to files")
	}
	t.Run("portals", func(t *testing.T) { portalsBeyondMemory(t, s, statements) })
	for _, m := range s.scrape(t) {
		if (strings.HasPrefix(m, "pgaccel_temp_files ") || strings.HasPrefix(m, "pgaccel_temp_bytes ") || strings.HasPrefix(m, "pgaccel_query_memory_bytes ")) && !strings.HasSuffix(m, " 0") {
			t.Errorf("left: %s", m)
		}
	}
}

func spilled(t *testing.T, s *stack) bool {
	for _, m := range s.scrape(t) {
		if strings.HasPrefix(m, "pgaccel_temp_bytes_total ") {
			return !strings.HasSuffix(m, " 0")
		}
	}
	return false
}

// portalsBeyondMemory reads from several portals in turn, here and there, and leaves them before their
// end.
func portalsBeyondMemory(t *testing.T, s *stack, statements []string) {
	read := func(tg target) (rows []string) {
		conn, err := pgconn.Connect(context.Background(), tg.url("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		must(t, conn, "SET pgaccel.mode = 'force'")
		must(t, conn, "BEGIN")
		if err := conn.SyncConn(t.Context()); err != nil {
			t.Fatal(err)
		}
		h, err := conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		defer h.Conn.Close()
		until := func() {
			h.Frontend.Send(&pgproto3.Sync{})
			if err := h.Frontend.Flush(); err != nil {
				t.Fatal(err)
			}
			for {
				m, err := h.Frontend.Receive()
				if err != nil {
					t.Fatal(err)
				}
				switch m := m.(type) {
				case *pgproto3.DataRow:
					rows = append(rows, fmt.Sprintf("%q", m.Values))
				case *pgproto3.ErrorResponse:
					t.Fatalf("%s: %s", tg.name, m.Message)
				case *pgproto3.PortalSuspended:
					rows = append(rows, "more")
				case *pgproto3.CommandComplete:
					rows = append(rows, string(m.CommandTag))
				case *pgproto3.ReadyForQuery:
					return
				}
			}
		}
		for i, sql := range statements {
			name := fmt.Sprint("p", i)
			h.Frontend.Send(&pgproto3.Parse{Name: name, Query: sql})
			h.Frontend.Send(&pgproto3.Bind{DestinationPortal: name, PreparedStatement: name})
			h.Frontend.Send(&pgproto3.Execute{Portal: name, MaxRows: 10})
			until()
		}
		for _, n := range []uint32{1, 1023, 1024, 1025, 3000} {
			for i := range statements {
				h.Frontend.Send(&pgproto3.Execute{Portal: fmt.Sprint("p", i), MaxRows: n})
				until()
			}
		}
		h.Frontend.Send(&pgproto3.Query{String: "ROLLBACK"})
		h.Frontend.Send(&pgproto3.Terminate{})
		if err := h.Frontend.Flush(); err != nil {
			t.Fatal(err)
		}
		for { // until it has gone
			if _, err := h.Frontend.Receive(); err != nil {
				return rows
			}
		}
	}
	want := read(s.direct)
	s.accelerates(t, len(statements), func() {
		got := read(s.proxy)
		if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
			t.Error(firstDifference([]byte(g), []byte(w)))
		}
	})
}

// TestTempFilesOff: without the files, or beyond their limit, what memory does not hold is forwarded,
// and the reason says which.
func TestTempFilesOff(t *testing.T) {
	const sql = "SELECT id, g, t, d, f, ts FROM big ORDER BY id"
	for flags, reason := range map[string]string{"--temp-dir=off": "memory", "--temp-limit=100kB": "temporary files"} {
		s := privateStack(t, memorySchema, "--query-memory", "4MiB", flags)
		direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
		must(t, proxy, "SET pgaccel.mode = 'force'")
		s.forwardsAll(t, func() {
			if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); got.String() != want.String() {
				t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		})
		found := false
		for _, m := range s.scrape(t) {
			found = found || strings.HasPrefix(m, "pgaccel_queries_total") && strings.Contains(m, `reason="`+reason+`"`) && !strings.HasSuffix(m, " 0")
		}
		if !found {
			t.Errorf("%s: not forwarded for %q", flags, reason)
		}
	}
}

// TestTextsBeyondQueryMemory: texts that are made of a dictionary's strings, by pieces where these are many, and those that
// are put together, count as anything else that a query holds: what does not fit is the server's to answer.
func TestTextsBeyondQueryMemory(t *testing.T) {
	const schema = `
CREATE TABLE many (id int PRIMARY KEY, t text);
CREATE TABLE few (id int PRIMARY KEY, t text);
INSERT INTO many SELECT i, 'text ' || i FROM generate_series(1, 20000) i;
INSERT INTO few SELECT i, 'text ' || i FROM generate_series(1, 3000) i;
VACUUM ANALYZE many, few`
	s := privateStack(t, schema, "--query-memory", "8MiB")
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	for _, c := range []struct{ fits, does string }{
		{"SELECT count(DISTINCT repeat(t, 5)) FROM many", "SELECT count(DISTINCT repeat(t, 500)) FROM many"},
		{"SELECT count(DISTINCT repeat(t, 50)) FROM few", "SELECT count(DISTINCT repeat(t, 500)) FROM few"},
		{"SELECT length(string_agg(repeat(t, 10), ',' ORDER BY id)) FROM few", "SELECT length(string_agg(repeat(t, 110), ',' ORDER BY id)) FROM few"},
		{"SELECT cardinality(array_agg(repeat(t, 10) ORDER BY id)) FROM few", "SELECT cardinality(array_agg(repeat(t, 110) ORDER BY id)) FROM few"},
	} {
		same := func(sql string) {
			if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); got.String() != want.String() {
				t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
		s.accelerates(t, 1, func() { same(c.fits) })
		before := s.queries(t, "accelerated")
		if same(c.does); s.queries(t, "accelerated") > before {
			t.Errorf("%s: accelerated, in 8 MiB", c.does)
		}
	}
}

// TestMemoryIsBounded runs the benchmark of memory, small: groups, DISTINCT, a sort and a join that
// makes 84 pairs of each row, portals and clients that do not read hold many times what queries may
// have. All is answered here, rightly, and the process stays below both limits and a tenth.
func TestMemoryIsBounded(t *testing.T) {
	if os.Getenv("PGACCEL_RACE") != "" {
		t.Skip("the race detector has memory of its own")
	}
	var out, log bytes.Buffer
	err := bench.Memory(t.Context(), bench.MemoryOptions{Rows: 1_200_000, Memory: 256 << 20, QueryMemory: 96 << 20, Hold: time.Second,
		Binary: pgaccelProgram(t), Progress: &log}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	const line = `(?m)^%s +%d +[\d.]+ .* %s +right .* %d accelerated$`
	const some = `([1-9][\d.]*|0\.[1-9]) [MG]B`
	for _, want := range []struct {
		scenario string
		rows     int
		spilled  string
		answers  int
	}{
		{"as many groups as rows, 3 sessions", 3_600_000, some, 3},
		{"DISTINCT of a unique column", 1_200_000, some, 1},
		{"sort of all rows", 1_200_000, some, 1},
		{"many-to-many join into 10 groups", 10, `0\.0 MB`, 1},
		{"8 open portals", 8_640_000, some, 8},
		{"6 clients that do not read", 7_200_000, some, 6},
	} {
		if !regexp.MustCompile(fmt.Sprintf(line, want.scenario, want.rows, want.spilled, want.answers)).MatchString(out.String()) {
			t.Errorf("%s: not %d rows, %s in files, right, %d accelerated and none forwarded", want.scenario, want.rows, want.spilled, want.answers)
		}
	}
}
