package proxy

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
	"pgaccel/wire"
)

// fuzzEngine takes every text that contains an x; its answers are canned.
type fuzzEngine struct{ st *fakeStatement }

func (f fuzzEngine) Mentions(sql []byte) bool          { return bytes.IndexByte(sql, 'x') >= 0 }
func (f fuzzEngine) Plans(sql string, _ []uint32) bool { return len(sql)%2 > 0 }
func (f fuzzEngine) Prepare(sql string, _ []uint32) engine.Statement {
	switch {
	case len(sql) > 0 && sql[0] == 'r':
		return viewing("y", 1, "1")
	case len(sql) > 0 && sql[0] == 'f':
		return &fakeStatement{route: engine.RouteForward}
	case len(sql) > 5 && sql[:5] == "begin":
		return &fakeStatement{route: engine.RouteSplit, prefix: sql[:5], last: sql[5:], lastSt: f.st}
	}
	return f.st
}

// bench runs a session in memory, as a driver would.
type bench struct {
	s                  *session
	held               [2][]byte
	toClient, toServer []byte
	got                [2]int // bytes given
}

func newBench(d engine.Decider) *bench {
	return &bench{s: newSession(context.Background(), d, noObserver{})}
}

func (b *bench) take() {
	for _, p := range b.s.toClient.parts {
		b.toClient = append(b.toClient, p...)
	}
	for _, p := range b.s.toServer.parts {
		b.toServer = append(b.toServer, p...)
	}
	b.s.toClient.parts, b.s.toServer.parts = nil, nil
}

// feed gives the session bytes of a side, in pieces of the size.
func (b *bench) feed(t testing.TB, side int, data []byte, size int) {
	b.got[side] += len(data)
	for len(data) > 0 {
		n := min(size, len(data))
		b.held[side] = append(b.held[side], data[:n]...)
		data = data[n:]
		b.offer(t, side)
	}
}

func (b *bench) offer(t testing.TB, side int) {
	in := append([]byte(nil), b.held[side]...)
	var used int
	if side == fromClient {
		used = b.s.client(in)
	} else {
		used = b.s.server(in)
	}
	if used < 0 || used > len(in) {
		t.Fatalf("took %d of %d bytes", used, len(in))
	}
	b.take()
	// The caller reads into the same buffer next.
	clear(in)
	b.held[side] = b.held[side][used:]
	if len(b.held[side]) > lookLimit+wire.HeaderLen && !b.s.blocked() {
		t.Fatalf("holds %d bytes", len(b.held[side]))
	}
}

// settle finishes what was begun, as a driver does between reads.
func (b *bench) settle(t testing.TB, batch *vector.Batch, err error) {
	for round := 0; ; round++ {
		if round > 10_000 {
			t.Fatal("does not come to rest")
		}
		if p := b.s.takePlanning(); p != nil {
			p.planned(p.run())
			b.take()
			continue
		}
		if x := b.s.takeExecution(); x != nil {
			if err != nil {
				batch = nil
			}
			b.s.executed(x, given(batch), err)
			b.take()
			continue
		}
		if b.s.sending() {
			before := b.s.local
			b.s.toClient.add(b.s.more(nil))
			b.take()
			if b.s.local == before && b.s.sending() && len(b.toClient) == 0 {
				t.Fatal("sends nothing")
			}
			continue
		}
		if n := len(b.held[fromClient]); n > 0 && !b.s.blocked() {
			b.offer(t, fromClient)
			if len(b.held[fromClient]) < n {
				continue
			}
		}
		return
	}
}

// fuzzOps splits fuzz data into turns: a byte with the side and the kind of outcome,
// a length byte, and bytes.
func fuzzOps(data []byte, f func(op byte, b []byte)) {
	for len(data) >= 2 {
		n := min(int(data[1])+int(data[0]&0x0c)<<6, len(data)-2)
		f(data[0], data[2:2+n])
		data = data[2+n:]
	}
}

