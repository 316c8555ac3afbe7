package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

func generate(t testing.TB, rows int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Generate(context.Background(), rows, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGenerateIsDeterministic(t *testing.T) {
	const rows = 3*blockRows + 17
	want := generate(t, rows)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if !bytes.Equal(generate(t, rows), want) {
		t.Error("one processor makes other bytes than several")
	}
	if n := bytes.Count(want, []byte("\n")); n != rows {
		t.Errorf("%d rows of %d", n, rows)
	}
}

func TestGenerateRefuses(t *testing.T) {
	for _, rows := range []int64{-1, 0, RowsMin - 1, rowsMax + 1} {
		if err := Generate(context.Background(), rows, io.Discard); err == nil {
			t.Errorf("%d rows: no error", rows)
		}
	}
	want := errors.New("full")
	if err := Generate(context.Background(), 1e6, writerFunc(func([]byte) (int, error) { return 0, want })); !errors.Is(err, want) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Generate(ctx, 1e6, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestDistribution holds the columns to what the package comment says of them.
func TestDistribution(t *testing.T) {
	const rows = 400_000
	var columns [13]map[string]int
	for i := range columns {
		columns[i] = map[string]int{}
	}
	var last, inOrder int64
	var latencies []float64
	for line := range strings.Lines(string(generate(t, rows))) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != len(columns) {
			t.Fatalf("row %q", line)
		}
		for i, v := range fields {
			columns[i][v]++
		}
		ts, err := time.Parse("2006-01-02 15:04:05.999999-07", fields[1])
		if err != nil {
			t.Fatal(err)
		}
		id, _ := strconv.ParseInt(fields[0], 10, 64)
		even := firstDay.Add(time.Duration(float64(id-1) / rows * float64(daysOfYear*24*time.Hour)))
		if off := ts.Sub(even).Abs(); off > jitterSeconds*time.Second+time.Millisecond {
			t.Fatalf("row %d is %v off", id, off)
		}
		if at := ts.UnixMicro(); at >= last {
			inOrder++
			last = at
		}
		latency, err := strconv.ParseFloat(fields[10], 64)
		if err != nil || latency <= 0 {
			t.Fatalf("row %q: %v", line, err)
		}
		latencies = append(latencies, latency)
	}
	share := func(column int, of func(v string) bool) float64 {
		n := 0
		for v, times := range columns[column] {
			if of(v) {
				n += times
			}
		}
		return float64(n) / rows
	}
	is := func(want string) func(string) bool { return func(v string) bool { return v == want } }
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s: %.4f, want %.4f", what, got, want)
		}
	}
	near("ids", float64(len(columns[0])), rows, 0)
	near("null countries", share(3, is(`\N`)), 0.03, 0.003)
	near("US", share(3, is("US")), 0.97/5.878, 0.003) // the 200th harmonic number
	near("countries", float64(len(columns[3])), countries+1, 0)
	near("mobile", share(4, is("mobile")), 0.55, 0.003)
	near("devices", float64(len(columns[4])), 4, 0)
	near("browsers", float64(len(columns[5])), 8, 0)
	near("null campaigns", share(7, is(`\N`)), 0.60, 0.003)
	near("campaigns", float64(len(columns[7])), campaigns+1, 0)
	near("status 200", share(8, is("200")), 0.90, 0.003)
	near("status 5xx", share(8, func(v string) bool { return v >= "500" }), 0.01, 0.001)
	near("null amounts", share(9, is(`\N`)), 0.15, 0.003)
	near("negative amounts", share(9, func(v string) bool { return v[0] == '-' }), 0.0085, 0.001)
	near("converted", share(12, is("t")), 0.04, 0.003)
	near("products", share(6, func(v string) bool { return strings.Contains(v, "/product/") }), 0.42, 0.08)
	near("checkouts", share(6, func(v string) bool { return strings.Contains(strings.ToLower(v), "checkout") }), 0.1, 0.05)
	near("some user's rows", share(2, is(fmt.Sprint(someUser)))*someUserRank*math.Log(float64(users(rows))), 1, 0.3)
	if n := len(columns[2]); n < 40_000 || int64(n) > users(rows) {
		t.Errorf("%d users", n)
	}
	slices.Sort(latencies)
	near("median latency", latencies[rows/2], 33, 0.3)
	near("99th percentile of latency", latencies[rows/100*99], 33*math.Exp(0.8*2.326), 8)
	// Rows are further from each other here than the jitter reaches; at ten million they
	// are not.
	near("rows in order of time", float64(inOrder), rows, 0)
	g := generator{rows: queryRows}
	last, inOrder = 0, 0
	for i := range int64(blockRows) {
		if at := g.micros(queryRows/2 + i); at >= last {
			inOrder++
			last = at
		}
	}
	if inOrder < blockRows/10 || inOrder > blockRows*9/10 {
		t.Errorf("%d of %d rows in order of time", inOrder, blockRows)
	}
	for v := range columns[11] {
		if n, err := strconv.Atoi(v); err != nil || n < 64 || n >= 1<<21 {
			t.Errorf("bytes %s", v)
		}
	}
}

func TestURLs(t *testing.T) {
	seen := map[string]bool{}
	for _, u := range theDomains().urls {
		if len(u) < urlBytesLeast || len(u) > urlBytesMost {
			t.Errorf("%d bytes: %s", len(u), u)
		}
		seen[u] = true
	}
	if len(seen) != urls {
		t.Errorf("%d URLs", len(seen))
	}
}

func TestZipf(t *testing.T) {
	z := newZipf(50)
	// Against the plain search, at every edge of a rank and beside it.
	for k, at := range z.upTo {
		for _, u := range []float64{math.Nextafter(at, 0), at, math.Nextafter(at, 1), at / 3} {
			if u >= 1 {
				continue
			}
			if got, want := z.rank(u), slices.IndexFunc(z.upTo, func(v float64) bool { return v > u }); got != want {
				t.Errorf("rank %d, u %v: %d instead of %d", k, u, got, want)
			}
		}
	}
}

func TestQueriesScale(t *testing.T) {
	find := func(rows int64, name string) string {
		i := slices.IndexFunc(Queries(rows), func(q Query) bool { return q.Name == name })
		return Queries(rows)[i].SQL
	}
	for _, c := range []struct {
		rows       int64
		name, want string
	}{
		{10_000_000, "q15", "ts < '2025-09-17 14:05:00+00'"},
		{100_000_000, "q15", "ts < '2025-09-17 14:05:00+00'"},
		{1_000_000, "q15", "ts < '2025-09-17 14:50:00+00'"},
		{10_000_000, "q17", "ts < '2025-11-03 10:00:00+00'"},
		{10_000_000, "q19", "count(*) > 1000\n"},
		{20_000, "q19", "count(*) > 2\n"},
	} {
		if !strings.Contains(find(c.rows, c.name), c.want) {
			t.Errorf("%s at %d rows: no %q in\n%s", c.name, c.rows, c.want, find(c.rows, c.name))
		}
	}
}

// TestLoad also asks the 20 queries, so that each has rows.
func TestLoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	pg, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Stop()
	const rows = 20_000
	seen := map[string]int64{}
	if err := Load(ctx, pg.URL("postgres", "postgres"), rows, func(step string, rows int64) { seen[step] = rows }); err != nil {
		t.Fatal(err)
	}
	if seen["copy"] != rows || seen["done"] != rows {
		t.Errorf("progress %v", seen)
	}
	c, err := pgconn.Connect(ctx, pg.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	var stored bytes.Buffer
	if _, err := c.CopyTo(ctx, &stored, "COPY events TO STDOUT"); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stored.Bytes(), generate(t, rows)) {
		t.Error("the stored rows are not the generated ones, to the byte")
	}
	for _, q := range Queries(rows) {
		results, err := c.Exec(ctx, q.SQL).ReadAll()
		if err != nil {
			t.Errorf("%s: %v", q.Name, err)
		} else if len(results[0].Rows) == 0 {
			t.Errorf("%s has no rows", q.Name)
		}
	}
}

func BenchmarkGenerate(b *testing.B) {
	d := theDomains()
	text := appendBlock(nil, d, 10_000_000, 0)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		text = appendBlock(text[:0], d, 10_000_000, 0)
	}
	b.ReportMetric(float64(b.N)*blockRows/b.Elapsed().Seconds(), "rows/s")
}
