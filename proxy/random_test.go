package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgaccel/engine"
)

// randomScript makes a conversation of batches and queries, with names that clash,
// errors, transactions and cursors: everything whose order and fate a proxy can get
// wrong. accel texts are answered here, with what Postgres would answer.
func randomScript(r *rand.Rand) [][]byte {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	texts := []string{"select generate_series(1,3) as accel", "select 1 as accel", "select 1 as accel", "select 'x' as t", "select 1/0 as z",
		"begin", "commit", "rollback", "savepoint s", "rollback to s", "set application_name = 'a'", "deallocate all", "prepare a as select 9", "selec",
		"", "select nosuch as accel", "create temp table if not exists tt (a int)", "insert into tt values (1)", "select count(*) from tt", "close all"}
	text := func() string {
		if r.IntN(2) == 0 {
			return pick(texts[:3]...)
		}
		return pick(texts...)
	}
	name := func() string { return pick("", "", "a", "b") }
	var m [][]byte
	for range 1 + r.IntN(6) {
		if r.IntN(3) == 0 {
			m = append(m, query(text()))
			continue
		}
		for range 1 + r.IntN(8) {
			switch r.IntN(10) {
			case 0, 1, 2:
				n := name()
				m = append(m, parse(n, text()))
				if r.IntN(4) > 0 {
					p := name()
					m = append(m, bind(p, n, nil), execute(p, int32(r.IntN(4))))
				}
			case 3, 4:
				m = append(m, bind(name(), name(), nil))
			case 5, 6:
				m = append(m, execute(name(), int32(r.IntN(4))))
			case 7:
				m = append(m, describe("SP"[r.IntN(2)], name()))
			case 8:
				m = append(m, closing("SP"[r.IntN(2)], name()))
			case 9:
				m = append(m, flushing())
			}
		}
		if r.IntN(8) > 0 {
			m = append(m, syncing())
		}
	}
	return append(m, syncing(), query("rollback"), theEnd)
}

// selects takes every SELECT for a candidate, but nothing else: COMMIT, which runs in
// a failed transaction, where the gate cannot, is none.
type selects struct{ everything }

func (s selects) Prepare(sql string, oids []uint32) engine.Statement {
	if strings.HasPrefix(sql, "select") {
		return s.everything.Prepare(sql, oids)
	}
	return &fakeStatement{route: engine.RouteForward}
}

// untilTheEnd reads up to the answer to a script's last Query.
func untilTheEnd(c *rawClient) (list []message) {
	for {
		got := c.until('Z')
		list = append(list, got...)
		if last := got[len(got)-1]; last.typ != 'Z' {
			return list
		}
		for _, m := range got {
			if m.typ == 'D' && strings.HasSuffix(m.body, "the end") {
				return list
			}
		}
	}
}

// TestRandomConversations compares random conversations with Postgres', byte by
// byte: relayed, forwarded after the gate, answered here, and checked.
func TestRandomConversations(t *testing.T) {
	answering := newFake()
	several := answering.add("select generate_series(1,3) as accel", candidate(numbers(1, 2, 3)))
	one := answering.add("select 1 as accel", candidate(numbers(1)))
	viewed := newFake()
	viewed.add("select generate_series(1,3) as accel", viewing("select generate_series(1,$1::int4) as accel", 1, "3"))
	oneRow := viewed.add("select 1 as accel", viewing("select $1::int4 as accel", 1, "1"))
	seed := uint64(time.Now().UnixNano())
	for _, setup := range []struct {
		name   string
		engine engine.Decider
		shadow float64
	}{{"no mention", newFake(), 0}, {"gated", selects{everything{engine.RouteCandidate}}, 0}, {"answered", answering, 0},
		{"viewed", viewed, 0}, {"viewed, checks", viewed, 1},
		{"checked", everySelect{}, 1}, {"some checked", answering, 0.5}} {
		for _, m := range models {
			log, logged := logAll(t)
			s := startProxy(t, setup.engine, m.set, logged, func(c *Config) { c.Shadow = setup.shadow })
			for i := range uint64(100) {
				script := randomScript(rand.New(rand.NewPCG(seed, i)))
				var out [2]string
				for k, address := range []string{postgresAddress(), s.Addr().String()} {
					c := mustConnect(t, address, "")
					if k == 1 && i%4 == 0 {
						c.rand = rand.New(rand.NewPCG(seed, i+1))
					}
					c.send(script...)
					got := untilTheEnd(c)
					out[k] = show(withoutSource(mask(got)))
					c.Close()
					if k == 1 {
						// Each command is in the slow-query log once; the last line is of theEnd.
						want := completedTags(got)
						lines := loggedTags(log.take(t, fmt.Sprintf("%s, %s, seed %d, script %d, %q", setup.name, m.name, seed, i, script), len(want), func(l []map[string]string) int { return len(loggedTags(l)) }))
						if !slices.Equal(lines, want) {
							t.Fatalf("%s, %s, seed %d, script %d: logged %q, want %q", setup.name, m.name, seed, i, lines, want)
						}
					}
				}
				if out[0] != out[1] {
					var b strings.Builder
					for _, msg := range script {
						fmt.Fprintf(&b, "%q\n", msg)
					}
					t.Fatalf("%s, %s, seed %d, script %d:\n%s\nthrough pgaccel:\n%s\ndirect:\n%s", setup.name, m.name, seed, i, b.String(), out[1], out[0])
				}
			}
		}
	}
	if several.executions.Load() == 0 || one.executions.Load() == 0 || oneRow.executions.Load() == 0 {
		t.Error("nothing was answered here")
	}
	for _, st := range []*fakeStatement{several, one} {
		st.mu.Lock()
		if st.checks == 0 {
			t.Error("nothing was checked")
		}
		for _, c := range st.outcomes {
			if c.Verdict == engine.Different {
				t.Errorf("a check came to %q", c.Detail)
			}
		}
		st.mu.Unlock()
	}
	t.Logf("%d and %d executions", several.executions.Load(), one.executions.Load())
}

// TestAnsweredThroughTLS: acceleration does not depend on who drives.
func TestAnsweredThroughTLS(t *testing.T) {
	pair, _, _ := certificate(t)
	f := newFake()
	f.add(candidateSQL, candidate(numbers(7)))
	conn := tlsClient(dial(t, startProxy(t, f, withTLS(pair), func(c *Config) { c.TLS.NextProtos = []string{"postgresql"} })))
	conn.NetConn().Write(nil)
	plain := conn.NetConn()
	if b := ask(t, plain, 80877103); b != 'S' {
		t.Fatalf("answer %q", b)
	}
	c := &rawClient{Conn: conn, t: t}
	c.send(plainStartup)
	c.until('Z')
	wantRows(t, c.exchange(query(candidateSQL)), "7")
	wantRows(t, c.exchange(parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing()), "7")
	c.Close()
}

func TestShutdownWaitsForClients(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		s := startProxy(t, newFake(), change)
		a, b := mustConnect(t, s.Addr().String(), ""), mustConnect(t, s.Addr().String(), "")
		defer b.Close()
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { done <- s.Shutdown(ctx) }()
		waitFor(t, "the listener to close", func() bool {
			c, err := dialRaw(s.Addr().String())
			if err == nil {
				c.Close()
			}
			return err != nil
		})
		wantRows(t, a.exchange(query("select 5")), "5")
		a.Close()
		select {
		case err := <-done:
			t.Fatalf("ended with a client there: %v", err)
		case <-time.After(silence):
		}
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("Shutdown: %v", err)
		}
		wantTypes(t, b.until('Z'), "EEOF")
	})
}
