package replica

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
)

// benchRows is the size of the table that is copied; PGACCEL_BENCH_ROWS sets
// another, such as 6000000 for the Star Schema Benchmark's at scale 1.
func benchRows() string {
	if n := os.Getenv("PGACCEL_BENCH_ROWS"); n != "" {
		if _, err := strconv.Atoi(n); err == nil {
			return n
		}
	}
	return "200000"
}

// BenchmarkCopy compares the copy of a table with 17 columns, as SSB's lineorder
// has, into the store with the same COPY into nothing.
func BenchmarkCopy(b *testing.B) {
	benchmarkCopy(b, `CREATE TABLE lineorder (lo_orderkey int, lo_linenumber int, lo_custkey int, lo_partkey int, lo_suppkey int, lo_orderdate int, lo_orderpriority varchar(15), lo_shippriority varchar(1),
		lo_quantity int, lo_extendedprice int, lo_ordtotalprice int, lo_discount int, lo_revenue int, lo_supplycost int, lo_tax int, lo_commitdate int, lo_shipmode varchar(10));
		INSERT INTO lineorder SELECT g / 4, g % 7 + 1, (g * 7919::bigint) % 30000, (g * 104729::bigint) % 200000, g % 2000, 19920101 + g % 2556, (ARRAY['1-URGENT','2-HIGH','3-MEDIUM','4-NOT SPECI','5-LOW'])[1 + g % 5], '0',
		1 + g % 50, (g * 31::bigint) % 10000000, (g * 37::bigint) % 40000000, g % 11, (g * 41::bigint) % 10000000, g % 120000, g % 9, 19920101 + g % 2500, (ARRAY['TRUCK','MAIL','SHIP','RAIL','AIR','FOB','REG AIR'])[1 + g % 7]
		FROM generate_series(1, `+benchRows()+`) g; ALTER TABLE lineorder REPLICA IDENTITY FULL`)
}

// BenchmarkCopyTexts does so with texts that hardly ever come twice: all writers add to
// the same dictionaries.
func BenchmarkCopyTexts(b *testing.B) {
	benchmarkCopy(b, `CREATE TABLE texts (id int, u text, v text, w text); INSERT INTO texts SELECT g, md5(g::text), 'order number ' || g, 'half ' || (g / 2)
		FROM generate_series(1, `+benchRows()+`) g; ALTER TABLE texts REPLICA IDENTITY FULL`)
}

func benchmarkCopy(b *testing.B, create string) {
	url := database(b)
	c := connectTo(b, url)
	mustExec(b, c, create)
	mustExec(b, c, "VACUUM (FREEZE, ANALYZE)")
	e, store := testEpoch(b, url)
	meta := store.Catalog().Tables[0]
	for _, workers := range slices.Compact([]int{1, 2, 4, max(4, copySessions())}) {
		e.cfg.Workers, e.copiers = workers, newCopySlots(workers, 1<<40)
		h, err := e.hold(context.Background(), "")
		if err != nil {
			b.Fatal(err)
		}
		b.Run("store/workers="+strconv.Itoa(workers), func(b *testing.B) {
			rows := int64(0)
			for b.Loop() {
				v, err := e.copyTable(context.Background(), h, meta, newFlag(), func() {})
				if err != nil {
					b.Fatal(err)
				}
				rows += v.Rows
				v.Release()
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
		b.Run("nothing/workers="+strconv.Itoa(workers), func(b *testing.B) {
			for b.Loop() {
				copyToNothing(b, e, h, workers)
			}
		})
		h.close()
	}
}

func copyToNothing(b *testing.B, e *epoch, h *holder, workers int) {
	meta := e.cfg.Store.Catalog().Tables[0]
	leaf := leavesOf(meta)[0]
	size, err := h.pages(context.Background(), leavesOf(meta))
	if err != nil {
		b.Fatal(err)
	}
	pages := size[0].pages
	var g errgroup.Group
	var bytes atomic.Int64
	for i := range int64(workers) {
		g.Go(func() error {
			c, err := connectRaw(context.Background(), e.copyConfig)
			if err != nil {
				return err
			}
			defer c.Close()
			n := 0
			err = c.copyOut(copySQL(meta, pageRange{leaf, pages * i / int64(workers), pages * (i + 1) / int64(workers), i == int64(workers)-1}, copied(meta)), func(data []byte) error {
				n += len(data)
				return nil
			})
			bytes.Add(int64(n))
			return err
		})
	}
	if err := g.Wait(); err != nil || bytes.Load() == 0 {
		b.Fatalf("%d bytes, %v", bytes.Load(), err)
	}
}
