package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// onlyCPU are the session's queries, by number, that a device does not compute.
var onlyCPU = map[int]bool{8: true} // min and max of text

// TestDeviceAnswers runs the star schema's queries and the session's on the device, in
// each protocol and format: description, rows, tag equal, and the device has run them.
func TestDeviceAnswers(t *testing.T) {
	s := deviceStack(t, starSchema)
	names, text := ssbQueries(t)
	processor := map[string]bool{}
	for i, q := range sessionQueries(t) {
		name := fmt.Sprintf("session %d", i+1)
		names = append(names, name)
		text[name] = q
		processor[name] = onlyCPU[i+1]
	}
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres", demandDevice))
	for _, name := range names {
		for _, p := range protocols {
			t.Run(name+" "+p.name, func(t *testing.T) {
				want := 1
				if processor[name] {
					want = 0
				}
				s.runsOnDevice(t, want, func() {
					s.accelerates(t, 1, func() {
						want := ask(t, direct, text[name], p.format)
						if got := ask(t, proxy, text[name], p.format); got.String() != want.String() {
							t.Errorf("%s", firstDifference([]byte(got.String()), []byte(want.String())))
						}
					})
				})
			})
		}
	}
	t.Run("virtual tables", func(t *testing.T) {
		for _, q := range []struct{ sql, want string }{
			{"SELECT device, budget_bytes > 0, used_bytes > 0, queries > 12, faults FROM pgaccel.devices", `"` + deviceKind + `:0"|"t"|"t"|"t"|"0"|`},
			{"SELECT device_bytes > 0 FROM pgaccel.tables WHERE name = 'public.lineorder'", `"t"|`},
			{`SELECT "column" FROM pgaccel.columns WHERE "table" = 'public.lineorder' AND device_bytes > 0 AND "column" = 'lo_revenue'`, `"lo_revenue"|`},
			{`SELECT count(*) FROM pgaccel.columns WHERE "column" = 'lo_tax' AND device_bytes > 0`, `"0"|`},
			{"SELECT DISTINCT device FROM pgaccel.queries WHERE query LIKE '%d_yearmonthnum = %' AND device_calls > 0", `"` + deviceKind + `:0"|`},
		} {
			if a := ask(t, proxy, q.sql, nil); len(a.rows) != 1 || a.rows[0] != q.want {
				t.Errorf("%s: %s, want %s", q.sql, a, q.want)
			}
		}
	})
	t.Run("setting", func(t *testing.T) { testDeviceSetting(t, s, text["q1.1"]) })
	t.Run("errors", func(t *testing.T) { testDeviceErrors(t, s) })
}

// testDeviceSetting: pgaccel.device decides who computes.
func testDeviceSetting(t *testing.T, s *stack, sql string) {
	proxy := connect(t, s.proxy.url("postgres"))
	here, absent := "SET pgaccel.device = 'emu'", "SET pgaccel.device = 'cuda'"
	if deviceKind != "emu" {
		here, absent = absent, here
	}
	for _, c := range []struct {
		set  string
		runs int
	}{{here, 1}, {"SET pgaccel.device = 'cpu'", 0}, {absent, 0},
		{"BEGIN; " + strings.Replace(here, "SET", "SET LOCAL", 1), 1}, {"COMMIT", 0}, {here, 1}, {"SET pgaccel.mode = 'off'", 0}} {
		if a := ask(t, proxy, c.set, nil); a.err != "" {
			t.Fatal(a.err)
		}
		s.runsOnDevice(t, c.runs, func() { ask(t, proxy, sql, nil) })
	}
	// By itself a query over so few rows is the processor's.
	auto := connect(t, s.proxy.url("postgres"))
	s.runsOnDevice(t, 0, func() {
		s.accelerates(t, 1, func() { ask(t, auto, "SELECT max(lo_tax), count(*) FROM lineorder WHERE lo_linenumber < 3", nil) })
	})
	if n := s.metric(t, "pgaccel_device_fallbacks_total")[`reason="small"`]; n < 1 {
		t.Errorf("fallbacks: %v", s.metric(t, "pgaccel_device_fallbacks_total"))
	}
}

