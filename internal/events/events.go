package events

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

//go:embed sql
var files embed.FS

// RowsMin and rowsMax bound the number of rows: below the first, queries find nothing;
// above the second, user ids leave 32 bits.
const (
	RowsMin = 10_000
	rowsMax = 10_000_000_000
)

const (
	// blockRows is how many rows one generator draws.
	blockRows  = 8192
	daysOfYear = 365
	// jitterSeconds is how far ts is from where its id puts it, at most: rows arrive in
	// about the order in which they happened.
	jitterSeconds = 8

	seedRows, seedURLs = 0x6576656e7473, 0x75726c73

	// someUser is a user of middling activity: about one row in 3,000.
	someUser     = 4242
	someUserRank = 200
)

var firstDay = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Schema returns the CREATE TABLE statement, without the key.
func Schema() string { return read("schema.sql") }

// Key returns the statement that adds the primary key.
func Key() string { return "ALTER TABLE events ADD PRIMARY KEY (id)" }

func read(name string) string {
	text, err := files.ReadFile("sql/" + name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}

// users is the number of users that rows are drawn from; not all of them turn up.
func users(rows int64) int64 { return max(usersLeast, rows/rowsPerUser) }

// Generate writes the table as COPY text: one row a line, columns separated by tabs, \N
// for null. Blocks are made by as many goroutines as there are processors and written in
// order.
func Generate(ctx context.Context, rows int64, w io.Writer) error {
	if rows < RowsMin || rows > rowsMax {
		return fmt.Errorf("%d rows: use %d to %d", rows, RowsMin, int64(rowsMax))
	}
	d := theDomains()
	type block struct {
		text []byte
		done chan struct{}
	}
	workers := runtime.GOMAXPROCS(0)
	queue := make(chan *block, 2*workers) // in the table's order
	free := make(chan []byte, 3*workers)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(queue)
		making, ctx := errgroup.WithContext(ctx)
		making.SetLimit(workers)
		for first := int64(0); first < rows; first += blockRows {
			b := &block{done: make(chan struct{})}
			select {
			case queue <- b:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case b.text = <-free:
			default:
			}
			making.Go(func() error {
				b.text = appendBlock(b.text[:0], d, rows, first)
				close(b.done)
				return nil
			})
		}
		return making.Wait()
	})
	g.Go(func() error {
		for b := range queue {
			<-b.done
			if _, err := w.Write(b.text); err != nil {
				return err
			}
			select {
			case free <- b.text:
			default:
			}
		}
		return ctx.Err()
	})
	return g.Wait()
}

// appendBlock appends the rows of the block that begins at row first, counted from 0.
func appendBlock(b []byte, d *domains, rows, first int64) []byte {
	g := generator{rows: rows, users: users(rows), logUsers: math.Log(float64(users(rows) + 1)), domains: d}
	g.pcg.Seed(seedRows, uint64(first))
	for i := first; i < min(first+blockRows, rows); i++ {
		b = g.appendRow(b, i)
	}
	return b
}

// below returns a number in 0..n-1. The bias of the multiplication is below n / 2^64.
func below(g *rand.PCG, n int) int {
	hi, _ := bits.Mul64(g.Uint64(), uint64(n))
	return int(hi)
}

// generator draws rows.
type generator struct {
	pcg         rand.PCG
	rows, users int64
	logUsers    float64 // of users + 1
	*domains
}

// uniform is in [0, 1).
func (g *generator) uniform() float64 { return float64(g.pcg.Uint64()>>11) / (1 << 53) }

// micros is ts of a row, in microseconds after the first instant of the year.
func (g *generator) micros(row int64) int64 {
	const year, jitter = daysOfYear * 86_400_000_000, jitterSeconds * 1_000_000
	hi, lo := bits.Mul64(uint64(row), year)
	even, _ := bits.Div64(hi, lo, uint64(g.rows))
	return max(0, int64(even)+int64(below(&g.pcg, 2*jitter))-jitter)
}

