package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"golang.org/x/sync/errgroup"
)

// tally is what rows consist of, without keeping them.
type tally struct {
	rows, bytes int64  // messages D, and their bytes
	sum         uint64 // of the rows' hashes: in any order
	chain       uint32 // of the rows, in their order
}

var (
	tallySeed  = maphash.MakeSeed()
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func (t *tally) add(row []byte) {
	t.rows++
	t.bytes += int64(len(row))
	t.sum += maphash.Bytes(tallySeed, row)
	t.chain = crc32.Update(t.chain, castagnoli, row)
}

// difference says how got is not t; "" where it is.
func (t tally) difference(got tally, ordered bool) string {
	if !ordered {
		got.chain = t.chain
	}
	if got == t {
		return ""
	}
	return fmt.Sprintf("%d rows of %d bytes (%x, %x) instead of %d of %d (%x, %x)", got.rows, got.bytes, got.sum, got.chain, t.rows, t.bytes, t.sum, t.chain)
}

// rowsClient is a client that makes little of rows.
type rowsClient struct {
	conn net.Conn
	in   *bufio.Reader
}

func dialRows(ctx context.Context, url string) (*rowsClient, error) {
	c, err := pgconn.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	// Else pgconn may still have a goroutine that reads, which a slow write has started, and take the first bytes.
	if err := c.SyncConn(ctx); err != nil {
		return nil, err
	}
	h, err := c.Hijack()
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { h.Conn.Close() })
	return &rowsClient{h.Conn, bufio.NewReaderSize(h.Conn, 256<<10)}, nil
}

func (c *rowsClient) close() {
	c.conn.Write([]byte{'X', 0, 0, 0, 4})
	c.conn.Close()
}

func (c *rowsClient) send(messages ...pgproto3.FrontendMessage) error {
	var b []byte
	for _, m := range messages {
		var err error
		if b, err = m.Encode(b); err != nil {
			return err
		}
	}
	_, err := c.conn.Write(b)
	return err
}

// read adds the rows up to ReadyForQuery to t.
func (c *rowsClient) read(t *tally) error {
	var failed error
	var body []byte
	for {
		head, err := c.in.Peek(5)
		if err != nil {
			return err
		}
		kind, n := head[0], int(binary.BigEndian.Uint32(head[1:]))-4
		c.in.Discard(5)
		if cap(body) < n {
			body = make([]byte, n)
		}
		body = body[:n]
		if _, err := io.ReadFull(c.in, body); err != nil {
			return err
		}
		switch kind {
		case 'D':
			t.add(body)
		case 'E':
			failed = fmt.Errorf("%q", body)
		case 'Z':
			return failed
		}
	}
}

// simple asks by the simple protocol.
func (c *rowsClient) simple(sql string) (t tally, err error) {
	if err = c.send(&pgproto3.Query{String: sql}); err == nil {
		err = c.read(&t)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", sql, err)
	}
	return t, err
}

// run has clients ask the scenario's statements through pgaccel.
func (m *memory) run(ctx context.Context, s memoryScenario) ([]tally, error) {
	if s.portals {
		return m.portals(ctx, s)
	}
	got := make([]tally, len(s.statements))
	g, ctx := errgroup.WithContext(ctx)
	for i, q := range s.statements {
		g.Go(func() error {
			c, err := dialRows(ctx, m.url(false))
			if err != nil {
				return err
			}
			defer c.close()
			if s.unread {
				if err := c.send(&pgproto3.Query{String: q.sql}); err != nil {
					return err
				}
				if err := m.hold(ctx); err != nil {
					return err
				}
				return c.read(&got[i])
			}
			got[i], err = c.simple(q.sql)
			return err
		})
	}
	return got, g.Wait()
}

// hold waits while results lie unread.
func (m *memory) hold(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(m.o.Hold):
		return nil
	}
}

// portals leaves the statements' results open in portals of one session, all but their first row,
// and reads them later.
func (m *memory) portals(ctx context.Context, s memoryScenario) ([]tally, error) {
	c, err := dialRows(ctx, m.url(false))
	if err != nil {
		return nil, err
	}
	defer c.close()
	if _, err := c.simple("BEGIN"); err != nil {
		return nil, err
	}
	got := make([]tally, len(s.statements))
	for i, q := range s.statements {
		name := strconv.Itoa(i)
		err := c.send(&pgproto3.Parse{Name: name, Query: q.sql}, &pgproto3.Bind{DestinationPortal: name, PreparedStatement: name},
			&pgproto3.Execute{Portal: name, MaxRows: 1}, &pgproto3.Sync{})
		if err := errors.Join(err, c.read(&got[i])); err != nil {
			return nil, err
		}
	}
	if err := m.hold(ctx); err != nil {
		return nil, err
	}
	for i := range s.statements {
		err := c.send(&pgproto3.Execute{Portal: strconv.Itoa(i)}, &pgproto3.Sync{})
		if err := errors.Join(err, c.read(&got[i])); err != nil {
			return nil, err
		}
	}
	_, err = c.simple("COMMIT")
	return got, err
}
