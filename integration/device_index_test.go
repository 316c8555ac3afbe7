package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// indexedSchema is a table of more than two segments, whose rows come as those of logs do: clustered.
const indexedSchema = `
CREATE TABLE events (id int PRIMARY KEY, day int NOT NULL, status int, kind int NOT NULL, v bigint NOT NULL);
INSERT INTO events SELECT i, i / 300, CASE WHEN i % 9000 < 40 THEN NULL ELSE i / 4000 % 7 END, i / 1000 % 40, i * 7919 % 10007 FROM generate_series(1, 140000) i;
VACUUM ANALYZE;
`

// bitmapQueries returns how many executions have asked bitmap indexes on a device.
func (s *stack) bitmapQueries(t *testing.T) int {
	return int(s.metric(t, "pgaccel_device_bitmap_queries_total")[""])
}

// randomEvents is a query over events with conditions that indexes answer. There are few shapes, each
// of which has a kernel.
func randomEvents(r *rand.Rand, shape int) string {
	day := r.IntN(500)
	days := fmt.Sprintf("day BETWEEN %d AND %d", day, day+r.IntN(120))
	statuses := fmt.Sprintf("status IN (%d, %d)", r.IntN(4), 4+r.IntN(5))
	kinds := fmt.Sprintf("kind BETWEEN %d AND %d", r.IntN(20), 18+r.IntN(30))
	switch shape % 5 {
	case 0:
		return "SELECT count(*), sum(v) FROM events WHERE " + days
	case 1:
		return "SELECT kind, count(*), min(v) FROM events WHERE " + statuses + " GROUP BY kind ORDER BY kind"
	case 2:
		return "SELECT count(*), max(id) FROM events WHERE " + days + " AND " + kinds + " AND " + statuses
	case 3:
		return "SELECT count(*) FROM events WHERE " + kinds
	}
	return "SELECT sum(v) FROM events WHERE " + fmt.Sprintf("status = %d AND v < %d", r.IntN(9), r.IntN(9000))
}

// TestDeviceIndexes: bitmap indexes say on a device which rows to look at, while rows are deleted and
// changed, and segments come that have no index yet.
func TestDeviceIndexes(t *testing.T) {
	s := deviceStack(t, indexedSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres", demandDevice+"%20-c%20pgaccel.index%3Dforce"))
	r := rand.New(rand.NewPCG(17, 1))
	for deadline := time.Now().Add(time.Minute); s.bitmapQueries(t) < 5; {
		if time.Now().After(deadline) {
			t.Fatalf("no index is asked: %v", s.metric(t, "pgaccel_device_fallbacks_total"))
		}
		for shape := range 5 {
			same(t, direct, proxy, randomEvents(r, shape))
		}
		time.Sleep(50 * time.Millisecond)
	}
	before, onDevice, asked := s.bitmapQueries(t), s.onDevice(t), 0
	for i := range 20 {
		var sql string
		switch r.IntN(5) {
		case 0:
			sql = fmt.Sprintf("DELETE FROM events WHERE id %% 97 = %d", r.IntN(97))
		case 1:
			sql = fmt.Sprintf("UPDATE events SET status = %d WHERE id %% 5000 = %d", r.IntN(9), r.IntN(5000))
		case 2:
			sql = fmt.Sprintf("INSERT INTO events SELECT i, i / 300, i / 4000 %% 7, i / 1000 %% 40, i FROM generate_series(%d, %d) i", 200000+10000*i, 200000+10000*i+9000)
		}
		if sql != "" {
			if a := ask(t, direct, sql, nil); a.err != "" {
				t.Fatal(sql, a.err)
			}
		}
		for shape := range 5 {
			q, p := randomEvents(r, shape), protocols[i%3]
			got, want := ask(t, proxy, q, p.format), ask(t, direct, q, p.format)
			if got.String() != want.String() {
				t.Fatalf("after %s: %s: %s", sql, q, firstDifference([]byte(got.String()), []byte(want.String())))
			}
			asked++
		}
	}
	if n, on := s.bitmapQueries(t)-before, s.onDevice(t)-onDevice; on < asked/2 || 2*n < on {
		t.Errorf("of %d executions the device ran %d, %d with indexes; fallbacks %v", asked, on, n, s.metric(t, "pgaccel_device_fallbacks_total"))
	}
	t.Run("explain", func(t *testing.T) {
		a := ask(t, proxy, "EXPLAIN (ANALYZE, TIMING OFF) SELECT count(*), sum(v) FROM events WHERE day BETWEEN 3 AND 40", nil)
		if text := a.String(); !strings.Contains(text, "Segments Narrowed by Bitmap Index: ") {
			t.Error(text)
		}
	})
	t.Run("off", func(t *testing.T) {
		off := connect(t, s.proxy.url("postgres", demandDevice+"%20-c%20pgaccel.index%3Doff"))
		before := s.bitmapQueries(t)
		s.runsOnDevice(t, len(protocols), func() { same(t, direct, off, randomEvents(r, 0)) })
		if n := s.bitmapQueries(t); n != before {
			t.Errorf("%d executions asked indexes", n-before)
		}
	})
}
