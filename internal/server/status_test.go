package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// newWatched starts a server with pgaccel in front that saves its columns and serves HTTP.
func newWatched(t *testing.T) *bench {
	t.Helper()
	return startBench(t, "CREATE VIEW v AS SELECT 1 AS a; CREATE ROLE watcher LOGIN IN ROLE pg_monitor; CREATE ROLE other LOGIN; CREATE ROLE chief LOGIN IN ROLE reader",
		Config{HTTP: "127.0.0.1:0", Pprof: true, MaxClients: 20, ReuseMemory: 1 << 20, DataDir: filepath.Join(t.TempDir(), "data"), CheckpointInterval: 100 * time.Millisecond})
}

// get returns what the HTTP side answers.
func (b *bench) get(path string) (status int, body string) {
	b.t.Helper()
	r, err := http.Get("http://" + b.s.HTTPAddr().String() + path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(text)
}

// said is ask with the values of a row apart by |.
func (b *bench) said(c *pgconn.PgConn, sql string, format int) string {
	b.t.Helper()
	return strings.NewReplacer(`["`, "", `" "`, "|", `"]`, "").Replace(b.ask(c, sql, format))
}

// scrape returns the values of /metrics by name and labels.
func (b *bench) scrape() map[string]float64 {
	b.t.Helper()
	_, text := b.get("/metrics")
	all := map[string]float64{}
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		line := scan.Text()
		if at := strings.LastIndexByte(line, ' '); at > 0 && line[0] != '#' {
			v, err := strconv.ParseFloat(line[at+1:], 64)
			if err != nil {
				b.t.Fatal(line, err)
			}
			all[line[:at]] = v
		}
	}
	return all
}

