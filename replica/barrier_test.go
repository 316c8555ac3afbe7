package replica

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/pgserver"
)

// insertPosition returns what a gate would wait for.
func insertPosition(ctx context.Context, c *pgx.Conn, store *colstore.Store) (uint64, error) {
	var lsn int64
	if err := c.QueryRow(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0')::int8").Scan(&lsn); err != nil {
		return 0, err
	}
	cat := store.Catalog()
	return catalog.NormalizeLSN(uint64(lsn), cat.WALSegmentSize, cat.WALBlockSize), nil
}

// BenchmarkWait measures what a query waits for the stream, beside writers, on a server
// that really flushes its log. Waits above 50 ms count as that.
func BenchmarkWait(b *testing.B) {
	ctx := context.Background()
	pg, err := pgserver.Start(ctx, pgserver.Options{Settings: map[string]string{"fsync": "on", "full_page_writes": "on", "autovacuum": "off"}})
	if err != nil {
		b.Fatal(err)
	}
	defer pg.Stop()
	url := pg.URL("postgres", "postgres")
	c := connectTo(b, url)
	mustExec(b, c, "CREATE TABLE w (id int PRIMARY KEY, v int); INSERT INTO w SELECT i, 0 FROM generate_series(1, 10000) i; CREATE TABLE u (LIKE w INCLUDING ALL); INSERT INTO u TABLE w")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(b, url, Config{Store: store, Accelerate: []string{"public.w"}, RecopyQuiet: time.Hour})
	ready(b, r)
	for _, load := range []struct {
		name  string
		table string
		sync  string
		rate  int // transactions a second; 0: none, -1: as many as go
	}{
		{"idle", "w", "on", 0},
		{"own sync", "w", "on", 0}, {"own async", "w", "off", 0},
		{"sync 2000", "w", "on", 2000}, {"async 2000", "w", "off", 2000},
		{"unpublished 2000", "u", "on", 2000},
		{"sync full", "w", "on", -1}, {"async full", "w", "off", -1},
	} {
		b.Run(load.name, func(b *testing.B) {
			loaded, stop := context.WithCancel(ctx)
			var done atomic.Int64
			var writers errgroup.Group
			const clients = 4
			begin := time.Now()
			for i := range clients {
				if load.rate == 0 {
					break
				}
				w := connectTo(b, url)
				mustExec(b, w, "SET synchronous_commit = "+load.sync)
				writers.Go(func() error {
					next := time.Now()
					for n := i; loaded.Err() == nil; n += clients {
						if load.rate > 0 {
							next = next.Add(time.Second * clients / time.Duration(load.rate))
							time.Sleep(time.Until(next))
						}
						if _, err := w.Exec(ctx, "UPDATE "+load.table+" SET v = v + 1 WHERE id = $1", 1+(n*7919)%10000); err != nil {
							return err
						}
						done.Add(1)
					}
					return nil
				})
			}
			own := connectTo(b, url)
			mustExec(b, own, "SET synchronous_commit = "+load.sync)
			var gates, waits []time.Duration
			for b.Loop() {
				time.Sleep(time.Millisecond)
				if load.name[:3] == "own" {
					mustExec(b, own, "UPDATE w SET v = v + 1 WHERE id = 1")
				}
				t0 := time.Now()
				target, err := insertPosition(ctx, own, store)
				if err != nil {
					b.Fatal(err)
				}
				t1 := time.Now()
				limited, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				store.Wait(limited, target)
				cancel()
				gates, waits = append(gates, t1.Sub(t0)), append(waits, time.Since(t1))
			}
			took := time.Since(begin)
			stop()
			if err := writers.Wait(); err != nil {
				b.Fatal(err)
			}
			slices.Sort(waits)
			slices.Sort(gates)
			at := func(d []time.Duration, q float64) float64 {
				return float64(d[int(q*float64(len(d)-1))].Nanoseconds()) / 1e3
			}
			b.ReportMetric(at(gates, 0.5), "gate-p50-us")
			for _, q := range []float64{0.5, 0.9, 0.99} {
				b.ReportMetric(at(waits, q), fmt.Sprintf("p%.0f-us", 100*q))
			}
			b.ReportMetric(float64(done.Load())/took.Seconds(), "tps")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestIdleServerIsLeftAlone: waiting for what is there already, or not waiting at all,
// writes nothing to the log. The server itself may write now and then, not always.
func TestIdleServerIsLeftAlone(t *testing.T) {
	ctx := context.Background()
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	ready(t, start(t, url, Config{Store: store}))
	waitInsert(t, c, store)
	eventually(t, "nothing is written", func() bool {
		before, err := insertPosition(ctx, c, store)
		for range 300 {
			waitInsert(t, c, store)
			time.Sleep(time.Millisecond)
		}
		after, err2 := insertPosition(ctx, c, store)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return after == before
	})
}

// TestNudgeComesBack: without its session, which ends, the barrier takes another; the
// stream goes on.
func TestNudgeComesBack(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	ready(t, start(t, url, Config{Store: store}))
	mustExec(t, c, "SET synchronous_commit = off")
	const slot = "SELECT active_pid::text FROM pg_replication_slots WHERE database = current_database()"
	before := queryText(t, c, slot)
	killed := 0
	for i := range 5 {
		eventually(t, "the nudge's session is there", func() bool {
			mustExec(t, c, fmt.Sprintf("INSERT INTO a VALUES (%d) ON CONFLICT (id) DO UPDATE SET id = excluded.id", i))
			waitInsert(t, c, store)
			n := queryText(t, c, "SELECT count(pg_terminate_backend(pid, 10000))::text FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_logical_emit_message%' AND pid <> pg_backend_pid()")
			return n == "1"
		})
		killed++
	}
	if after := queryText(t, c, slot); after != before || killed != 5 {
		t.Errorf("walsender %s, then %s", before, after)
	}
}

// TestOnePingAtATime: while the server has not answered, nobody asks again; an answer
// that is not far enough does not end the asking.
func TestOnePingAtATime(t *testing.T) {
	defer func(d time.Duration) { pingUnsure = d }(pingUnsure)
	pingUnsure = time.Hour
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	pings := make(chan struct{}, 1000)
	go func() {
		message := make([]byte, 39)
		for {
			if _, err := io.ReadFull(theirs, message); err != nil {
				return
			}
			pings <- struct{}{}
		}
	}()
	s := &stream{conn: &rawConn{net: ours}, answered: make(chan struct{}, 1)}
	refuse := func(context.Context) (*pgx.Conn, error) { return nil, io.EOF }
	var waiting atomic.Int64
	waiting.Store(1)
	b := newBarrier(s, func() int { return int(waiting.Load()) }, refuse, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- b.run(ctx) }()
	for i := range uint64(500) {
		b.want(100 + i)
	}
	<-pings
	time.Sleep(50 * time.Millisecond)
	if n := len(pings); n > 0 {
		t.Errorf("%d more pings", n)
	}
	for range 3 { // keepalives of 10, which is too little
		s.seen.Store(10)
		s.answered <- struct{}{}
		<-pings
	}
	// Nobody waits any more, and the asking ends.
	waiting.Store(0)
	s.answered <- struct{}{}
	time.Sleep(50 * time.Millisecond)
	if n := len(pings); n > 0 {
		t.Errorf("%d pings for nobody", n)
	}
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}
