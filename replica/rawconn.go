package replica

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// rawConn is a connection whose messages are framed here: COPY data and the
// replication stream come without a copy or an allocation per message. It belongs
// to one goroutine, except write, which any may call.
type rawConn struct {
	net     net.Conn
	buf     []byte // received bytes; [r, w) are not consumed yet
	r, w    int
	timeout time.Duration // of one read; 0 is none
	// gather makes reads wait a moment while much comes in small pieces: the server
	// sends each row by itself, and reading each by itself would cost ten times what
	// it takes to apply it. hurried says that somebody waits for what comes; may be nil.
	gather   bool
	hurried  func() bool
	lastRead time.Time
	deadline time.Time // until which the read deadline need not be moved
	small    int       // reads, one soon after the other, that brought little

	writing sync.Mutex
	stop    func() bool // ends the tie to the context
}

// rawBufferSize is the most that one read takes. Socket buffers on a fast link
// hold about as much.
const rawBufferSize = 256 << 10

// maxMessage is the longest message accepted: Postgres' own limit on a row.
const maxMessage = 1 << 30

// connectRaw logs in through pgconn and takes the connection over. When ctx ends,
// the connection is closed.
func connectRaw(ctx context.Context, cfg *pgconn.Config) (*rawConn, error) {
	c, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, explained(err)
	}
	return takeOver(ctx, c)
}

// takeOver makes c's connection ours. c is unusable afterwards.
func takeOver(ctx context.Context, c *pgconn.PgConn) (*rawConn, error) {
	if err := c.SyncConn(ctx); err != nil {
		return nil, err
	}
	h, err := c.Hijack()
	if err != nil {
		return nil, err
	}
	r := &rawConn{net: h.Conn, buf: make([]byte, rawBufferSize)}
	r.stop = context.AfterFunc(ctx, func() { r.net.Close() })
	return r, nil
}

// Close says goodbye, so that the server ends the session at once, and closes.
func (c *rawConn) Close() {
	c.stop()
	c.net.SetWriteDeadline(time.Now().Add(time.Second))
	c.write([]byte{'X', 0, 0, 0, 4})
	c.net.Close()
}

func (c *rawConn) write(b []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.net.Write(b)
	return err
}

// query sends a simple Query.
func (c *rawConn) query(sql string) error {
	b, err := (&pgproto3.Query{String: sql}).Encode(nil)
	if err != nil {
		return err
	}
	return c.write(b)
}

// next returns the next message. The body is valid until the next call.
func (c *rawConn) next() (kind byte, body []byte, err error) {
	if c.w-c.r < 5 {
		if err := c.fill(5); err != nil {
			return 0, nil, err
		}
	}
	size := int(binary.BigEndian.Uint32(c.buf[c.r+1:])) + 1
	if size < 5 || size > maxMessage {
		return 0, nil, fmt.Errorf("message of %d bytes from the server", size)
	}
	if c.w-c.r < size {
		if err := c.fill(size); err != nil {
			return 0, nil, err
		}
	}
	kind, body = c.buf[c.r], c.buf[c.r+5:c.r+size]
	c.r += size
	return kind, body, nil
}

// buffered reports whether a whole message is here already.
func (c *rawConn) buffered() bool {
	return c.w-c.r >= 5 && c.w-c.r > int(binary.BigEndian.Uint32(c.buf[c.r+1:]))
}

// fill reads until n bytes are there.
func (c *rawConn) fill(n int) error {
	if c.r > 0 {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	if n > len(c.buf) {
		grown := make([]byte, max(n, 2*len(c.buf)))
		copy(grown, c.buf[:c.w])
		c.buf = grown
	}
	for c.w < n {
		now := time.Now()
		if c.timeout > 0 && now.After(c.deadline) {
			// Moving it costs as much as a read: it may be up to a quarter too early.
			c.deadline = now.Add(c.timeout / 4)
			c.net.SetReadDeadline(now.Add(c.timeout))
		}
		if c.gather {
			c.pause(now)
		}
		got, err := c.net.Read(c.buf[c.w:])
		c.w += got
		if c.gather && got > smallRead {
			c.small = 0
		}
		if err != nil && c.w < n {
			return err
		}
	}
	return nil
}

const (
	smallRead  = 8 << 10
	smallReads = 64 // in a row, each within soon of the one before
	soon       = 100 * time.Microsecond
	// gatherFor is what the pause asks for; the system makes it some 50 us longer.
	gatherFor = 50 * time.Microsecond
)

// pause lets more arrive where many small reads have come one soon after the other,
// and nobody waits.
func (c *rawConn) pause(now time.Time) {
	if now.Sub(c.lastRead) > 2*soon {
		c.small = 0
	}
	c.lastRead = now
	if c.small++; c.small < smallReads || c.hurried != nil && c.hurried() {
		return
	}
	shortSleep(gatherFor)
	c.lastRead = time.Now()
}

// exec runs statements that return nothing of interest.
func (c *rawConn) exec(sql string) error {
	if err := c.query(sql); err != nil {
		return err
	}
	return c.untilReady(nil)
}

// untilReady reads up to ReadyForQuery; failed is an error found before, or nil.
// It returns the first error.
func (c *rawConn) untilReady(failed error) error {
	for {
		kind, body, err := c.next()
		if err != nil {
			return firstError(failed, err)
		}
		switch kind {
		case 'E':
			failed = firstError(failed, serverError(body))
		case 'Z':
			return failed
		}
	}
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// serverError decodes an ErrorResponse.
func serverError(body []byte) error {
	var m pgproto3.ErrorResponse
	if err := m.Decode(body); err != nil {
		return err
	}
	return pgconn.ErrorResponseToPgError(&m)
}

// copyOut runs a COPY ... TO STDOUT and gives each message to sink, whose error
// stops it. The connection stays usable only where the error is the server's.
func (c *rawConn) copyOut(sql string, sink func(data []byte) error) error {
	if err := c.query(sql); err != nil {
		return err
	}
	for {
		kind, body, err := c.next()
		if err != nil {
			return err
		}
		switch kind {
		case 'd':
			if err := sink(body); err != nil {
				return err
			}
		case 'E':
			return c.untilReady(serverError(body))
		case 'c':
			return c.untilReady(nil)
		}
	}
}
