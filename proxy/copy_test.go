package proxy

import (
	"testing"

	"pgaccel/engine"
	"pgaccel/syntax"
)

// TestCopy: a COPY is answered from the engine, and forwarded where the server does not describe its rows, with
// the error that the COPY has.
func TestCopy(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		const copySQL, wrong = "copy (select 1 as accel) to stdout", "copy (select accel) to stdout"
		add := func(sql, rows string) *fakeStatement {
			st := f.add(sql, candidate(numbers(7, 8)))
			st.copy = &engine.Copy{SQL: rows, Options: &syntax.Copy{Delimiter: '\t', Null: `\N`}}
			return st
		}
		st, refused := add(copySQL, candidateSQL), add(wrong, "select accel")
		c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
		defer c.Close()
		extended := func(sql string) [][]byte {
			return g(parse("", sql), bind("", "", nil), execute("", 1), syncing())
		}
		wantTypes(t, c.exchange(query(copySQL)), "HddcCZ")
		wantTypes(t, c.exchange(extended(copySQL)...), "12HddcCZ")
		c.exchange(query("begin"))
		wantTypes(t, c.exchange(query(copySQL)), "HddcCZ")
		wantTypes(t, c.exchange(extended(copySQL)...), "12HddcCZ")
		c.exchange(query("commit"))
		if n := st.executions.Load(); n != 4 {
			t.Errorf("%d executions", n)
		}
		for _, messages := range [][][]byte{g(query(wrong)), extended(wrong)} {
			if got, want := show(c.exchange(messages...)), show(direct(t, messages)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if n := refused.forwarded.Load(); n != 2 || refused.executions.Load() != 0 {
			t.Errorf("forwarded %d times", n)
		}
	})
}