// testDeviceErrors: where a value cannot be computed the error is Postgres'.
func testDeviceErrors(t *testing.T, s *stack) {
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres", demandDevice))
	for _, q := range []string{
		"SELECT sum(lo_revenue / (lo_discount - 3)) FROM lineorder",
		"SELECT sum(lo_revenue % (lo_discount - 3)) FROM lineorder WHERE lo_quantity < 25",
		"SELECT count(*) FROM lineorder WHERE lo_extendedprice * lo_extendedprice > 5",
		"SELECT lo_discount, max(2147483647 - lo_discount + lo_quantity) FROM lineorder GROUP BY 1 ORDER BY 1",
		"SELECT count(lo_revenue / (lo_discount - 3)) FROM lineorder",
		"SELECT k, sum(i8 + i8) FROM typed GROUP BY k ORDER BY k",
		"SELECT k, sum(k * 30000::smallint) FROM typed GROUP BY k ORDER BY k",
		"SELECT max(lo_revenue::float8 / (lo_discount - 3)::float8) FROM lineorder",
		"SELECT count(*) FROM lineorder WHERE lo_revenue::float8 * 1e300 * 1e5 > 5",
		"SELECT sum((lo_discount + 1)::float8 * 1e-200 * 1e-200) FROM lineorder",
		"SELECT lo_discount::float8 * -0.0 AS zero, count(*) FROM lineorder GROUP BY zero",
		// And none where no such row is left.
		"SELECT sum(lo_revenue / (lo_discount - 3)) FROM lineorder WHERE lo_discount > 3",
		"SELECT sum(CASE WHEN lo_discount <> 3 THEN lo_revenue / (lo_discount - 3) END) FROM lineorder",
	} {
		for _, p := range protocols {
			want, got := ask(t, direct, q, p.format), ask(t, proxy, q, p.format)
			if got.String() != want.String() {
				t.Errorf("%s, %s: %s", p.name, q, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
	}
}

// TestDeviceNeverStale writes on a direct connection and asks the device at once: tails
// that are not encoded, deleted rows and updated dimensions are seen.
func TestDeviceNeverStale(t *testing.T) {
	s := deviceStack(t, changingSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres", demandDevice))
	r := rand.New(rand.NewPCG(5, 1))
	before := s.onDevice(t)
	asked := 0
	for i := range 60 {
		id := 10000 + i
		var sql string
		switch r.IntN(6) {
		case 0:
			sql = fmt.Sprintf("INSERT INTO changing VALUES (%d, %d, 7)", id, r.IntN(10))
		case 1:
			sql = fmt.Sprintf("UPDATE changing SET v = v + 1 WHERE id = %d", 1+r.IntN(5000))
		case 2:
			sql = fmt.Sprintf("DELETE FROM changing WHERE id %% 97 = %d", r.IntN(97))
		case 3:
			sql = fmt.Sprintf("BEGIN; UPDATE changing SET v = -v WHERE g = %d; INSERT INTO changing VALUES (%d, 3, 3); COMMIT", r.IntN(10), id)
		case 4:
			sql = fmt.Sprintf("INSERT INTO changing SELECT i, i %% 10, i FROM generate_series(%d, %d) i", 100000+1000*i, 100000+1000*i+900)
		case 5:
			sql = fmt.Sprintf("UPDATE quiet SET name = name || '.' WHERE g = %d", r.IntN(10))
		}
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(sql, a.err)
		}
		p := protocols[i%3]
		for _, q := range []string{sumChanging, joinChanging} {
			got := ask(t, proxy, q, p.format)
			if want := ask(t, direct, q, p.format); got.String() != want.String() {
				t.Fatalf("stale after %s: %s%s", sql, q, firstDifference([]byte(got.String()), []byte(want.String())))
			}
			asked++
		}
	}
	// The stream may come too late for some, which Postgres then answers.
	if n := s.onDevice(t) - before; n < asked/2 {
		t.Errorf("the device ran %d of %d executions; fallbacks %v", n, asked, s.metric(t, "pgaccel_device_fallbacks_total"))
	}
}

// sumAccounts never changes while money moves.
const sumAccounts = "SELECT sum(balance), count(*) FROM accounts"

// underLoad has writers move money on direct connections and readers ask the device for
// the sum, for as long as f runs, and returns how often they asked.
func (s *stack) underLoad(t *testing.T, f func()) (asked int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	for w := range 2 {
		conn := connect(t, s.direct.url("postgres"))
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 9))
			for ctx.Err() == nil {
				a, b := 1+r.IntN(200), 1+r.IntN(200)
				if _, err := conn.Exec(context.Background(), fmt.Sprintf("BEGIN; UPDATE accounts SET balance = balance - 5 WHERE id = %d; UPDATE accounts SET balance = balance + 5 WHERE id = %d; COMMIT",
					min(a, b), max(a, b))).ReadAll(); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			}
		})
	}
	var mu sync.Mutex
	for i := range 3 {
		conn := connect(t, s.proxy.url("postgres", demandDevice))
		quiet := ask(t, conn, joinQuiet, nil)
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				a := ask(t, conn, sumAccounts, protocols[n%2].format)
				if len(a.rows) != 1 || a.rows[0] != `"200000"|"200"|` {
					t.Errorf("torn: %s", a)
					return
				}
				if b := ask(t, conn, joinQuiet, nil); b.String() != quiet.String() {
					t.Errorf("a table that nobody changes: %s", firstDifference([]byte(b.String()), []byte(quiet.String())))
					return
				}
				mu.Lock()
				asked += 2
				mu.Unlock()
			}
		})
	}
	f()
	cancel()
	wg.Wait()
	return asked
}

// joinQuiet is over tables that the load does not change.
const joinQuiet = joinChanging

// TestDeviceSumsNeverTear: each answer is of one moment.
func TestDeviceSumsNeverTear(t *testing.T) {
	s := deviceStack(t, changingSchema)
	before := s.onDevice(t)
	asked := s.underLoad(t, func() { time.Sleep(6 * time.Second) })
	if n := s.onDevice(t) - before; n < asked/3 || asked < 10 {
		t.Errorf("the device ran %d of %d executions; fallbacks %v", n, asked, s.metric(t, "pgaccel_device_fallbacks_total"))
	}
}

// TestNoDevice: a device that is demanded and not there costs nothing but speed, and
// pgaccel says so.
func TestNoDevice(t *testing.T) {
	s := privateStack(t, changingSchema, "--device", "cuda")
	direct := connect(t, s.direct.url("postgres"))
	proxy := connect(t, s.proxy.url("postgres", strings.Replace(demandDevice, "emu", "cuda", 1)))
	s.accelerates(t, 2, func() { same(t, direct, proxy, sumChanging) })
	if a := ask(t, proxy, "SELECT device LIKE 'none (%', queries FROM pgaccel.devices", nil); len(a.rows) != 1 || a.rows[0] != `"t"|"0"|` {
		t.Errorf("pgaccel.devices: %s", a)
	}
	if n := s.onDevice(t); n != 0 {
		t.Errorf("no device ran %d executions", n)
	}
	total := 0.0
	for _, n := range s.metric(t, "pgaccel_device_fallbacks_total") {
		total += n
	}
	if total < 2 {
		t.Errorf("%v fallbacks", total)
	}
}
