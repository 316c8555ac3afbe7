package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"pgaccel/internal/pgserver"
)

const mib = 1 << 20

// physicalMemory is the machine's memory in bytes; 4 GiB where it cannot be known.
func physicalMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 4 << 30
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// postgresSettings configure the private server as a person who cares for it would:
// a quarter of the memory (6 GB at most) as buffers, generous work_mem, parallel
// queries, no JIT (it costs more than it saves at these sizes).
func postgresSettings(memory int64) map[string]string {
	size := func(bytes int64) string { return strconv.FormatInt(bytes/mib, 10) + "MB" }
	return map[string]string{
		"shared_buffers":                  size(min(6<<30, memory/4)),
		"effective_cache_size":            size(min(16<<30, memory*2/3)),
		"maintenance_work_mem":            size(min(1<<30, memory/16)),
		"work_mem":                        size(min(256<<20, memory/32)),
		"max_wal_size":                    "8GB",
		"max_parallel_workers_per_gather": strconv.Itoa(min(max(runtime.NumCPU()/2, 2), 8)), // all that max_parallel_workers allows
		"jit":                             "off",
		"synchronous_commit":              "on",
		"wal_level":                       "logical",
		"autovacuum":                      "off", // Load vacuums; nothing shall run beside the measurement
	}
}

// startPostgres starts a private server for a benchmark.
func startPostgres(ctx context.Context, binDir string) (*pgserver.Server, error) {
	if binDir == "" {
		var err error
		if binDir, err = pgserver.FindBinDir(); err != nil {
			return nil, fmt.Errorf("this needs a PostgreSQL server's programs on this machine (not a running server), and found none.\n"+
				"On Debian or Ubuntu:  sudo apt-get install -y postgresql\n"+
				"Elsewhere set PGACCEL_PG_BINDIR to the folder of initdb and postgres. (%w)", err)
		}
	}
	return pgserver.Start(ctx, pgserver.Options{BinDir: binDir, Settings: postgresSettings(physicalMemory())})
}

// prewarm reads all tables and indexes into shared_buffers. Large scans by themselves
// would not: Postgres reads tables above a quarter of shared_buffers through a small ring.
// It returns false where the server has no pg_prewarm; the queries' unmeasured runs have
// to do then.
func prewarm(ctx context.Context, c *pgconn.PgConn) (bool, error) {
	_, err := c.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_prewarm").ReadAll()
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = c.Exec(ctx, `SELECT pg_prewarm(c.oid) FROM pg_class c
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'i')`).ReadAll()
	return err == nil, err
}

// heapBytes is the size of the tables on disk, indexes not counted.
func heapBytes(ctx context.Context, c *pgconn.PgConn) (int64, error) {
	return queryInt(ctx, c, "SELECT sum(pg_table_size(oid)) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'")
}

func queryInt(ctx context.Context, c *pgconn.PgConn, sql string) (int64, error) {
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		return 0, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 1 {
		return 0, fmt.Errorf("%s: want one value", sql)
	}
	return strconv.ParseInt(string(results[0].Rows[0][0]), 10, 64)
}

// copyToNothing runs the binary COPYs of a first copy and throws the bytes away: the
// time that no first copy can be below. Like the first copy it reads large tables with a
// session a core, each a range of pages. It returns the number of bytes.
func copyToNothing(ctx context.Context, dsn string, tables []string) (int64, error) {
	control, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer control.Close(context.WithoutCancel(ctx))
	var statements []string
	for _, table := range tables {
		pages, err := queryInt(ctx, control, "SELECT pg_relation_size('"+table+"') / current_setting('block_size')::int")
		if err != nil {
			return 0, err
		}
		pieces := int64(1)
		if pages >= 1024 {
			pieces = int64(runtime.GOMAXPROCS(0))
		}
		if pieces == 1 {
			statements = append(statements, "COPY "+table+" TO STDOUT (FORMAT binary)")
			continue
		}
		for i := range pieces {
			statements = append(statements, fmt.Sprintf("COPY (SELECT * FROM %s WHERE ctid >= '(%d,0)' AND ctid < '(%d,0)') TO STDOUT (FORMAT binary)",
				table, pages*i/pieces, pages*(i+1)/pieces))
		}
	}
	var sinks = make([]countingSink, len(statements))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, sql := range statements {
		g.Go(func() error {
			c, err := pgconn.Connect(ctx, dsn)
			if err != nil {
				return err
			}
			defer c.Close(context.WithoutCancel(ctx))
			_, err = c.CopyTo(ctx, &sinks[i], sql)
			return err
		})
	}
	err = g.Wait()
	var sum int64
	for i := range sinks {
		sum += int64(sinks[i])
	}
	return sum, err
}

type countingSink int64

func (c *countingSink) Write(p []byte) (int, error) {
	*c += countingSink(len(p))
	return len(p), nil
}
