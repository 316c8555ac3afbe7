package proxy

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"pgaccel/engine"
	"pgaccel/wire"
)

// scripted answers what a session sends as Postgres would, but for the errors of a script.
type scripted struct {
	status     byte
	ignoring   bool // everything up to the next Sync
	statements map[string]string
	portals    map[string]string
	// fails returns the SQLSTATE with which a message of the type over a text fails, or "".
	fails func(typ byte, sql string) string
	ran   []string // texts, in order
}

// answer takes the messages in b and returns the answers.
func (p *scripted) answer(b []byte) (out []byte) {
	fail := func(code string) {
		out = append(out, raw('E', "SERROR\x00VERROR\x00C"+code+"\x00Mscripted\x00\x00")...)
		p.ignoring = true
		if p.status == 'T' {
			p.status = 'E'
		}
	}
	run := func(typ byte, sql string) bool {
		code := p.fails(typ, sql)
		if p.status == 'E' && sql != rollbackToSQL && sql != rollbackSQL {
			code = "25P02"
		}
		if code != "" {
			fail(code)
			return false
		}
		p.ran = append(p.ran, sql)
		tag := "SELECT 1"
		switch sql {
		case "BEGIN", "BEGIN;":
			p.status, tag = 'T', "BEGIN"
		case rollbackToSQL:
			p.status, tag = 'T', "ROLLBACK"
		case rollbackSQL:
			p.status, tag = 'I', sql
		case savepointSQL, releaseSQL:
			tag = sql[:bytes.IndexByte([]byte(sql), ' ')]
		case candidateSQL:
			if typ == wire.Query {
				out = append(out, oneColumn...)
			}
			out = append(out, oneRow...)
		default:
			out = append(out, gateRow()...)
		}
		out = append(out, raw('C', tag+"\x00")...)
		return true
	}
	for len(b) > 0 {
		typ, total, _ := wire.Header(b)
		body := b[wire.HeaderLen:total]
		b = b[total:]
		if p.ignoring && typ != wire.Sync {
			continue
		}
		switch typ {
		case wire.Query:
			run(typ, string(body[:len(body)-1]))
			p.ignoring = false
			out = appendReady(out, p.status)
		case wire.Parse:
			name, sql, _, _ := parseBody(body)
			p.statements[string(name)] = string(sql)
			out = append(out, raw('1', "")...)
		case wire.Bind:
			portal, name, _, _ := bindNames(body)
			p.portals[string(portal)] = p.statements[string(name)]
			if code := p.fails(typ, p.statements[string(name)]); code != "" {
				fail(code)
				continue
			}
			out = append(out, raw('2', "")...)
		case wire.Describe:
			if code := p.fails(typ, p.statements[string(body[1:len(body)-1])]); code != "" {
				fail(code)
				continue
			}
			if body[0] == 'S' {
				out = append(out, raw('t', "\x00\x00")...)
			}
			out = append(out, oneColumn...)
		case wire.Execute:
			name, _, _ := wire.CString(body)
			run(typ, p.portals[string(name)])
		case wire.Close:
			out = append(out, raw('3', "")...)
		case wire.Sync:
			p.ignoring = false
			out = appendReady(out, p.status)
		}
	}
	return out
}

// converse has the server answer until both are at rest, and returns what the client got.
// before, unless nil, is called before the server looks at what was sent to it.
func (p *scripted) converse(t *testing.T, b *bench, before func(sent []byte), messages ...[]byte) string {
	t.Helper()
	b.toClient = nil
	b.feed(t, fromClient, join(messages...), 1<<20)
	for b.settle(t, numbers(1), nil); len(b.toServer) > 0; b.settle(t, numbers(1), nil) {
		sent := b.toServer
		b.toServer = nil
		if before != nil {
			before(sent)
		}
		b.feed(t, fromServer, p.answer(sent), 1<<20)
	}
	got := ""
	for out := b.toClient; len(out) > 0; {
		typ, total, _ := wire.Header(out)
		switch got += string(typ); typ {
		case 'E':
			got += "(" + string(wire.ErrorField(out[wire.HeaderLen:total], 'C')) + ")"
		case 'Z':
			got += string(out[total-1]) + " "
		}
		out = out[total:]
	}
	return got
}

