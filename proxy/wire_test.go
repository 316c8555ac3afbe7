package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/upstream"
	"pgaccel/vector"
)

// setups are the ways in which nothing is accelerated: byte for byte, the client
// must see what Postgres says.
var setups = []struct {
	name    string
	engine  func() engine.Decider
	flushes bool
}{
	{"relay", func() engine.Decider { return nil }, false},
	{"no mention", func() engine.Decider { return newFake() }, false},
	{"decided to forward", func() engine.Decider { return everything{engine.RouteForward} }, false},
	{"gated, then forwarded", func() engine.Decider { return everything{engine.RouteCandidate} }, true},
	{"checked", func() engine.Decider { return everySelect{} }, true},
}

// everything takes every text for a candidate, and every execution is forwarded
// after its gate.
type everything struct{ route engine.Route }

func (e everything) Mentions([]byte) bool        { return true }
func (e everything) Plans(string, []uint32) bool { return true }
func (e everything) Prepare(string, []uint32) engine.Statement {
	return refusing{&fakeStatement{route: e.route}}
}

type refusing struct{ *fakeStatement }

func (r refusing) Decide(engine.Session) engine.Decision { return r }

func (refusing) Execute(context.Context, *engine.Transaction, engine.Gate, []engine.Field, []vector.Datum) (*vector.Batch, error) {
	return nil, &plan.Forward{Reason: plan.ReasonSmall}
}

// everySelect takes every plain SELECT for a candidate that is checked: the server
// answers, wrapped into a transaction or behind a second gate.
type everySelect struct{}

func (everySelect) Mentions([]byte) bool        { return true }
func (everySelect) Plans(string, []uint32) bool { return true }
func (everySelect) Prepare(sql string, _ []uint32) engine.Statement {
	text := strings.ToLower(strings.TrimSpace(sql))
	if !strings.HasPrefix(text, "select") || strings.Contains(strings.TrimRight(text, "; "), ";") || strings.Contains(text, "nextval") {
		return &fakeStatement{route: engine.RouteForward}
	}
	return refusing{candidate(numbers(1))} // what cannot be checked is forwarded
}

// runScripts compares the scripts of one W number.
func runScripts(t *testing.T, w int) {
	t.Helper()
	for _, sc := range scripts() {
		if sc.w != w {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			direct := mustConnect(t, postgresAddress(), "")
			want := show(mask(sc.run(direct)))
			direct.Close()
			for _, setup := range setups {
				for _, m := range models {
					for _, chopped := range []bool{false, true} {
						if chopped && (w == 27 || w == 28 || sc.name == "a Query inside a copy") {
							// What the server does not read any more resets the connection, which
							// loses its last words; and no megabytes in pieces of a few bytes.
							continue
						}
						t.Run(fmt.Sprintf("%s/%s/chopped=%v", setup.name, m.name, chopped), func(t *testing.T) {
							change := []func(*Config){m.set}
							if setup.name == "checked" {
								change = append(change, shadowAll)
							}
							if chopped {
								change = append(change, chopUpstream(t))
							}
							s := startProxy(t, setup.engine(), change...)
							c := mustConnect(t, s.Addr().String(), "")
							defer c.Close()
							if chopped {
								c.rand = rand.New(rand.NewPCG(1, uint64(w)))
							}
							got, want := show(mask(sc.run(c))), want
							if setup.flushes {
								// The gate's Flush lets earlier answers of a batch come sooner.
								got, want = strings.ReplaceAll(got, "TIMEOUT\n", ""), strings.ReplaceAll(want, "TIMEOUT\n", "")
							}
							if got != want {
								t.Errorf("through pgaccel:\n%s\ndirect:\n%s", clip(got), clip(want))
							}
						})
					}
				}
			}
		})
	}
}

func clip(s string) string {
	if len(s) > 4000 {
		return s[:4000] + "..."
	}
	return s
}

// chopUpstream puts a forwarder before Postgres that passes everything on in pieces
// of 1 to 7 bytes.
func chopUpstream(t testing.TB) func(*Config) { return forwarding(t, chop, chop) }

// forwarding puts a forwarder before Postgres.
func forwarding(t testing.TB, toServer, toClient func(dst, src net.Conn)) func(*Config) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := dialRaw(postgresAddress())
			if err != nil {
				in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			wg.Go(func() { toServer(out, in) })
			wg.Go(func() { toClient(in, out) })
		}
	}()
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return func(c *Config) {
		c.Default.Upstream = upstream.Config{Endpoints: []upstream.Endpoint{{Network: "tcp", Address: l.Addr().String()}}}
	}
}

func chop(dst, src net.Conn) {
	r := rand.New(rand.NewPCG(2, 3))
	buf := make([]byte, 4096)
	for {
		n, err := src.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			k := min(len(b), 1+r.IntN(7))
			if _, werr := dst.Write(b[:k]); werr != nil {
				src.Close()
				return
			}
			b = b[k:]
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				dst.(*net.TCPConn).CloseWrite()
			} else {
				dst.Close()
			}
			return
		}
	}
}

func TestW05StartupParameters(t *testing.T)    { runScripts(t, 5) }
func TestW06Authentication(t *testing.T)       { runScripts(t, 6) }
func TestW07SessionStart(t *testing.T)         { runScripts(t, 7) }
func TestW11SimpleQuery(t *testing.T)          { runScripts(t, 11) }
func TestW12ErrorsAfterRows(t *testing.T)      { runScripts(t, 12) }
func TestW13Flush(t *testing.T)                { runScripts(t, 13) }
func TestW14SkipToSync(t *testing.T)           { runScripts(t, 14) }
func TestW15RowLimits(t *testing.T)            { runScripts(t, 15) }
func TestW16StatementsAndPortals(t *testing.T) { runScripts(t, 16) }
func TestW17Describe(t *testing.T)             { runScripts(t, 17) }
func TestW18Formats(t *testing.T)              { runScripts(t, 18) }
func TestW19RowDescription(t *testing.T)       { runScripts(t, 19) }
func TestW20Batches(t *testing.T)              { runScripts(t, 20) }
func TestW21Ordering(t *testing.T)             { runScripts(t, 21) }
func TestW22AsynchronousMessages(t *testing.T) { runScripts(t, 22) }
func TestW23Copy(t *testing.T)                 { runScripts(t, 23) }
func TestW24FunctionCall(t *testing.T)         { runScripts(t, 24) }
func TestW26Terminate(t *testing.T)            { runScripts(t, 26) }
func TestW27Fatal(t *testing.T)                { runScripts(t, 27) }
func TestW28LargeMessages(t *testing.T)        { runScripts(t, 28) }
func TestW29Timeouts(t *testing.T)             { runScripts(t, 29) }
func TestW30Errors(t *testing.T)               { runScripts(t, 30) }