func fuzzSeed(turns ...any) (data []byte) {
	for i := 0; i < len(turns); i += 2 {
		b := turns[i+1].([]byte)
		for len(b) > 0 {
			n := min(len(b), 255)
			data = append(append(data, byte(turns[i].(int)), byte(n)), b[:n]...)
			b = b[n:]
		}
	}
	return data
}

func join(m ...[]byte) []byte { return bytes.Join(m, nil) }

var (
	startAnswers = join(raw('R', "\x00\x00\x00\x00"), raw('S', "client_encoding\x00UTF8\x00"), raw('S', "TimeZone\x00UTF8\x00"), raw('S', "DateStyle\x00UTF8\x00"), raw('K', "\x00\x00\x00\x01\x00\x00\x00\x02"), raw('Z', "I"))
	oneColumn    = raw('T', "\x00\x01x\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x17\x00\x04\xff\xff\xff\xff\x00\x00")
	oneRow       = raw('D', "\x00\x01\x00\x00\x00\x011")
	gateAnswers  = join(raw('3', ""), raw('1', ""), raw('2', ""), gateRow(), raw('C', "SELECT 1\x00"), raw('3', ""))
)

// gateRow is a row as wide as the gate's, with the same text in every column.
func gateRow() []byte {
	text := "UTF8"
	for n := 1; n < 100; n++ {
		row := make([]*string, n)
		for i := range row {
			row[i] = &text
		}
		if _, _, _, _, ok := engine.GateSettings([][]*string{row}); ok {
			return raw('D', string([]byte{0, byte(n)})+strings.Repeat("\x00\x00\x00\x04"+text, n))
		}
	}
	panic("no row is the gate's")
}

// TestFuzzReachesExecutions keeps the seeds worth their while.
func TestFuzzReachesExecutions(t *testing.T) {
	st := candidate(numbers(1))
	b := newBench(fuzzEngine{st})
	b.feed(t, fromServer, startAnswers, 1000)
	b.feed(t, fromClient, query("select x"), 1000)
	b.feed(t, fromServer, join(raw('3', ""), raw('1', ""), raw('t', "\x00\x00"), oneColumn, raw('3', ""), gateAnswers, raw('3', ""), raw('3', ""), raw('Z', "I")), 1000)
	b.settle(t, numbers(1), nil)
	want := join(startAnswers, oneColumn, oneRow, raw('C', "SELECT 1\x00"), raw('Z', "I"))
	if !bytes.Equal(b.toClient, want) {
		t.Errorf("the client got %q, want %q", b.toClient, want)
	}
	b.s.end()
}