// TestUndoingTheGateFails: a cancel request or a timeout may hit the commands that lead
// back to before a gate that has failed. It has hit the client's statement then: that
// fails, nothing waits for ever, and the session goes on.
func TestUndoingTheGateFails(t *testing.T) {
	for _, c := range []struct {
		why, hit string // what the gate fails of, and the command that is hit
		asked    bool   // pgaccel is asked to cancel, and the server then has nothing to cancel
		want     string
	}{
		{"42501", "", false, ""},
		{"42501", rollbackToSQL, false, "57014"},
		{"42501", releaseSQL, false, "57014"},
		{"42501", rollbackToSQL, true, "57014"},
		{"26000", "", false, ""},
		{"26000", rollbackToSQL, false, "57014"},
		{"26000", releaseSQL, false, "57014"},
	} {
		for _, extended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %s, asked %v, extended %v", c.why, c.hit, c.asked, extended), func(t *testing.T) {
				st := candidate(numbers(1))
				b := newBench(fakeOf(candidateSQL, st))
				gate := st.Gate().Form
				failed, hits := false, 0
				p := &scripted{status: 'I', statements: map[string]string{}, portals: map[string]string{}}
				p.fails = func(typ byte, sql string) string {
					switch {
					case failed && sql == c.hit && !c.asked && typ == wire.Execute:
						if hits++; hits == 1 {
							return "57014"
						}
					case sql == cancelSQL:
						return "57014"
					case failed || sql != gate.SQL() || p.status != 'T':
					case c.why == "26000" && typ == wire.Bind, c.why == "42501" && typ == wire.Execute:
						failed = true
						return c.why
					}
					return ""
				}
				b.feed(t, fromServer, startAnswers, 1<<20)
				asked := [][]byte{query(candidateSQL)}
				ok, types := "TDC", ""
				if extended {
					asked = [][]byte{parse("", candidateSQL), bind("", "", nil), execute("", 0)}
					ok, types = "12DC", "12"
				}
				exchange := func(before func([]byte)) string {
					t.Helper()
					if !extended {
						return p.converse(t, b, before, asked...)
					}
					return p.converse(t, b, before, append(asked, syncing())...)
				}
				// So that the gate is there, and may be gone again.
				if got := exchange(nil); got != ok+"ZI " {
					t.Fatalf("at first: %s", got)
				}
				p.converse(t, b, nil, query("BEGIN"))
				p.converse(t, b, nil, query("select gone()"))
				got := exchange(func(sent []byte) {
					if c.asked && bytes.Contains(sent, []byte(c.hit)) {
						b.s.cancel()
					}
				})
				want := ok + "ZT "
				if c.want != "" && !(c.asked && extended) { // there the server is the one to ask
					want = types + "E(" + c.want + ")ZE "
				}
				if got != want {
					t.Errorf("the client got %s, want %s; the server ran %q", got, want, p.ran)
				}
				if !failed || c.hit != "" && !c.asked && hits == 0 {
					t.Fatal("the gate did not fail, or nothing was hit")
				}
				if got := p.converse(t, b, nil, query(rollbackSQL)); got != "CZI " {
					t.Errorf("rollback: %s", got)
				}
				if got := exchange(nil); got != ok+"ZI " {
					t.Errorf("afterwards: %s", got)
				}
				if b.s.opaque || b.s.local != nil || b.s.queue.len() != 0 {
					t.Error("the session is lost, or waits")
				}
				b.s.end()
			})
		}
	}
}

// TestCancelOfAForwardedStatement: a cancel request that comes while the server has nothing
// to cancel, between a gate that was not answered and the client's statement, hits that.
func TestCancelOfAForwardedStatement(t *testing.T) {
	const split = "BEGIN;" + candidateSQL
	extended := [][]byte{parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing()}
	for _, c := range []struct {
		name  string
		block bool
		fails string // the message that fails, of the gate or of the description
		asked [][]byte
		want  string
	}{
		{"simple, refused", false, "gate", [][]byte{query(candidateSQL)}, "E(57014)ZI "},
		{"simple, refused in a block", true, "gate", [][]byte{query(candidateSQL)}, "E(57014)ZE "},
		{"extended, refused", false, "gate", extended, "12E(57014)ZI "},
		{"extended, refused in a block", true, "gate", extended, "12E(57014)ZE "},
		{"not described", false, "description", [][]byte{query(candidateSQL)}, "E(57014)ZI "},
		{"behind BEGIN", false, "", [][]byte{query(split)}, "CE(57014)ZE "},
		{"extended, behind a statement", false, "", [][]byte{parse("", "select 1"), bind("", "", nil), execute("", 0), extended[0], extended[1], extended[2], extended[3]}, "12DC12E(57014)ZI "},
		{"behind an error", false, "before", [][]byte{parse("", "select 1"), bind("", "", nil), execute("", 0), extended[0], extended[1], extended[2], extended[3]}, "12E(22012)ZI "},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := candidate(numbers(1))
			f := fakeOf(candidateSQL, st)
			f.add(split, &fakeStatement{route: engine.RouteSplit, prefix: "BEGIN;", last: candidateSQL, lastSt: st})
			b := newBench(f)
			gate := st.Gate().Form
			p := &scripted{status: 'I', statements: map[string]string{}, portals: map[string]string{}}
			p.fails = func(typ byte, sql string) string {
				switch {
				case sql == cancelSQL:
					return "57014"
				case sql == gate.SQL() && c.fails == "gate":
					return "42501"
				case typ == wire.Describe && c.fails == "description":
					return "42703"
				case sql == "select 1" && c.fails == "before" && typ == wire.Execute:
					return "22012"
				}
				return ""
			}
			b.feed(t, fromServer, startAnswers, 1<<20)
			if c.block {
				p.converse(t, b, nil, query("BEGIN"))
			}
			if c.name == "behind BEGIN" { // the gate of it may not be run
				b.s.refused = time.Now()
			}
			asked := false
			got := p.converse(t, b, func([]byte) {
				if !asked {
					asked = true
					b.s.cancel()
				}
			}, c.asked...)
			if got != c.want {
				t.Errorf("the client got %s, want %s; the server ran %q", got, c.want, p.ran)
			}
			if n := st.forwarded.Load(); n != 0 {
				t.Errorf("%d forwarded", n)
			}
			if b.s.opaque || b.s.local != nil || b.s.queue.len() != 0 {
				t.Error("the session is lost, or waits")
			}
			b.s.end()
		})
	}
}

func fakeOf(sql string, st *fakeStatement) *fake {
	f := newFake()
	f.add(sql, st)
	return f
}
