package proxy

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// fake answers texts from canned batches. What it answers differs from what
// Postgres would say, so that a test sees who answered.
type fake struct {
	word  string // Mentions
	texts map[string]*fakeStatement
	aside bool // Plans

	mu       sync.Mutex
	prepared []string
}

func newFake() *fake { return &fake{word: "accel", aside: true, texts: map[string]*fakeStatement{}} }

// add makes the fake answer a text.
func (f *fake) add(sql string, st *fakeStatement) *fakeStatement {
	f.texts[sql] = st
	return st
}

func (f *fake) Mentions(sql []byte) bool { return bytes.Contains(bytes.ToLower(sql), []byte(f.word)) }

func (f *fake) Plans(string, []uint32) bool { return f.aside }

func (f *fake) Prepare(sql string, oids []uint32) engine.Statement {
	f.mu.Lock()
	f.prepared = append(f.prepared, sql)
	f.mu.Unlock()
	if st := f.texts[strings.TrimSpace(sql)]; st != nil {
		return st
	}
	return &fakeStatement{route: engine.RouteForward}
}

// heldResults are the results that sessions have been given and have not let go.
var heldResults atomic.Int64

// given is b as a session gets it, counted until it is released.
func given(b *vector.Batch) *vector.Batch {
	if b == nil {
		return nil
	}
	heldResults.Add(1)
	own := *b
	own.Reserved = sync.OnceFunc(func() { heldResults.Add(-1) })
	return &own
}

// fakeStatement is a decided text.
type fakeStatement struct {
	plain        bool // its gate is of that form
	forced       bool // a candidate only for who insists
	route        engine.Route
	view         *engine.View
	copy         *engine.Copy
	cursor       *engine.Cursor
	prefix, last string
	lastSt       *fakeStatement
	batch        *vector.Batch
	err          error
	block        chan struct{} // not nil: Execute waits for it, or for its context

	constants *engine.Constants // what is asked for behind the gate

	executions atomic.Int32
	forwarded  atomic.Int32
	prepared   atomic.Int32 // calls of Prepared
	completed  atomic.Int32 // calls of Completed, and what they were given
	took       atomic.Int64
	mu         sync.Mutex
	params     []vector.Datum
	fields     []engine.Field
	gateRows   int
	reason     plan.Reason

	speculate func(ctx context.Context, params []vector.Datum) engine.Speculation

	ordered   bool
	shadowErr error
	checks    int
	outcomes  []engine.Comparison
}

// viewing is a statement over the schema pgaccel: sql has the parameter $n for rows.
func viewing(sql string, n int, rows string) *fakeStatement {
	st := &fakeStatement{route: engine.RouteView}
	st.view = &engine.View{SQL: sql, Parameter: n, Ask: func() engine.ViewRows {
		return engine.ViewRows{SQL: engine.ViewRightsSQL, Params: []string{"{1259,1260}", "{0,1}"}, Value: func(rights [][]*string) (string, error) {
			if len(rights) != 1 || len(rights[0]) != 4 || *rights[0][0] != "t" || *rights[0][1] != "UTF8" || *rights[0][3] != "t,t" {
				return "", fmt.Errorf("rights of %d rows", len(rights))
			}
			st.executions.Add(1)
			return rows, nil
		}}
	}}
	return st
}

func candidate(b *vector.Batch) *fakeStatement {
	return &fakeStatement{route: engine.RouteCandidate, batch: b}
}

// numbers is a batch of one integer column.
func numbers(v ...int64) *vector.Batch {
	return &vector.Batch{Rows: len(v), Columns: []vector.Column{{Type: vector.TypeOf(vector.Int4), Ints: v}}}
}

// Decide decides the same each time; forced is what a session has to insist on.
func (s *fakeStatement) Decide(in engine.Session) engine.Decision {
	if s.forced && !in.Forces {
		return &fakeForced{s}
	}
	return s
}

// fakeForced is a statement that nobody insists on.
type fakeForced struct{ *fakeStatement }

func (*fakeForced) Route() engine.Route { return engine.RouteForward }

func (s *fakeStatement) Route() engine.Route      { return s.route }
func (s *fakeStatement) View() *engine.View       { return s.view }
func (s *fakeStatement) Copy() *engine.Copy       { return s.copy }
func (s *fakeStatement) Explain() *engine.Explain { return nil }
func (s *fakeStatement) Cursor() *engine.Cursor   { return s.cursor }