// TestStatus: pgaccel.status has one row, of columns of their types, in both protocols.
func TestStatus(t *testing.T) {
	b := newWatched(t)
	c := b.through("watcher")
	eventually(t, "a checkpoint", func() bool { return b.s.databases[0].replicator.Health().Saved != time.Time{} })
	const sql = `SELECT count(*), bool_and(stream_connected), bool_and(lag_bytes >= 0 AND lag_seconds = 0), bool_and(uptime BETWEEN '0' AND '1 hour' AND started_at < now()),
 bool_and(server_version = split_part(current_setting('server_version'), ' ', 1)), bool_and(last_error IS NULL AND last_error_at IS NULL), sum(copies), sum(recopies), bool_and(checkpoint_at <= clock_timestamp()), sum(checkpoint_failures),
 bool_and(column_bytes > 0 AND column_limit_bytes > column_bytes AND query_bytes >= 0 AND query_limit_bytes > 0 AND reuse_bytes = 0 AND reuse_limit_bytes = 1048576 AND heap_bytes > 0),
 sum(sessions), max(device), bool_and(applied_lsn > '0/1'), bool_and(version <> '') FROM pgaccel.status`
	for _, format := range []int{-1, 0} {
		if got, want := b.said(c, sql, format), "1|t|t|t|t|t|4|0|t|0|t|1|none ("; !strings.HasPrefix(got, want) {
			t.Errorf("format %d: %s, want %s", format, got, want)
		}
	}
	if got := b.said(c, "SELECT pg_typeof(uptime), pg_typeof(applied_lsn), pg_typeof(started_at), pg_typeof(lag_seconds), pg_typeof(sessions) FROM pgaccel.status", -1); !strings.Contains(got, "interval|pg_lsn|timestamp with time zone|double precision|integer") {
		t.Errorf("types: %s", got)
	}
	// A stream that is cut is an error, for those who may read it, and costs nothing where columns are saved.
	b.exec(b.direct("postgres"), "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
	eventually(t, "the stream is up again", func() bool { h := b.s.databases[0].replicator.Health(); return h.Streams == 2 && h.Connected })
	if got := b.said(c, "SELECT last_error <> '', last_error_at > started_at FROM pgaccel.status", -1); !strings.Contains(got, "t|t") {
		t.Errorf("the last error: %s", got)
	}
	if got := b.said(b.through("other"), "SELECT last_error IS NULL, last_error_at IS NOT NULL FROM pgaccel.status", -1); !strings.Contains(got, "t|t") {
		t.Errorf("the last error, for another: %s", got)
	}
}

// TestSessions: pgaccel.sessions shows of each session what pg_stat_activity would show the role that asks.
func TestSessions(t *testing.T) {
	b := newWatched(t)
	reader, other := b.through("reader"), b.through("other")
	b.exec(reader, "SET application_name = 'reading'; SET pgaccel.mode = 'force'")
	b.exec(reader, "SELECT 1")
	b.said(reader, "SELECT g, sum(v) FROM fact GROUP BY g ORDER BY g", 0)
	b.exec(reader, "BEGIN")
	pid := fmt.Sprint(reader.PID())
	for _, c := range []struct {
		role string
		sees bool
	}{{"postgres", true}, {"watcher", true}, {"chief", true}, {"reader", true}, {"other", false}} {
		conn := b.through(c.role)
		for _, format := range []int{-1, 0} {
			got := b.said(conn, "SELECT usename, datname, application_name, client_addr, client_port > 0, state, state_change >= backend_start, route, accelerated, partial, forwarded, held_bytes FROM pgaccel.sessions WHERE pid = "+pid, format)
			want := "reader|postgres|reading|||||||||"
			if c.sees {
				want = "reader|postgres|reading|127.0.0.1|t|idle in transaction|t||1|0|3|0"
			}
			if !strings.Contains(got, want) {
				t.Errorf("%s, format %d: %s, want %s", c.role, format, got, want)
			}
		}
		// The server says the same of them.
		rule := b.said(conn, "SELECT count(*), count(state) FROM pg_stat_activity WHERE pid IN (SELECT pid FROM pgaccel.sessions)", -1)
		if got := b.said(conn, "SELECT count(*), count(state) FROM pgaccel.sessions", -1); got != rule {
			t.Errorf("%s: %s sessions and states, the server shows %s", c.role, got, rule)
		}
	}
	if got := b.said(other, "SELECT pid = pg_backend_pid(), state, route FROM pgaccel.sessions WHERE state = 'active'", 0); !strings.Contains(got, "t|active|forwarded") {
		t.Errorf("the session that asks: %s", got)
	}
	b.exec(reader, "ROLLBACK")
	busy := make(chan string, 1)
	go func() {
		_, err := reader.Exec(context.Background(), "SELECT pg_sleep(1000)").ReadAll()
		busy <- fmt.Sprint(err)
	}()
	watcher := b.through("watcher")
	eventually(t, "the session is active", func() bool {
		return strings.Contains(b.said(watcher, "SELECT state, route FROM pgaccel.sessions WHERE pid = "+pid, -1), "active|forwarded")
	})
	b.exec(b.direct("postgres"), "SELECT pg_cancel_backend("+pid+")")
	<-busy
	if got := b.said(watcher, "SELECT state FROM pgaccel.sessions WHERE pid = "+pid, -1); !strings.Contains(got, "idle") {
		t.Errorf("after a cancel: %s", got)
	}
	// A result that is not read yet is held.
	rr := reader.ExecParams(context.Background(), "SELECT a.id, b.t FROM fact a JOIN dim d ON d.g = a.g JOIN fact b ON b.g = d.g", nil, nil, nil, nil)
	rr.NextRow()
	eventually(t, "the result is held", func() bool {
		return strings.Contains(b.said(watcher, "SELECT held_bytes > 0, route FROM pgaccel.sessions WHERE pid = "+pid, -1), "t|accelerated")
	})
	rr.Close()
	eventually(t, "the result is let go", func() bool {
		return strings.Contains(b.said(watcher, "SELECT held_bytes, state FROM pgaccel.sessions WHERE pid = "+pid, -1), "0|idle")
	})
}

// TestQueriesSeen: statements that take the server a while are in pgaccel.queries, whatever they name; each row is of one execution.
func TestQueriesSeen(t *testing.T) {
	b := newWatched(t)
	b.exec(b.direct("postgres"), "CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.plain AS SELECT i FROM generate_series(1, 10) i; CREATE VIEW elsewhere.summary AS SELECT count(*) AS n FROM elsewhere.plain")
	c, watcher := b.through("postgres"), b.through("watcher")
	b.exec(c, "SELECT 'quick' FROM elsewhere.plain")
	row := func(like string) string {
		return b.said(watcher, "SELECT route, reason, detail, left(substr(query, position), 9), calls, forwarded, forwarded_total_ms >= 5, share > 0 AND share <= 1, gain_ms FROM pgaccel.queries WHERE query LIKE '"+like+"'", -1)
	}
	for _, q := range []struct{ sql, like, want string }{
		{"SELECT 's1', pg_sleep(0.02), count(*) FROM elsewhere.plain", "SELECT $1, pg_sleep($2), count(*) FROM elsewhere.plain", "forwarded|no accelerated table|plain is not among the tables that --accelerate chooses, and no view over them|elsewhere|3|3|t|t|"},
		{"SELECT 's2', pg_sleep(0.02), n FROM elsewhere.summary", "SELECT $1, pg_sleep($2), n FROM elsewhere.summary", "forwarded|no accelerated table|summary is not among the tables that --accelerate chooses, and no view over them|elsewhere|3|3|t|t|"},
		{"SELECT 's3', pg_sleep(0.02), count(*) FROM measure_1", "SELECT $1, pg_sleep($2), count(*) FROM measure_1", "forwarded|no accelerated table|measure_1 is not among the tables that --accelerate chooses, and no view over them|measure_1|3|3|t|t|"},
		{"UPDATE elsewhere.plain SET i = i + 0 WHERE i = 3 AND pg_sleep(0.02) IS NOT NULL", "UPDATE elsewhere.plain SET i = i + $1 %", "forwarded|not a plain SELECT|||3|3|t|t|"},
	} {
		b.exec(c, q.sql)
		b.said(c, q.sql, 0)
		if _, err := c.Prepare(context.Background(), "named", q.sql, nil); err != nil {
			t.Fatal(err)
		}
		if r := c.ExecPrepared(context.Background(), "named", nil, nil, nil).Read(); r.Err != nil {
			t.Fatal(r.Err)
		}
		b.exec(c, "DEALLOCATE named")
		eventually(t, q.sql, func() bool { got := row(q.like); return strings.Contains(got, q.want) || t.Failed() })
		if got := row(q.like); !strings.Contains(got, q.want) {
			t.Errorf("%s: %s", q.sql, got)
		}
	}
	if got := b.said(watcher, "SELECT DISTINCT hint FROM pgaccel.queries WHERE reason = 'no accelerated table'", 0); !strings.Contains(got, "--accelerate") {
		t.Errorf("what would help: %s", got)
	}
	if got := row("%quick%"); !strings.HasPrefix(got, "SELECT 0") {
		t.Errorf("a quick one: %s", got)
	}
	if got := row("%DEALLOCATE%"); !strings.HasPrefix(got, "SELECT 0") {
		t.Errorf("no statement over rows: %s", got)
	}
	b.exec(c, "ROLLBACK") // a statement that fails is not counted
	c.Exec(context.Background(), "SELECT 's4', pg_sleep(0.02), 1/0 FROM elsewhere.plain").ReadAll()
	b.exec(c, "SELECT pg_sleep(0.02), 's5'")
	eventually(t, "the next one", func() bool { return strings.Contains(row("SELECT pg_sleep($1), $2"), "forwarded") })
	if got := row("SELECT $1, pg_sleep($2), $3/$4%"); !strings.HasPrefix(got, "SELECT 0") {
		t.Errorf("one that failed: %s", got)
	}

	// Route and reason are of one execution.
	const sum, like = "SELECT g, sum(v) FROM fact GROUP BY g", "SELECT g, sum(v) FROM fact%"
	for _, step := range []struct{ set, want string }{{"SET pgaccel.mode = 'force'", "accelerated||"}, {"SET pgaccel.mode = 'off'", "forwarded|mode off|"}, {"SET pgaccel.mode = 'force'", "accelerated||"}} {
		b.exec(c, step.set)
		b.ask(c, sum, 0)
		if got := row(like); !strings.HasPrefix(got, step.want) {
			t.Errorf("after %s: %s, want %s", step.set, got, step.want)
		}
	}
	if got := b.said(watcher, "SELECT abs(gain_ms - (forwarded_mean_ms - mean_ms)) < 0.01, calls FROM pgaccel.queries WHERE query LIKE '"+like+"'", 0); !strings.HasPrefix(got, "t|3") {
		t.Errorf("the gain: %s", got)
	}
	if b.scrape()["pgaccel_saved_seconds"] == 0 {
		t.Error("nothing is saved, or lost")
	}
	if got := b.said(watcher, "SELECT round(sum(share)::numeric, 6) FROM pgaccel.queries", 0); !strings.HasPrefix(got, "1.000000") {
		t.Errorf("all shares: %s", got)
	}
}

// TestMetrics looks at those that tell of the process, the stream, checkpoints and clients.
func TestMetrics(t *testing.T) {
	b := newWatched(t)
	eventually(t, "a checkpoint", func() bool { return b.s.databases[0].replicator.Health().Saved != time.Time{} })
	c := b.through("postgres")
	before := b.scrape()
	for range 3 {
		b.exec(c, "SELECT 1")
	}
	after := b.scrape()
	for name, want := range map[string]float64{"pgaccel_stream_connected": 1, "pgaccel_streams_total": 1, "pgaccel_copies_total": 4, "pgaccel_recopies_total": 0, "pgaccel_stream_lag_seconds": 0,
		"pgaccel_checkpoint_failures_total": 0, `pgaccel_refused_connections_total{reason="server"}`: 0, "pgaccel_device_up": 0,
		fmt.Sprintf("pgaccel_build_info{go=%q,version=%q}", runtime.Version(), Version()): 1} {
		if got, there := after[name]; !there || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, there, want)
		}
	}
	for _, name := range []string{"pgaccel_stream_lag_bytes", "pgaccel_checkpoint_age_seconds", "go_goroutines", "process_resident_memory_bytes"} {
		if _, there := after[name]; !there {
			t.Errorf("no %s", name)
		}
	}
	for _, name := range []string{"pgaccel_forwarded_statements_total", "pgaccel_forwarded_seconds_count"} {
		if got := after[name] - before[name]; got != 3 {
			t.Errorf("%s has grown by %v, want 3", name, got)
		}
	}
	for name, v := range after {
		if strings.HasPrefix(name, "pgaccel_device_") && strings.Contains(name, "device=") && !strings.Contains(name, `device="cpu"`) {
			t.Errorf("%s, of a device that is not there", name)
		}
		if strings.HasPrefix(name, "pgaccel_table_ready") && v == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	if status, body := b.get("/debug/pprof/goroutine?debug=1"); status != 200 || !strings.Contains(body, "goroutine profile") {
		t.Errorf("/debug/pprof: %d", status)
	}
	if status, _ := b.get("/debug/pprof/cmdline"); status != 404 {
		t.Errorf("/debug/pprof/cmdline: %d", status)
	}
	for range 30 { // more than there may be
		if extra, err := pgconn.Connect(context.Background(), fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", b.s.Addr())); err == nil {
			defer extra.Close(context.Background())
		}
	}
	if got := b.scrape()[`pgaccel_refused_connections_total{reason="limit"}`]; got < 5 {
		t.Errorf("%v clients were refused", got)
	}
}

// TestServerAway: clients that cannot be served are counted, and so is the stream's end.
func TestServerAway(t *testing.T) {
	b := newWatched(t)
	b.pg.Stop()
	if conn, err := net.Dial("tcp", b.s.Addr().String()); err == nil {
		fmt.Fprint(conn, "\x00\x00\x00\x17\x00\x03\x00\x00user\x00postgres\x00\x00")
		io.ReadAll(conn)
	}
	eventually(t, "that is counted", func() bool {
		now := b.scrape()
		_, lag := now["pgaccel_stream_lag_seconds"]
		return now[`pgaccel_refused_connections_total{reason="server"}`] >= 1 && now["pgaccel_stream_connected"] == 0 && !lag
	})
}

// TestPprofIsOff: profiles are there only where they are asked for.
func TestPprofIsOff(t *testing.T) {
	b := newBench(t, 0)
	s, err := Start(context.Background(), Config{Upstream: b.pg.URL("postgres", "postgres"), Listen: []string{"127.0.0.1:0"}, HTTP: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := http.Get("http://" + s.HTTPAddr().String() + "/debug/pprof/")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 404 {
		t.Errorf("/debug/pprof/: %s", r.Status)
	}
}
