package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	wideRows = 150_000
	// memoryBudget is --query-memory: for some five results of wideSQL.
	memoryBudget = 96 << 20
	// memoryBound is how much the process may grow by while clients do their worst: what Go's
	// runtime is told to stay below with this budget (server.Config.GoMemoryLimit). On a
	// machine that leaves the collector little time it grows by more than the four budgets
	// that it grows by otherwise.
	memoryBound = 512<<20 + memoryBudget + memoryBudget/8

	memorySchema = `
CREATE TABLE wide (id int PRIMARY KEY, g int NOT NULL, s text NOT NULL, v bigint NOT NULL, d numeric(12,2) NOT NULL);
INSERT INTO wide SELECT i, i % 1000, 'text ' || i % 5000, i::bigint * 7, i % 10000 / 4.0 FROM generate_series(1, 150000) i;
VACUUM ANALYZE;
`
	wideSQL = "SELECT id, g, s, v, d FROM wide WHERE g < 900 ORDER BY id"
)

// memory has clients leave portals open, read slowly, send messages in part and huge ones,
// and open many sessions, while statements are cancelled and connections cut. The process
// must not grow beyond a bound, rows must be right, and when all have gone nothing may be
// held for any of them.
type memory struct {
	w        *world
	resident int64        // bytes of the process before
	most     atomic.Int64 // bytes by which it has grown
	seen     atomic.Int64 // the most that has been held of the budget
}

func newMemory(w *world) *memory { return &memory{w: w} }

func (m *memory) queries() []string {
	return []string{"SELECT g, count(*), sum(v), max(s) FROM wide GROUP BY g ORDER BY g", wideSQL + " LIMIT 100"}
}

func (m *memory) recovered(*session) {}

func (m *memory) run(ctx context.Context) {
	if m.w.binary == "" {
		return
	}
	var err error
	if m.resident, err = m.residentBytes(); err != nil {
		m.w.violate("%v", err)
		return
	}
	var clients sync.WaitGroup
	for i, client := range []func(context.Context, *rand.Rand) error{m.portals, m.portals, m.portals, m.portals, m.slowReader, m.slowReader, m.slowReader,
		m.partial, m.partial, m.huge, m.crowd} {
		clients.Go(func() {
			r := m.w.random(fmt.Sprint("memory-", i))
			for ctx.Err() == nil {
				if err := client(ctx, r); err != nil {
					m.w.violate("client %d: %v", i, err)
				}
			}
		})
	}
	watched, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { m.watch(watched) })
	clients.Wait()
	m.empty()
	stop()
	watch.Wait()
	m.w.history.note("memory", "grown by %d MiB at most, of %d; %d MiB of query memory at most, of %d", m.most.Load()>>20, memoryBound>>20, m.seen.Load()>>20, memoryBudget>>20)
	if m.w.violated() == nil && m.seen.Load() == 0 {
		m.w.violate("no result was ever held")
	}
}

// residentBytes is the process's memory.
func (m *memory) residentBytes() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.w.accelerator.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, errors.New("the process has ended")
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10, err
}