func (s *fakeStatement) Finish() *engine.Finish      { return nil }
func (s *fakeStatement) Finished(time.Duration, int) {}

func (s *fakeStatement) Unchanged(context.Context, engine.Gate, *engine.Seen) error { return nil }

func (s *fakeStatement) Split() *engine.Split {
	return &engine.Split{Prefix: s.prefix, Begins: strings.HasPrefix(strings.ToLower(s.prefix), "begin"), SQL: s.last, Last: s.lastSt}
}

// Gate names one table that does not exist, so that the gate has a row.
func (s *fakeStatement) Gate() engine.GateCall {
	if s.plain {
		return engine.GateCall{Form: engine.GatePlain, Params: []string{`"nosuch"`, "", "1", "{}", "{}", "{}", ""}}
	}
	return engine.GateCall{Form: engine.GateFull, Params: []string{`{"\"nosuch\""}`, "{NULL}", "{1}", `{"{}"}`, "{}", "{}", "{0}", ""}}
}

// Constants asks for nothing, unless the test does.
func (s *fakeStatement) ReadsSettings() bool { return s.constants != nil }

func (s *fakeStatement) Constants() *engine.Constants { return s.constants }

func (s *fakeStatement) Comparable() bool { return true }

func (s *fakeStatement) Execute(ctx context.Context, tx *engine.Transaction, gate engine.Gate, fields []engine.Field, params []vector.Datum) (*vector.Batch, error) {
	s.executions.Add(1)
	s.mu.Lock()
	s.params, s.fields, s.gateRows = params, fields, len(gate.Rows)
	s.mu.Unlock()
	if s.block != nil {
		select {
		case <-s.block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	return given(s.batch), nil
}

// Prepared implements engine.Decision.
func (s *fakeStatement) Prepared() { s.prepared.Add(1) }

// Speculate begins what the test has set, if anything.
func (s *fakeStatement) Speculate(ctx context.Context, tx *engine.Transaction, values func([]uint32) ([]vector.Datum, bool)) engine.Speculation {
	s.mu.Lock()
	begin := s.speculate
	s.mu.Unlock()
	if begin == nil {
		return nil
	}
	params, _ := values([]uint32{sqltype.OIDInt4})
	return begin(ctx, params)
}

func (s *fakeStatement) setSpeculate(begin func(context.Context, []vector.Datum) engine.Speculation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.speculate = begin
}

func (s *fakeStatement) Listed() bool { return true }

func (s *fakeStatement) Shape() (string, plan.Reason) { return "", "" }

func (s *fakeStatement) Forwarded(r plan.Reason) time.Time {
	s.forwarded.Add(1)
	s.mu.Lock()
	s.reason = r
	s.mu.Unlock()
	return time.Now()
}

func (s *fakeStatement) Completed(took time.Duration) {
	s.completed.Add(1)
	s.took.Add(int64(took))
}

// saw returns what the last execution was given, and the last reason to forward.
func (s *fakeStatement) saw() (seen struct {
	params   []vector.Datum
	fields   []engine.Field
	gateRows int
	reason   plan.Reason
}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen.params, seen.fields, seen.gateRows, seen.reason = s.params, s.fields, s.gateRows, s.reason
	return seen
}

// Shadow counts checks; their outcome is kept.
func (s *fakeStatement) Shadow(gate engine.Gate, fields []engine.Field, params []vector.Datum) (*engine.Check, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shadowErr != nil {
		return nil, s.shadowErr
	}
	s.checks++
	s.params, s.fields, s.gateRows = params, fields, len(gate.Rows)
	fixed := slices.ContainsFunc(gate.Rows[0], func(v *string) bool { return v != nil && *v == "repeatable read" })
	return &engine.Check{Snapshot: engine.GateSnapshot(gate.Rows), Fixed: fixed, Ordered: s.ordered,
		Run: func(ctx context.Context) (*vector.Batch, error) { return given(s.batch), s.err },
		Done: func(c engine.Comparison) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.outcomes = append(s.outcomes, c)
		}}, nil
}

// outcome waits for the check of the given number, from 1.
func (s *fakeStatement) outcome(t *testing.T, n int) engine.Comparison {
	t.Helper()
	var c engine.Comparison
	waitFor(t, "a check's outcome", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.outcomes) < n {
			return false
		}
		c = s.outcomes[n-1]
		return true
	})
	return c
}

// checked returns the number of checks that were begun.
func (s *fakeStatement) checked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checks
}
