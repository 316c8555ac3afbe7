package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"pgaccel/wire"
)

// streamTimeout is how long an answer is waited for.
const streamTimeout = 30 * time.Second

// player plays a stream to one address and keeps what comes.
type player struct {
	conn net.Conn

	mu       sync.Mutex
	changed  *sync.Cond
	messages []string
	readies  int
	ended    bool // the connection, or the stream, is at its end
}

// play returns the messages of the server, in a form that is the same for two sessions of
// one server.
func (s *stream) play(address string) ([]string, error) {
	conn, err := net.DialTimeout("tcp", address, streamTimeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(2 * streamTimeout))
	p := &player{conn: conn}
	p.changed = sync.NewCond(&p.mu)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.read()
	}()
	var body []byte
	for _, v := range s.startup {
		body = append(append(append(append(body, v[0]...), 0), v[1]...), 0)
	}
	var pieces *rand.Rand
	if s.chopped != 0 {
		pieces = rand.New(rand.NewPCG(s.chopped, 0))
	}
	owed := 1
	p.write(wire.AppendStartup(nil, wire.Version30, append(body, 0)), pieces)
	p.wait(&owed)
	for _, step := range s.steps {
		if step.wait {
			p.wait(&owed)
			continue
		}
		p.write(step.data, pieces)
		owed += readies(step.data)
	}
	// Whatever state it is in: out of a copy, out of a batch, out of a block.
	end := wire.AppendMessage(nil, wire.CopyFail, []byte("end\x00"))
	for _, m := range []pgproto3.FrontendMessage{&pgproto3.Sync{}, &pgproto3.Sync{}, &pgproto3.Query{String: "ROLLBACK"}, &pgproto3.Query{String: "SELECT '" + theEnd + "'"}} {
		if end, err = m.Encode(end); err != nil {
			return nil, err
		}
	}
	p.write(end, pieces)
	<-done
	return p.messages, nil
}

const theEnd = "the end of the stream"

// readies counts the messages that ReadyForQuery answers, most often.
func readies(b []byte) (n int) {
	for len(b) >= wire.HeaderLen {
		typ, total, ok := wire.Header(b)
		if !ok || total > len(b) {
			return n
		}
		if typ == wire.Query || typ == wire.Sync {
			n++
		}
		b = b[total:]
	}
	return n
}

// write writes in one piece, or in small ones. An error shows in what is read.
func (p *player) write(b []byte, pieces *rand.Rand) {
	for len(b) > 0 {
		n := len(b)
		if pieces != nil {
			n = min(n, 1+pieces.IntN(7))
		}
		if _, err := p.conn.Write(b[:n]); err != nil {
			return
		}
		b = b[n:]
	}
}

// wait waits until the server has answered what it owes, or says nothing more: a Sync
// that a copy has swallowed is not answered.
func (p *player) wait(owed *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.readies < *owed && !p.ended {
		n := len(p.messages)
		timer := time.AfterFunc(200*time.Millisecond, p.changed.Broadcast)
		p.changed.Wait()
		timer.Stop()
		if len(p.messages) == n {
			*owed = p.readies
		}
	}
}

func (p *player) read() {
	defer func() {
		p.mu.Lock()
		p.ended = true
		p.changed.Broadcast()
		p.mu.Unlock()
	}()
	var head [wire.HeaderLen]byte
	last := false
	for {
		_, err := io.ReadFull(p.conn, head[:])
		var body []byte
		if err == nil {
			body = make([]byte, max(0, int(binary.BigEndian.Uint32(head[1:]))-4))
			_, err = io.ReadFull(p.conn, body)
		}
		text := "end of the connection"
		if e, ok := err.(net.Error); ok && e.Timeout() {
			text = "nothing more came in time"
		} else if err == nil {
			text = shown(head[0], body)
		}
		p.mu.Lock()
		p.messages = append(p.messages, text)
		if head[0] == wire.ReadyForQuery && err == nil {
			p.readies++
		}
		p.changed.Broadcast()
		p.mu.Unlock()
		last = last || head[0] == wire.DataRow && bytes.HasSuffix(body, []byte(theEnd))
		if err != nil || last && head[0] == wire.ReadyForQuery {
			return
		}
	}
}

var temporarySchema = regexp.MustCompile(`pg_(toast_)?temp_\d+`)

// shown is a message without what differs from session to session: keys, the OIDs of
// temporary tables, and of errors the line of Postgres' source (a portal that has gone is
// noticed in another place of it).
func shown(typ byte, body []byte) string {
	switch typ {
	case wire.BackendKeyData:
		return fmt.Sprintf("%c of %d bytes", typ, len(body))
	case wire.RowDescription:
		b := append([]byte(nil), body...)
		for at := 2; at < len(b); {
			end := bytes.IndexByte(b[at:], 0)
			if end < 0 || at+end+19 > len(b) {
				break
			}
			at += end + 1
			clear(b[at : at+4])
			at += 18
		}
		body = b
	case wire.ErrorResponse, wire.NoticeResponse:
		text := ""
		for _, field := range bytes.Split(body, []byte{0}) {
			if len(field) > 0 && field[0] != 'L' && field[0] != 'R' {
				text += " " + string(field)
			}
		}
		return fmt.Sprintf("%c%q", typ, temporarySchema.ReplaceAllString(text, "pg_temp"))
	}
	return fmt.Sprintf("%c%q", typ, body)
}

