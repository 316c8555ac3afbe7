package proxy

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgaccel/wire"
)

// rawClient speaks the protocol byte by byte, so that tests see exactly what comes.
type rawClient struct {
	net.Conn
	t       testing.TB // nil: panics
	rand    *rand.Rand // not nil: writes in pieces of 1 to 7 bytes
	start   []message  // up to the first ReadyForQuery
	pending []byte
}

// message is one message of the server; typ 0 is the end of the connection, 1 that
// nothing came in time.
type message struct {
	typ  byte
	body string
}

const (
	endOfConnection = 0
	nothingCame     = 1
)

func (m message) String() string {
	switch m.typ {
	case endOfConnection:
		return "EOF"
	case nothingCame:
		return "TIMEOUT"
	}
	return fmt.Sprintf("%c%q", m.typ, m.body)
}

func show(list []message) string {
	var b strings.Builder
	for _, m := range list {
		b.WriteString(m.String() + "\n")
	}
	return b.String()
}

// startupPacket makes a packet of name, value, ... pairs.
func startupPacket(version uint32, pairs ...string) []byte {
	var body []byte
	for _, p := range pairs {
		body = append(append(body, p...), 0)
	}
	return wire.AppendStartup(nil, version, append(body, 0))
}

// mustConnect opens a session as postgres.
func mustConnect(t testing.TB, address, options string) *rawClient {
	pairs := []string{"user", "postgres", "database", "postgres"}
	if options != "" {
		pairs = append(pairs, "options", options)
	}
	return connectWith(t, address, startupPacket(wire.Version30, pairs...))
}

func connectWith(t testing.TB, address string, startup []byte) *rawClient {
	conn, err := dialRaw(address)
	if err != nil {
		if t == nil {
			panic(err)
		}
		t.Fatal(err)
	}
	c := &rawClient{Conn: conn, t: t}
	c.send(startup)
	c.start = c.until('Z')
	return c
}

// send writes messages in one piece, or in random ones.
func (c *rawClient) send(messages ...[]byte) {
	var all []byte
	for _, m := range messages {
		all = append(all, m...)
	}
	for len(all) > 0 {
		n := len(all)
		if c.rand != nil {
			n = min(n, 1+c.rand.IntN(7))
		}
		if _, err := c.Write(all[:n]); err != nil {
			return // the answer tells
		}
		all = all[n:]
	}
}

// next reads one message, waiting so long.
func (c *rawClient) next(limit time.Duration) message {
	c.SetReadDeadline(time.Now().Add(limit))
	buf := make([]byte, 32<<10)
	for {
		if len(c.pending) >= wire.HeaderLen {
			typ, total, ok := wire.Header(c.pending)
			if !ok { // an error in the form of protocol 2
				rest, _ := io.ReadAll(c)
				m := message{'?', string(c.pending) + string(rest)}
				c.pending = nil
				return m
			}
			if len(c.pending) >= total {
				m := message{typ, string(c.pending[wire.HeaderLen:total])}
				c.pending = c.pending[total:]
				return m
			}
		}
		n, err := c.Read(buf)
		c.pending = append(c.pending, buf[:n]...)
		if n == 0 && err != nil {
			if e, ok := err.(net.Error); ok && e.Timeout() {
				return message{typ: nothingCame}
			}
			return message{typ: endOfConnection}
		}
	}
}

const patience = 20 * time.Second

// until reads messages up to one of the type, the end, or long silence.
func (c *rawClient) until(typ byte) []message { return c.untilIn(typ, patience) }

func (c *rawClient) untilIn(typ byte, limit time.Duration) (list []message) {
	for {
		m := c.next(limit)
		list = append(list, m)
		if m.typ == typ || m.typ == endOfConnection || m.typ == nothingCame {
			return list
		}
	}
}

// exchange sends messages and reads up to ReadyForQuery.
func (c *rawClient) exchange(messages ...[]byte) []message {
	c.send(messages...)
	return c.until('Z')
}

// key returns the body of BackendKeyData.
func (c *rawClient) key() []byte {
	for _, m := range c.start {
		if m.typ == 'K' {
			return []byte(m.body)
		}
	}
	return nil
}

func (c *rawClient) pid() uint32 { return binary.BigEndian.Uint32(c.key()) }

func query(sql string) []byte                    { return appendQuery(nil, sql) }
func parse(name, sql string, o ...uint32) []byte { return appendParse(nil, name, sql, o) }
func execute(portal string, rows int32) []byte   { return appendExecute(nil, portal, rows) }
func describe(kind byte, name string) []byte     { return appendNamed(nil, wire.Describe, kind, name) }
func closing(kind byte, name string) []byte      { return appendNamed(nil, wire.Close, kind, name) }
func syncing() []byte                            { return appendEmpty(nil, wire.Sync) }
func flushing() []byte                           { return appendEmpty(nil, wire.Flush) }
func raw(typ byte, body string) []byte           { return wire.AppendMessage(nil, typ, []byte(body)) }
func ints16(list ...int16) (b []byte) {
	b = binary.BigEndian.AppendUint16(b, uint16(len(list)))
	for _, v := range list {
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	return b
}

// bind binds text values; formats are those of the results.
func bind(portal, statement string, values []string, formats ...int16) []byte {
	b := appendBind(nil, portal, statement, values)
	b = append(b[:len(b)-2], ints16(formats...)...)
	return seal(b, 0)
}

func tlsClient(conn net.Conn) *tls.Conn {
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
}

// heap is the live heap in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