// FuzzSession gives the machine arbitrary bytes of both sides. It must not panic,
// hold more than it may, or hang; how the bytes are cut must not matter; and what is
// not for the engine must pass unchanged.
func FuzzSession(f *testing.F) {
	f.Add(fuzzSeed(1, startAnswers, 0, query("select 1"), 1, join(oneColumn, oneRow, raw('C', "SELECT 1\x00"), raw('Z', "I")), 0, raw('X', "")))
	f.Add(fuzzSeed(1, startAnswers, 0, query("select x"), 1, join(raw('3', ""), raw('1', ""), raw('t', "\x00\x00"), oneColumn, raw('3', ""), gateAnswers, raw('3', ""), raw('3', ""), raw('Z', "I")), 0, query("select 2")))
	f.Add(fuzzSeed(1, startAnswers, 0, query("beginselect x"), 1, join(raw('C', "BEGIN\x00"), raw('Z', "T")), 1, join(raw('3', ""), raw('E', "SERROR\x00C42703\x00\x00"), raw('Z', "E"))))
	f.Add(fuzzSeed(1, startAnswers, 0, join(parse("", "select x"), bind("", "", nil), execute("", 1), execute("", 0), syncing()), 1, join(raw('1', ""), raw('2', ""), raw('t', "\x00\x00"), oneColumn, gateAnswers), 1, raw('Z', "I")))
	f.Add(fuzzSeed(1, startAnswers, 0, join(parse("a", "select x"), bind("p", "a", []string{"1"}), execute("p", 0), syncing()), 0x11, join(raw('1', ""), raw('2', ""), raw('t', "\x00\x01\x00\x00\x00\x17"), oneColumn, gateAnswers), 1, join(oneRow, raw('C', "SELECT 1\x00"), raw('Z', "I"))))
	f.Add(fuzzSeed(1, startAnswers, 0, join(query("copy"), raw('S', "")), 1, raw('G', "\x00\x00\x00"), 0, join(raw('d', "1"), raw('c', "")), 1, join(raw('C', "COPY 1\x00"), raw('Z', "I"))))
	f.Add(fuzzSeed(0x21, startAnswers, 0x20, query("select x"), 0x21, join(raw('3', ""), raw('1', ""), raw('t', "\x00\x00"), oneColumn, raw('3', ""), gateAnswers, raw('3', ""), raw('3', ""), raw('Z', "T")), 1, join(raw('E', "SERROR\x00VERROR\x00C57014\x00\x00"), raw('Z', "E"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		engineOf := func() engine.Decider { return fuzzEngine{candidate(numbers(1, 2, 3))} }
		whole, bytewise, plain := newBench(engineOf()), newBench(engineOf()), newBench(newFake())
		var in [2][]byte
		defer func() {
			whole.s.end()
			bytewise.s.end()
			if n := heldResults.Load(); n != 0 {
				t.Errorf("%d results were not let go", n)
			}
		}()
		fuzzOps(data, func(op byte, b []byte) {
			side := int(op & 1)
			var err error
			if op&0x10 != 0 {
				err = &plan.Forward{Reason: plan.ReasonSmall}
			}
			whole.feed(t, side, b, len(b))
			bytewise.feed(t, side, b, 1)
			if op&0x20 != 0 {
				whole.s.cancel()
				bytewise.s.cancel()
			}
			whole.settle(t, numbers(1, 2, 3), err)
			bytewise.settle(t, numbers(1, 2, 3), err)
			if !bytes.Equal(whole.toClient, bytewise.toClient) || !bytes.Equal(whole.toServer, bytewise.toServer) {
				t.Fatalf("cut into bytes, other output:\n%q\n%q\n%q\n%q", whole.toClient, bytewise.toClient, whole.toServer, bytewise.toServer)
			}
			in[side] = append(in[side], b...)
			plain.feed(t, side, b, len(b))
			if !bytes.HasPrefix(in[fromClient], plain.toServer) || !bytes.HasPrefix(in[fromServer], plain.toClient) {
				t.Fatalf("not relayed as it came")
			}
			if n := len(in[fromClient]) - len(plain.toServer); n != len(plain.held[fromClient]) {
				t.Fatalf("%d bytes are neither held nor relayed", n-len(plain.held[fromClient]))
			}
		})
	})
}

// FuzzBodies reads arbitrary bytes as every body that is read.
func FuzzBodies(f *testing.F) {
	for _, m := range [][]byte{parse("a", "b", 23), bind("a", "b", []string{"c"}, 1), oneColumn, oneRow, raw('E', "SERROR\x00C42703\x00\x00")} {
		f.Add(m[wire.HeaderLen:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if name, sql, oids, ok := parseBody(b); ok && len(name)+len(sql)+4*len(oids)+4 != len(b) {
			t.Errorf("Parse: %q, %q, %v", name, sql, oids)
		}
		if _, _, rest, ok := bindNames(b); ok {
			p := &portal{s: &statement{}}
			if bindValues(p, rest) {
				p.s.params = make([]uint32, len(p.values))
				for i := range p.s.params {
					p.s.params[i] = sqltype.OIDInt4
				}
				p.decode(p.s.params, nil, true)
			}
		}
		readFields(b)
		readRow(b)
		(&statement{}).readParams(b)
		wire.ErrorField(b, 'C')
	})
}