// text is a stream in the form of testdata: its startup parameters and steps, a line each.
func (s *stream) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "startup %q\n", s.startup)
	if s.chopped != 0 {
		fmt.Fprintf(&b, "chopped %d\n", s.chopped)
	}
	for _, step := range s.steps {
		if step.wait {
			b.WriteString("wait\n")
		} else {
			fmt.Fprintf(&b, "send %q\n", step.data)
		}
	}
	return b.String()
}

// parseStream reads it.
func parseStream(text string) (*stream, error) {
	s := &stream{}
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch word {
		case "startup":
			// [["a" "b"] ["c" "d"]] is JSON but for the commas.
			list := strings.NewReplacer(`" "`, `","`, `] [`, `],[`).Replace(rest)
			err = json.Unmarshal([]byte(list), &s.startup)
		case "chopped":
			s.chopped, err = strconv.ParseUint(rest, 10, 64)
		case "wait":
			s.steps = append(s.steps, streamStep{wait: true})
		case "send":
			var data string
			data, err = strconv.Unquote(rest)
			s.steps = append(s.steps, streamStep{data: []byte(data)})
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return s, nil
}

// messages splits the steps into one message each, for shrinking.
func (s *stream) messages() *stream {
	out := &stream{startup: s.startup, chopped: s.chopped}
	for _, step := range s.steps {
		for b := step.data; len(b) > 0; {
			_, total, ok := wire.Header(b)
			if !ok || total > len(b) {
				total = len(b)
			}
			out.steps = append(out.steps, streamStep{data: b[:total]})
			b = b[total:]
		}
		if step.wait {
			out.steps = append(out.steps, step)
		}
	}
	return out
}

// unfit reports that a stream does what is not to be compared:
//
//   - It executes the unnamed portal of an earlier Query. Where that Query failed in a
//     block, PostgreSQL keeps the portal, with a plan that is gone, and its backend ends by
//     SIGSEGV (seen on 15.18: exec_simple_query's plans are in MessageContext, and
//     IsTransactionExitStmtList in exec_execute_message reads them).
//   - It leaves in the middle of a batch, where PostgreSQL sends nothing of what it has
//     answered since the last Flush, and pgaccel may have flushed for its gate (doc.go).
func (s *stream) unfit() bool {
	bound := false
	last := byte(wire.Sync)
	for _, step := range s.messages().steps {
		b := step.data
		if len(b) < wire.HeaderLen {
			continue
		}
		if b[0] == wire.Terminate && last != wire.Sync && last != wire.Query && last != wire.Flush {
			return true
		}
		last = b[0]
		switch unnamed := len(b) > wire.HeaderLen && b[wire.HeaderLen] == 0; b[0] {
		case wire.Query, wire.Sync:
			bound = false
		case wire.Bind:
			bound = bound || unnamed
		case wire.Execute:
			if unnamed && !bound {
				return true
			}
		}
	}
	return false
}

// shrink leaves out what the difference does not need.
func (s *stream) shrink(different func(*stream) bool) *stream {
	differs := func(x *stream) bool { return !x.unfit() && different(x) }
	if plain := *s; s.chopped != 0 {
		if plain.chopped = 0; differs(&plain) {
			s = &plain
		}
	}
	if m := s.messages(); differs(m) {
		s = m
	}
	for size := len(s.steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(s.steps); {
			less := *s
			less.steps = append(append([]streamStep(nil), s.steps[:at]...), s.steps[at+size:]...)
			if differs(&less) {
				s = &less
			} else {
				at += size
			}
		}
	}
	for i := len(s.startup) - 1; i >= 2; i-- {
		less := *s
		less.startup = append(append([][2]string(nil), s.startup[:i]...), s.startup[i+1:]...)
		if differs(&less) {
			s = &less
		}
	}
	return s
}

// streamStack is a server with two pgaccels in front: one answers, one checks half of what
// it could answer.
type streamStack struct {
	*bench
	direct  string
	through [2]string
	checks  *Server
	crashed sync.Once
	refused atomic.Uint64
}

func newStreamStack(t *testing.T) *streamStack {
	b := newBench(t, 0)
	checks, err := Start(context.Background(), Config{Upstream: b.pg.URL("postgres", "postgres"), Listen: []string{"127.0.0.1:0"},
		Accelerate: []string{"public.*"}, Shadow: 0.5, WaitLimit: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(b.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(checks.Close)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := checks.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return &streamStack{bench: b, direct: fmt.Sprintf("127.0.0.1:%d", b.pg.Port), through: [2]string{b.s.Addr().String(), checks.Addr().String()}, checks: checks}
}

// usesPortals finds the statements that use a portal by its name.
var usesPortals = regexp.MustCompile(`FETCH|MOVE|CURRENT OF|cursor_to_xml`)

// difference plays a stream both ways and says where the answers differ, "" for nowhere.
func (k *streamStack) difference(s *stream, way int) string {
	want, err := s.play(k.direct)
	if err != nil {
		return err.Error()
	}
	got, err := s.play(k.through[way])
	if err != nil {
		return err.Error()
	}
	for i := range max(len(want), len(got)) {
		at := func(list []string) string {
			if i < len(list) {
				return list[i]
			}
			return "nothing"
		}
		if strings.Contains(at(want)+at(got), "57P03") {
			// The server itself has ended, and starts again.
			k.crashed.Do(func() {
				k.t.Errorf("the server has ended under\n%s\nits log:\n%s", s.text(), crashLog(k.pg.Dir))
			})
		}
		if strings.Contains(at(got), "C0A000 MSQL cannot use a portal that pgaccel answers") && usesPortals.MatchString(s.text()) {
			k.refused.Add(1)
			return "" // an error instead of rows of another place: the rest is another session's
		}
		if strings.Contains(at(want), " CXX000 ") {
			// An internal error of the server's, which has lost its own transaction's state: in 18 by
			// a Query amid a batch of portals that it has run.
			return ""
		}
		if at(want) != at(got) {
			return fmt.Sprintf("message %d: %.1000s\n   direct: %.1000s", i+1, at(got), at(want))
		}
	}
	return ""
}

// TestStreams plays random streams of a client's messages to a server, and to it through
// pgaccel: message by message, the answers are the same. PGACCEL_STREAMS is their number,
// PGACCEL_SEED another beginning. A stream that differs is shrunk, and kept in testdata.
func TestStreams(t *testing.T) {
	k := newStreamStack(t)
	count, seed := uint64(400), uint64(1)
	for name, v := range map[string]*uint64{"PGACCEL_STREAMS": &count, "PGACCEL_SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			*v = n
		}
	}
	const folder = "testdata/streams"
	files, err := filepath.Glob(folder + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseStream(string(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for way := range k.through {
			if d := k.difference(s, way); d != "" {
				t.Errorf("%s, way %d:\n%s", name, way, d)
			}
		}
	}
	var next, failures, skipped atomic.Uint64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				n := next.Add(1) - 1
				if n >= count || failures.Load() >= 5 {
					return
				}
				s, way := randomStream(seed, n), int(n%2)
				if s.unfit() {
					skipped.Add(1)
					continue
				}
				first := k.difference(s, way)
				if first == "" {
					continue
				}
				failures.Add(1)
				small := s.shrink(func(x *stream) bool { return k.difference(x, way) != "" })
				d := k.difference(small, way)
				if d == "" { // not each time
					small, d = s, first
				}
				h := fnv.New32a()
				io.WriteString(h, small.text())
				name := fmt.Sprintf("%s/%08x", folder, h.Sum32())
				os.MkdirAll(folder, 0o777)
				if err := os.WriteFile(name, []byte(small.text()), 0o666); err != nil {
					t.Error(err)
				}
				t.Errorf("seed %d, stream %d, way %d, kept as %s:\n%s%s", seed, n, way, name, small.text(), d)
			}
		})
	}
	wg.Wait()
	answered := uint64(0)
	for _, c := range k.s.databases[0].engine.Counts() {
		if c.Route == "accelerated" {
			answered += uint64(c.N)
		}
	}
	t.Logf("%d streams, %d executions answered here, %d checked, portals refused to SQL in %d", count, answered, k.checks.databases[0].engine.Verdicts(1), k.refused.Load())
	if n := k.refused.Load(); count > 100 && n > count/8 {
		t.Errorf("SQL was refused a portal in %d of %d streams", n, count)
	}
	if count > 100 && skipped.Load() > count/10 {
		t.Errorf("%d of %d streams are left out", skipped.Load(), count)
	}
	if answered < count/2 { // half of the streams go to the one that answers
		t.Errorf("%d executions answered here in %d streams", answered, count)
	}
	if n := k.checks.databases[0].engine.Verdicts(2); n > 0 {
		t.Errorf("%d checks found a difference", n)
	}
	if l := k.log.errors(); len(l) > 0 {
		t.Errorf("logged: %s", l)
	}
}

// TestStreamText: what is kept is what was played.
func TestStreamText(t *testing.T) {
	for n := range uint64(50) {
		s := randomStream(7, n)
		back, err := parseStream(s.text())
		if err != nil || back.text() != s.text() {
			t.Fatalf("%v:\n%s\n%s", err, s.text(), back.text())
		}
	}
}

// crashLog returns what the server's log says of backends that ended by a signal.
func crashLog(dir string) (out string) {
	text, err := os.ReadFile(filepath.Join(dir, "postgres.log"))
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "terminated by signal") || strings.Contains(line, "Failed process") {
			out += line
		}
	}
	return out
}
