package integration

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bigTable is as large as a table is from which on a device is offered what does not demand it.
const bigTable = `
CREATE TABLE big (id int PRIMARY KEY, g smallint NOT NULL, v int NOT NULL);
INSERT INTO big SELECT i, i % 10, i % 1000 FROM generate_series(1, 2100000) i;
VACUUM ANALYZE;
`

// compiles returns how many kernels were compiled, or loaded where they had been before.
func (s *stack) compiles(t *testing.T) float64 {
	t.Helper()
	return s.metric(t, "pgaccel_device_compiles_total")[`device="`+deviceKind+`:0",result="compiled"`]
}

// compiled waits until so many kernels are there.
func (s *stack) compiled(t *testing.T, want float64) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); s.compiles(t) < want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%v kernels are there, want %v", s.compiles(t), want)
		}
	}
}

// TestDeviceAfterRestart: what the last process has compiled is there before the next one's clients ask: with a data
// directory a shape's first execution is the device's, though it does not wait for a compiler.
func TestDeviceAfterRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := deviceStack(t, bigTable, "--data-dir", dir)
	queries := []string{
		"SELECT g, count(*), sum(v) FROM big GROUP BY g ORDER BY g",
		"SELECT count(*), min(v) FROM big WHERE v BETWEEN 100 AND 300 AND g = 3",
	}
	direct, demands := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres", demandDevice))
	s.runsOnDevice(t, len(queries)*len(protocols), func() {
		for _, q := range queries {
			same(t, direct, demands, q)
		}
	})
	kernels := s.compiles(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.exited
	if bad := s.faults(); bad != "" {
		t.Error(bad)
	}
	if images, err := filepath.Glob(filepath.Join(dir, "kernels", deviceKind, "*")); err != nil || len(images) == 0 {
		t.Errorf("no compiled kernels in %s: %v", dir, err)
	}
	if err := s.serve(t.Context(), pgaccelProgram(t), "--device", deviceKind, "--device-worker", emulatorProgram(t), "--data-dir", dir); err != nil {
		t.Fatal(err)
	}
	s.deviceIs(t, 1)
	s.compiled(t, kernels)
	proxy := connect(t, s.proxy.url("postgres"))
	s.runsOnDevice(t, len(queries), func() { // later ones would tell how long the processor takes
		for _, q := range queries {
			if want, got := ask(t, direct, q, nil), ask(t, proxy, q, nil); got.String() != want.String() {
				t.Errorf("%s%s", q, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
	})
	if n := s.compiles(t); n != kernels {
		t.Errorf("%v kernels were compiled in all, %v before the first execution", n, kernels)
	}
}

// prewarmList waits until the list of columns that devices had has all of words, and returns it.
func prewarmList(t *testing.T, dir string, words ...string) string {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // it is made now and then
		list, err := os.ReadFile(filepath.Join(dir, "prewarm"))
		if !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(list, []byte(w)) }) {
			return string(list)
		}
		if time.Now().After(limit) {
			t.Fatalf("the list of columns is %q, %v", list, err)
		}
	}
}

// again ends pgaccel, as a service is ended, and starts it with the same data directory.
func (s *stack) again(t *testing.T, dir string, between func()) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.exited
	if bad := s.faults(); bad != "" {
		t.Error(bad)
	}
	between()
	if err := s.serve(t.Context(), pgaccelProgram(t), "--device", deviceKind, "--device-worker", emulatorProgram(t), "--data-dir", dir); err != nil {
		t.Fatal(err)
	}
}

const prewarmSchema = `
CREATE TABLE named (id int PRIMARY KEY, g smallint, v bigint NOT NULL, name text NOT NULL, unread int NOT NULL);
INSERT INTO named SELECT i, nullif(i % 10, 3), i % 1000 * 100000000000, 'the name of ' || i, i FROM generate_series(1, 300000) i;
DELETE FROM named WHERE id % 1000 = 7;
VACUUM ANALYZE;
`

// TestDevicePrewarmed: a device that comes after another one, of this process or, with a data directory, of the last, has
// the columns and strings that queries have read there, before any asks.
func TestDevicePrewarmed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := deviceStack(t, prewarmSchema, "--data-dir", dir)
	queries := []string{
		"SELECT g, count(*), sum(v) FROM named GROUP BY g ORDER BY g",
		"SELECT count(*), max(v) FROM named WHERE name LIKE '%97%'",
	}
	direct := connect(t, s.direct.url("postgres"))
	ask := func() {
		t.Helper()
		demands := connect(t, s.proxy.url("postgres", demandDevice))
		s.runsOnDevice(t, len(queries)*len(protocols), func() {
			for _, q := range queries {
				same(t, direct, demands, q)
			}
		})
	}
	ask()
	had := s.metric(t, "pgaccel_column_device_bytes")
	for _, column := range []string{"g", "v", "name"} {
		if had[`column="`+column+`",table="public.named"`] == 0 {
			t.Fatalf("the device has no %s: %v", column, had)
		}
	}
	if name := had[`column="name",table="public.named"`]; name < 1e6 || len(had) != 3 {
		t.Fatalf("the device has %v, %v", had, s.metric(t, "pgaccel_device_kept_bytes"))
	}
	prewarmed := func() {
		t.Helper()
		for limit := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			has := s.metric(t, "pgaccel_column_device_bytes")
			if maps.Equal(has, had) {
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("the device has %v, had %v", has, had)
			}
		}
		copied := func() float64 { return s.metric(t, "pgaccel_device_copied_bytes_total")[`device="`+deviceKind+`:0"`] }
		before := copied()
		ask()
		if n := copied() - before; n > 100_000 {
			t.Errorf("%v bytes were copied for queries", n)
		}
	}
	list := prewarmList(t, dir, `"strings":true`, `"g"`)
	s.killWorker(t)
	s.deviceIs(t, 0)
	s.deviceIs(t, 1)
	prewarmed()
	s.again(t, dir, func() {
		if now := prewarmList(t, dir); now != list {
			t.Errorf("the list is %q after the end, was %q", now, list)
		}
	})
	s.deviceIs(t, 1)
	prewarmed()
}