// user is drawn by rank; neighbours in rank are far apart as ids. someUser has
// someUserRank.
func (g *generator) user() int64 {
	const prime = math.MaxInt32 // more than the users, so that it divides their number never
	rank := int64(math.Exp(g.uniform() * g.logUsers))
	steps := (min(rank, g.users) - someUserRank) * prime % g.users
	return (steps+g.users+someUser-1)%g.users + 1
}

// latency is in microseconds: log-normal, by the sum of twelve uniform numbers.
func (g *generator) latency() int64 {
	var sum uint64
	for range 3 {
		v := g.pcg.Uint64()
		sum += v&0xffff + v>>16&0xffff + v>>32&0xffff + v>>48
	}
	z := float64(sum)/(1<<16) - 6
	return int64(math.Exp(math.Log(33)+0.8*z)*1000 + 0.5)
}

// cents is an amount: the product of three uniform numbers, negative once in a hundred.
func (g *generator) cents() int64 {
	c := int64(g.uniform()*g.uniform()*g.uniform()*400_000) + 1
	if below(&g.pcg, 100) == 0 {
		return -c
	}
	return c
}

func (g *generator) appendRow(b []byte, row int64) []byte {
	text := func(s string) { b = append(append(b, s...), '\t') }
	number := func(v int64) { b = append(strconv.AppendInt(b, v, 10), '\t') }
	// draws of which only some bits are needed share one number
	v := g.pcg.Uint64()
	draw := func(bits uint) (n int) {
		n = int(v & (1<<bits - 1))
		v >>= bits
		return n
	}
	oneIn := func(percent int) bool { return draw(10) < percent*1024/100 }

	number(row + 1)
	b = append(g.appendTime(b, g.micros(row)), '\t')
	number(g.user())
	if oneIn(3) {
		text(`\N`)
	} else {
		text(countryCodes[g.country.rank(g.uniform())])
	}
	s := g.surfing[draw(choiceBits)][draw(choiceBits)]
	text(s.device)
	text(s.browser)
	text(g.urls[g.url.rank(g.uniform())])
	if oneIn(60) {
		text(`\N`)
	} else {
		number(int64(g.campaign.rank(g.uniform()) + 1))
	}
	text(g.status[draw(choiceBits)])
	if v = g.pcg.Uint64(); oneIn(15) {
		text(`\N`)
	} else {
		b = append(appendFixed(b, g.cents(), 100), '\t')
	}
	b = append(trimZeros(appendFixed(b, g.latency(), 1000)), '\t')
	magnitude := 6 + below(&g.pcg, 15)
	number(1<<magnitude + int64(draw(30))&(1<<magnitude-1))
	if oneIn(4) {
		return append(b, "t\n"...)
	}
	return append(b, "f\n"...)
}

// appendFixed writes v / unit with all its decimals.
func appendFixed(b []byte, v, unit int64) []byte {
	if v < 0 {
		b, v = append(b, '-'), -v
	}
	b = append(strconv.AppendInt(b, v/unit, 10), '.')
	for unit /= 10; unit > 0; unit /= 10 {
		b = append(b, '0'+byte(v/unit%10))
	}
	return b
}

// appendTime writes a time, given in microseconds after the year's first instant, as
// Postgres does.
func (g *generator) appendTime(b []byte, micros int64) []byte {
	const day = 86_400_000_000
	b = append(b, g.days[micros/day]...)
	micros %= day
	two := func(sep byte, v int64) { b = append(b, sep, '0'+byte(v/10), '0'+byte(v%10)) }
	two(' ', micros/3_600_000_000)
	two(':', micros/60_000_000%60)
	two(':', micros/1_000_000%60)
	b = append(b, '.')
	for unit := int64(100_000); unit > 0; unit /= 10 {
		b = append(b, '0'+byte(micros/unit%10))
	}
	return append(trimZeros(b), "+00"...)
}

// trimZeros removes a fraction's last zeros, and a fraction of nothing else.
func trimZeros(b []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimRight(b, "0"), []byte("."))
}
