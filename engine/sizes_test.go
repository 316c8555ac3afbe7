package engine

import (
	"errors"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/vector"
)

// TestPlansFollowTheStore: what a table is worth is decided by the rows that the store
// has, whatever the server's statistics say, and follows them.
func TestPlansFollowTheStore(t *testing.T) {
	for _, estimate := range []int64{0, 1_000_000} {
		store := colstore.New(colstore.Options{MemoryLimit: 64 << 20})
		defer store.Close()
		meta := func(oid uint32, name string) *catalog.Table {
			return &catalog.Table{OID: oid, Schema: "public", Name: name, Fingerprint: "x", Rows: estimate,
				Columns: []catalog.Column{{Name: "a", AttNum: 1, Type: vector.TypeOf(vector.Int4)}}}
		}
		grows, other := meta(42, "t"), meta(43, "other")
		store.SetCatalog(&catalog.Catalog{Tables: []*catalog.Table{grows, other}})
		publish := func(meta *catalog.Table, rows int) {
			t.Helper()
			l := store.NewLoader(meta)
			w := l.NewWriter()
			var err error
			for range rows {
				w.Int(0, 1)
				err = errors.Join(err, w.EndRow())
			}
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			table, err := l.Finish()
			if err != nil {
				t.Fatal(err)
			}
			table.Snapshot = mustSnapshot(t, "10:20:15")
			store.Publish(store.NewRelation(table))
		}
		publish(grows, 10)
		publish(other, 3000)
		e := New(Options{Store: store})
		texts := map[string]Statement{}
		driving := func() string { // of a join, the larger one
			d := e.Prepare("SELECT count(*) FROM t x, other y WHERE x.a = y.a", nil).Decide(Session{Forces: true}).(*decision)
			return d.query.Tables[0].Meta.Name
		}
		for _, step := range []struct {
			rows    int
			few     bool
			driving string
		}{{10, true, "other"}, {5_500, false, "t"}, {20_000, false, "t"}, {4_000, true, "t"}, {1, true, "other"}} {
			publish(grows, step.rows)
			// A text that was decided before, a new one, and one that differs by a constant.
			for _, sql := range []string{"SELECT sum(a) FROM t", "SELECT max(a) FROM t" + map[bool]string{true: " x"}[step.few], "SELECT sum(a) FROM t WHERE a < " + string(rune('0'+step.rows%10))} {
				if texts[sql] == nil {
					texts[sql] = e.Prepare(sql, nil)
				}
				for _, st := range []Statement{texts[sql], nil} {
					got := func() bool {
						s := st
						if s == nil {
							s = e.Prepare(sql, nil)
						}
						d := s.Decide(Session{}).(*decision)
						return d.forward != nil && d.forward.Reason == plan.ReasonSmall
					}
					for end := time.Now().Add(30 * time.Second); got() != step.few; time.Sleep(10 * time.Millisecond) {
						if time.Now().After(end) {
							t.Fatalf("estimate %d, %d rows, %s: cheap anyway is %v", estimate, step.rows, sql, !step.few)
						}
					}
				}
			}
			for end := time.Now().Add(30 * time.Second); driving() != step.driving; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("estimate %d, %d rows: %s does not drive the join", estimate, step.rows, step.driving)
				}
			}
		}
	}
}