// TestDevicePrewarmChanged: columns in the list that are no longer held, or not there, or of a table that is not, are no harm.
func TestDevicePrewarmChanged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := deviceStack(t, prewarmSchema+"CREATE TABLE dropped (d int PRIMARY KEY);\nINSERT INTO dropped SELECT generate_series(1, 200000);\n", "--data-dir", dir)
	direct := connect(t, s.direct.url("postgres"))
	demands := connect(t, s.proxy.url("postgres", demandDevice))
	s.runsOnDevice(t, 2*len(protocols), func() {
		same(t, direct, demands, "SELECT g, count(*), sum(v), sum(unread) FROM named GROUP BY g ORDER BY g")
		same(t, direct, demands, "SELECT sum(d) FROM dropped")
	})
	prewarmList(t, dir, `"g"`, `"v"`, `"unread"`, `"d"`)
	s.again(t, dir, func() {
		for _, sql := range []string{"ALTER TABLE named ALTER v TYPE numeric(18,2) USING CASE WHEN id = 5 THEN 'NaN'::numeric ELSE v / 1e10 END",
			"ALTER TABLE named DROP unread", "DROP TABLE dropped"} {
			if _, err := direct.Exec(t.Context(), sql).ReadAll(); err != nil {
				t.Fatal(err)
			}
		}
	})
	s.deviceIs(t, 1)
	for limit := time.Now().Add(time.Minute); s.metric(t, "pgaccel_column_device_bytes")[`column="g",table="public.named"`] == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("the device has no column")
		}
	}
	demands = connect(t, s.proxy.url("postgres", demandDevice))
	s.runsOnDevice(t, len(protocols), func() { same(t, direct, demands, "SELECT g, count(*) FROM named GROUP BY g ORDER BY g") })
	if text, _ := os.ReadFile(s.log); bytes.Contains(text, []byte("was not brought")) {
		t.Errorf("pgaccel's log:\n%s", text)
	}
}

// TestDevicePrewarmLost: what ends devices is not brought to one after another.
func TestDevicePrewarmLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := deviceStack(t, prewarmSchema, "--data-dir", dir)
	direct := connect(t, s.direct.url("postgres"))
	demands := connect(t, s.proxy.url("postgres", demandDevice))
	s.runsOnDevice(t, len(protocols), func() {
		same(t, direct, demands, "SELECT g, count(*), sum(v), sum(id), sum(unread) FROM named GROUP BY g ORDER BY g")
	})
	prewarmList(t, dir, `"g"`, `"v"`, `"id"`, `"unread"`)
	s.again(t, dir, func() { t.Setenv("PGACCEL_EMU_FAULTS", "exit=1") })
	restarts := func() float64 { return s.metric(t, "pgaccel_device_worker_restarts_total")[""] }
	for limit := time.Now().Add(time.Minute); restarts() < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%v restarts", restarts())
		}
	}
	s.deviceIs(t, 1)
	time.Sleep(3 * time.Second) // to be ended again
	if n := restarts(); n != 2 {
		t.Errorf("%v restarts", n)
	}
}

// TestDevicePrepared: the kernels of a statement that is prepared are compiled before its first execution, which is
// the device's though it does not wait for a compiler.
func TestDevicePrepared(t *testing.T) {
	s := deviceStack(t, bigTable)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	const sql = "SELECT g, count(*), max(v) FROM big WHERE v < 700 GROUP BY g ORDER BY g"
	s.compiled(t, 1) // what every query needs
	s.runsOnDevice(t, 0, func() {
		if _, err := proxy.Prepare(t.Context(), "q", sql, nil); err != nil {
			t.Fatal(err)
		}
		s.compiled(t, 2)
	})
	s.runsOnDevice(t, 1, func() {
		r := proxy.ExecPrepared(t.Context(), "q", nil, nil, nil).Read()
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		want := direct.ExecParams(t.Context(), sql, nil, nil, nil, nil).Read()
		if want.Err != nil || !slices.EqualFunc(r.Rows, want.Rows, func(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }) || len(r.Rows) != 10 {
			t.Errorf("%q, want %q, %v", r.Rows, want.Rows, want.Err)
		}
	})
	if n := s.compiles(t); n != 2 {
		t.Errorf("%v kernels were compiled", n)
	}
	// What is not prepared waits, if it demands the device, and EXPLAIN says for how long.
	demands := connect(t, s.proxy.url("postgres", demandDevice))
	const explain = "EXPLAIN ANALYZE SELECT g, count(*), min(v), max(id) FROM big WHERE id > 1000 GROUP BY g"
	first, second := ask(t, demands, explain, nil).String(), ask(t, demands, explain, nil).String()
	for _, word := range []string{"Device: " + deviceKind + ":0", "Device Compile Time: ", "Device Copy Time: ", "Device Compute Time: ", "Bytes Copied to Device: "} {
		if !strings.Contains(first, word) {
			t.Errorf("no %q in %s", word, first)
		}
	}
	if strings.Contains(second, "Compile Time") || strings.Contains(second, "Copy Time") || !strings.Contains(second, "Device Compute Time: ") {
		t.Errorf("the second time: %s", second)
	}
}
