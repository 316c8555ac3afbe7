package integration

import (
	"fmt"
	"testing"
	"time"
)

// TestDeviceWorkerKilled kills the worker while readers ask: every answer is right, the
// processor gives those that the device does not, and the device comes back.
func TestDeviceWorkerKilled(t *testing.T) {
	s := deviceStack(t, changingSchema)
	ran := 0
	s.underLoad(t, func() {
		time.Sleep(2 * time.Second)
		for i := range 3 {
			s.killWorker(t)
			s.deviceIs(t, 0)
			s.deviceIs(t, 1)
			ran = s.onDevice(t)
			time.Sleep(time.Duration(300+500*i) * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
	})
	if n := s.onDevice(t); n <= ran {
		t.Errorf("after the last start the device ran %d executions", n-ran)
	}
	if n := s.metric(t, "pgaccel_device_worker_restarts_total")[""]; n != 3 {
		t.Errorf("%v restarts, want 3", n)
	}
	fallbacks := s.metric(t, "pgaccel_device_fallbacks_total")
	if fallbacks[`reason="no device"`]+fallbacks[`reason="device fault"`] == 0 {
		t.Errorf("fallbacks: %v", fallbacks)
	}
}

// TestDeviceFaults has calls of the device fail at random while readers ask.
func TestDeviceFaults(t *testing.T) {
	for _, c := range []struct {
		faults, counter string
		lost            bool // the worker ends, and comes back
	}{
		{"alloc=0.3", "", false},
		{"launch=0.2", `kind="launch failed"`, false},
		{"wild=0.05", `kind="device lost"`, true},
		{"exit=0.05", `kind="device lost"`, true},
	} {
		t.Run(c.faults, func(t *testing.T) {
			t.Setenv("PGACCEL_EMU_FAULTS", c.faults)
			s := deviceStack(t, changingSchema)
			before := s.onDevice(t)
			asked := s.underLoad(t, func() {
				// Long enough for a fault, and for what comes after one.
				for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
					faults := 0.0
					for labels, n := range s.metric(t, "pgaccel_device_faults_total") {
						if c.counter != "" && labels == `device="emu:0",`+c.counter {
							faults += n
						}
					}
					restarts := s.metric(t, "pgaccel_device_worker_restarts_total")[""]
					if s.onDevice(t) > before+5 && (c.counter == "" || faults > 0) && (!c.lost || restarts > 0) {
						break
					}
				}
			})
			fallbacks := s.metric(t, "pgaccel_device_fallbacks_total")
			t.Logf("%d of %d executions on the device; fallbacks %v; faults %v; restarts %v", s.onDevice(t)-before, asked, fallbacks,
				s.metric(t, "pgaccel_device_faults_total"), s.metric(t, "pgaccel_device_worker_restarts_total")[""])
			if s.onDevice(t)-before < 1 {
				t.Error("the device ran nothing")
			}
			if c.counter != "" && fallbacks[`reason="device fault"`]+fallbacks[`reason="no device"`] == 0 {
				t.Error("no fault was counted")
			}
			if c.lost {
				if s.metric(t, "pgaccel_device_worker_restarts_total")[""] == 0 {
					t.Error("the worker was not started again")
				}
			}
		})
	}
}

// TestDeviceSmallMemory gives the device less memory than the columns take: they are
// evicted, or pass through it, and answers are right.
func TestDeviceSmallMemory(t *testing.T) {
	schema := `
CREATE TABLE wide (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, c int NOT NULL, d bigint NOT NULL, e bigint NOT NULL);
INSERT INTO wide SELECT i, (i * 7919::bigint) % 100003, (i * 104729::bigint) % 99991, (i * 1299709::bigint) % 1000003, (i * 15485863::bigint) % 1000000007, i::bigint * i FROM generate_series(1, 200000) i;
VACUUM ANALYZE;
`
	s := deviceStack(t, schema, "--device-memory", "2MiB")
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres", demandDevice))
	asked := 0
	before := s.onDevice(t)
	for round := range 3 {
		for i, column := range []string{"a", "b", "c", "d", "e"} {
			q := fmt.Sprintf("SELECT %[1]s %% 10, count(*), sum(%[1]s), min(b), max(c) FROM wide WHERE a BETWEEN %[2]d AND 90000 GROUP BY 1 ORDER BY 1", column, 1000*round)
			p := protocols[i%3]
			if want, got := ask(t, direct, q, p.format), ask(t, proxy, q, p.format); got.String() != want.String() {
				t.Errorf("%s: %s", q, firstDifference([]byte(got.String()), []byte(want.String())))
			}
			asked++
		}
	}
	evicted, streamed := s.metric(t, "pgaccel_device_evictions_total")[`device="emu:0"`], s.metric(t, "pgaccel_device_streamed_queries_total")[`device="emu:0"`]
	t.Logf("%d of %d executions on the device; %v evictions, %v streamed; fallbacks %v", s.onDevice(t)-before, asked, evicted, streamed, s.metric(t, "pgaccel_device_fallbacks_total"))
	if n := s.onDevice(t) - before; n < asked*2/3 {
		t.Errorf("the device ran %d of %d executions", n, asked)
	}
	if evicted+streamed == 0 {
		t.Error("nothing was evicted, nothing passed through")
	}
	if used, limit := s.metric(t, "pgaccel_device_memory_bytes")[`device="emu:0"`], s.metric(t, "pgaccel_device_memory_limit_bytes")[`device="emu:0"`]; used > limit || limit != 2<<20 {
		t.Errorf("%v bytes of %v in use", used, limit)
	}
}