// metric reads one value of /metrics.
func (m *memory) metric(name string) (int64, error) {
	client := http.Client{Timeout: 30 * time.Second}
	r, err := client.Get(m.w.web("/metrics"))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return int64(f), err
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// watch looks at the process until ctx ends.
func (m *memory) watch(ctx context.Context) {
	bound := int64(memoryBound)
	if os.Getenv("PGACCEL_RACE") != "" {
		bound *= 6 // the detector's shadow memory
	}
	for i := 0; ctx.Err() == nil; i++ {
		now, err := m.residentBytes()
		if err != nil {
			m.w.violate("%v", err)
			return
		}
		if grown := now - m.resident; grown > m.most.Load() {
			m.most.Store(grown)
			if grown > bound {
				m.w.violate("the process has grown by %d MiB, from %d MiB", grown>>20, m.resident>>20)
			}
		}
		if i%10 == 0 {
			if used, err := m.metric("pgaccel_query_memory_bytes"); err == nil {
				m.seen.Store(max(m.seen.Load(), used))
				if used > memoryBudget {
					m.w.violate("%d bytes of query memory are held, of %d", used, memoryBudget)
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// empty waits until nothing is held: all clients have gone.
func (m *memory) empty() {
	for end := time.Now().Add(settleLimit); ; time.Sleep(50 * time.Millisecond) {
		used, err := m.metric("pgaccel_query_memory_bytes")
		if err == nil && used == 0 {
			return
		}
		if time.Now().After(end) {
			m.w.violate("%d bytes of query memory are held for nobody, %v", used, err)
			return
		}
	}
}

// reader is a client message by message.
type reader struct {
	*pgproto3.Frontend
	conn net.Conn
	key  []byte // CancelRequest
}

func (m *memory) connect() (*reader, error) {
	ctx, cancel := context.WithTimeout(context.Background(), statementLimit)
	defer cancel()
	c, err := pgconn.Connect(ctx, m.w.url(through))
	if err != nil {
		return nil, err
	}
	if err := c.SyncConn(ctx); err != nil {
		return nil, err
	}
	h, err := c.Hijack()
	if err != nil {
		return nil, err
	}
	key := binary.BigEndian.AppendUint32([]byte{0, 0, 0, byte(12 + len(h.SecretKey)), 4, 210, 22, 46}, h.PID)
	return &reader{Frontend: h.Frontend, conn: h.Conn, key: append(key, h.SecretKey...)}, nil
}

// patient sets the limit of what follows.
func (c *reader) patient() { c.conn.SetDeadline(time.Now().Add(statementLimit)) }

// cancel sends a cancel request and waits until it was taken.
func (m *memory) cancel(c *reader) {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", m.w.accelerator.listen), statementLimit)
	if err != nil {
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(statementLimit))
	conn.Write(c.key)
	conn.Read(make([]byte, 1))
}

// wideRow checks a row of wideSQL, of which last was the id before.
func wideRow(last int, values [][]byte) (id int, err error) {
	id = last + 1
	for id%1000 >= 900 {
		id++
	}
	want := []string{strconv.Itoa(id), strconv.Itoa(id % 1000), "text " + strconv.Itoa(id%5000), strconv.Itoa(7 * id), fmt.Sprintf("%d.%02d", id%10000/4, id%10000%4*25)}
	for i := range want {
		if len(values) != len(want) || string(values[i]) != want[i] {
			return 0, fmt.Errorf("a row is %q, want %q", values, want)
		}
	}
	return id, nil
}

// rows reads up to ReadyForQuery or n rows and checks them; cancelled bears an error 57014.
func (c *reader) rows(last *int, n int, cancelled bool) (done bool, err error) {
	for {
		msg, err := c.Receive()
		if err != nil {
			return false, err
		}
		switch msg := msg.(type) {
		case *pgproto3.DataRow:
			if *last, err = wideRow(*last, msg.Values); err != nil {
				return false, err
			}
			if n--; n == 0 {
				return false, nil
			}
		case *pgproto3.CommandComplete:
			if strings.HasPrefix(string(msg.CommandTag), "SELECT") && *last != wideLast {
				return false, fmt.Errorf("%s after row %d", msg.CommandTag, *last)
			}
		case *pgproto3.ErrorResponse:
			if !cancelled || msg.Code != "57014" {
				return false, fmt.Errorf("%s %s", msg.Code, msg.Message)
			}
		case *pgproto3.ReadyForQuery:
			return true, nil
		}
	}
}

// wideLast is the last row's id.
const wideLast = wideRows

// portals leaves results open in portals of a transaction, reads on some, and leaves.
func (m *memory) portals(ctx context.Context, r *rand.Rand) error {
	c, err := m.connect()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	last := map[string]*int{}
	round := func(name string, rows uint32) error {
		c.patient()
		c.Send(&pgproto3.Execute{Portal: name, MaxRows: rows})
		c.Send(&pgproto3.Sync{})
		if err := c.Flush(); err != nil {
			return err
		}
		m.w.reads.Add(1)
		_, err := c.rows(last[name], 0, false)
		return err
	}
	c.patient()
	c.Send(&pgproto3.Query{String: "BEGIN"})
	c.Send(&pgproto3.Parse{Name: "s", Query: wideSQL})
	c.Send(&pgproto3.Sync{})
	if err := errors.Join(c.Flush(), c.ready(), c.ready()); err != nil {
		return err
	}
	for i := range 1 + r.IntN(12) {
		name := fmt.Sprint("p", i)
		last[name] = new(int)
		c.Send(&pgproto3.Bind{DestinationPortal: name, PreparedStatement: "s"})
		if err := round(name, 1); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	for name := range last {
		switch r.IntN(4) {
		case 0:
			if err := round(name, uint32(1+r.IntN(1000))); err != nil {
				return err
			}
		case 1:
			c.Send(&pgproto3.Close{ObjectType: 'P', Name: name})
		}
	}
	switch r.IntN(3) {
	case 0:
		c.Send(&pgproto3.Query{String: [...]string{"COMMIT", "ROLLBACK"}[r.IntN(2)]})
		return errors.Join(c.Flush(), c.ready())
	case 1:
		c.Send(&pgproto3.Terminate{})
		c.Flush()
	}
	return nil
}

// ready reads up to ReadyForQuery.
func (c *reader) ready() error {
	for {
		msg, err := c.Receive()
		if err != nil {
			return err
		}
		switch msg := msg.(type) {
		case *pgproto3.ErrorResponse:
			return fmt.Errorf("%s %s", msg.Code, msg.Message)
		case *pgproto3.ReadyForQuery:
			return nil
		}
	}
}

// slowReader asks for everything, reads some, waits, and reads on, cancels or is cut.
func (m *memory) slowReader(ctx context.Context, r *rand.Rand) error {
	c, err := m.connect()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	for range 3 {
		c.patient()
		m.w.reads.Add(1)
		c.Send(&pgproto3.Query{String: wideSQL})
		if err := c.Flush(); err != nil {
			return err
		}
		last := 0
		if r.IntN(4) == 0 { // before its first row
			m.cancel(c)
			_, err := c.rows(&last, 0, true)
			return err // a cancel request that is late would hit the next statement
		}
		if _, err := c.rows(&last, 1+r.IntN(1000), false); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(r.IntN(300)) * time.Millisecond):
		}
		cancelled := false
		switch r.IntN(3) {
		case 0:
			return nil
		case 1:
			m.cancel(c)
			cancelled = true
		}
		if _, err := c.rows(&last, 0, cancelled); err != nil || cancelled {
			return err
		}
	}
	return nil
}

// partial sends a large message piece by piece, which may not come to its end.
func (m *memory) partial(ctx context.Context, r *rand.Rand) error {
	c, err := m.connect()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	c.patient()
	sql := "SELECT count(*), sum(v) FROM wide WHERE g < 900 -- " + strings.Repeat("x", r.IntN(1<<20))
	message, err := (&pgproto3.Query{String: sql}).Encode(nil)
	if err != nil {
		return err
	}
	end := len(message)
	if r.IntN(2) == 0 {
		end = r.IntN(end)
	}
	for part := message[:end]; len(part) > 0; {
		n := min(len(part), 1+r.IntN(256<<10))
		if _, err := c.conn.Write(part[:n]); err != nil {
			return err
		}
		part = part[n:]
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(r.IntN(20)) * time.Millisecond):
		}
	}
	if end < len(message) {
		return nil
	}
	return c.counted()
}

// counted reads the answer of partial and huge.
func (c *reader) counted() error {
	var got [][]byte
	for {
		msg, err := c.Receive()
		if err != nil {
			return err
		}
		switch msg := msg.(type) {
		case *pgproto3.DataRow:
			for _, v := range msg.Values {
				got = append(got, bytes.Clone(v))
			}
		case *pgproto3.ErrorResponse:
			return fmt.Errorf("%s %s", msg.Code, msg.Message)
		case *pgproto3.ReadyForQuery:
			n, sum := 0, 0
			for id := 1; id <= wideRows; id++ {
				if id%1000 < 900 {
					n, sum = n+1, sum+7*id
				}
			}
			if want := fmt.Sprintf("%d %d", n, sum); string(bytes.Join(got, []byte(" "))) != want {
				return fmt.Errorf("the answer is %q, want %s", got, want)
			}
			return nil
		}
	}
}

// huge sends statements larger than what is looked at.
func (m *memory) huge(ctx context.Context, r *rand.Rand) error {
	c, err := m.connect()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	c.patient()
	c.Send(&pgproto3.Query{String: "SELECT count(*), sum(v) FROM wide WHERE g < 900 -- " + strings.Repeat("x", 1<<20+r.IntN(16<<20))})
	if err := c.Flush(); err != nil {
		return err
	}
	return c.counted()
}

// crowd opens many sessions, each of which works once and leaves or is cut.
func (m *memory) crowd(ctx context.Context, r *rand.Rand) error {
	var all []*reader
	defer func() {
		for _, c := range all {
			c.conn.Close()
		}
	}()
	for range 40 {
		c, err := m.connect()
		if err != nil {
			return err
		}
		all = append(all, c)
		c.patient()
		c.Send(&pgproto3.Query{String: "SELECT count(*), sum(v) FROM wide WHERE g < 900"})
		m.w.reads.Add(1)
		if err := errors.Join(c.Flush(), c.counted()); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil
}
