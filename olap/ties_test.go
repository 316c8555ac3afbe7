package olap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// seenRows are the rows of a batch, each as text.
func seenRows(b *vector.Batch) []string {
	rows := make([]string, b.Rows)
	for i := range rows {
		rows[i] = rowText(b, i)
	}
	return rows
}

// keyText is a value as text, equal for values that ORDER BY has equal.
func keyText(c *vector.Column, i int) string {
	switch {
	case c.IsNull(i):
		return "null"
	case c.Strs != nil:
		return canonical(c.Type.Kind, c.Strs[i])
	case c.Decimals != nil: // 1.0 is 1.00
		d := c.Decimals[i]
		if r, ok := d.Rescale(20); ok {
			d = r
		}
		return d.String()
	case c.Type.Kind.IsFloat():
		return fmt.Sprint(vector.FloatKey(c.Ints[i]))
	}
	return fmt.Sprint(c.Ints[i])
}

// TestTies takes pages by LIMIT and OFFSET of rows and groups that few keys order. Each is what LIMIT may leave: keys are
// those of the whole at these places. One after another they are the whole, whoever computes them. What
// cuts no tie says so.
func TestTies(t *testing.T) {
	chosen := 0
	device := newOnPlainDevice().device
	for seed := range uint64(120) {
		device.limits = deviceLimits[seed%2]
		w := newWorld(t, seed)
		table := w.tables[0]
		q := plan.Star{Tables: []plan.Source{{Meta: table.meta}}, Grouped: seed%3 != 0}
		columns := w.r.Perm(len(shape))[:3]
		for i, c := range columns {
			e := w.column(0, c)
			if q.Grouped {
				q.Group = append(q.Group, e)
				e = plan.Key{Index: i, T: e.Type()}
			}
			q.Output = append(q.Output, e)
		}
		if q.Grouped && w.r.IntN(2) == 0 {
			q.Aggs = []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}}
			q.Output = slices.Insert(q.Output, w.r.IntN(2), plan.Expr(plan.Agg{T: vector.TypeOf(vector.Int8)}))
		}
		for _, e := range q.Output[:w.r.IntN(2)] {
			q.Order = append(q.Order, plan.Order{Expr: e, Desc: w.r.IntN(2) == 0, NullsFirst: w.r.IntN(2) == 0})
		}
		if !q.Grouped && len(q.Order) == 0 {
			continue // LIMIT without ORDER BY
		}
		execute := func(q plan.Star) (*vector.Batch, error) {
			opt := w.options
			opt.Workers, opt.Ties, opt.Eager = 1+w.r.IntN(4), true, w.r.IntN(2) == 0
			if w.r.IntN(2) == 0 {
				opt.Device, opt.DeviceWait = device, true
			}
			return Execute(context.Background(), &q, w.input(), opt)
		}
		all, err := execute(q)
		if err != nil {
			continue // no order of text is known, say
		}
		whole := seenRows(all)
		keys := func(b *vector.Batch, i int) (key string) {
			if len(q.Order) > 0 {
				return keyText(&b.Columns[0], i)
			}
			return ""
		}
		page := int64(1 + w.r.IntN(max(len(whole)/3, 1)))
		var pages []string
		for from := int64(0); from < int64(len(whole)); from += page {
			q.Limit, q.Offset = plan.Const{Datum: vector.Int(vector.Int8, page)}, plan.Const{Datum: vector.Int(vector.Int8, from)}
			b, err := execute(q)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for i := range b.Rows {
				if is, want := keys(b, i), keys(all, int(from)+i); is != want {
					t.Fatalf("seed %d, row %d: key %s, not %s", seed, from+int64(i), is, want)
				}
			}
			if b.Ties {
				chosen++
			}
			pages = append(pages, seenRows(b)...)
		}
		slices.Sort(pages)
		slices.Sort(whole)
		if !slices.Equal(pages, whole) {
			t.Errorf("seed %d: pages of %d rows are not the whole of %d", seed, page, len(whole))
		}
	}
	if device.thens < 40 {
		t.Errorf("%d pages that a device has cut by a digit", device.thens)
	}
	if chosen < 200 {
		t.Errorf("%d pages cut among rows that tie", chosen)
	}
}

// TestTiesLeftOut: groups that are left out early were chosen among, too, where all that are left look alike.
func TestTiesLeftOut(t *testing.T) {
	w := cutWorld(t, rand.New(rand.NewPCG(1, 1)), 200)
	q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}}, Grouped: true, Group: []plan.Expr{w.named("g"), w.named("id")}, Limit: plan.Const{Datum: vector.Int(vector.Int8, 2)},
		Aggs: []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}}}
	count := plan.Agg{T: vector.TypeOf(vector.Int8)}
	q.Output = []plan.Expr{plan.Key{T: vector.TypeOf(vector.Int4)}, count}
	for _, q.Order = range [][]plan.Order{nil, {{Expr: count}}} {
		for _, opt := range []Options{{}, {Device: newOnPlainDevice().device, DeviceWait: true}} {
			opt.Ties = true
			if b, err := Execute(t.Context(), q, w.input(), opt); err != nil || !b.Ties || b.Rows != 2 {
				t.Errorf("order %v, device %v: %v, %v", q.Order, opt.DeviceWait, b, err)
			}
		}
	}
}

// TestTiesForwarded: who does not ask for a choice has none.
func TestTiesForwarded(t *testing.T) {
	table := ints(t, 1024, []string{"a"}, [][]any{{int64(1)}, {int64(2)}, {int64(3)}})
	in := Input{Tables: (&world{tables: []*randomTable{table}}).input().Tables}
	one := plan.Const{Datum: vector.Int(vector.Int8, 1)}
	inner := &plan.Star{Tables: []plan.Source{{Meta: table.meta}}, Grouped: true, Group: []plan.Expr{bigint(0, 0)},
		Output: []plan.Expr{plan.Key{Index: 0, T: vector.TypeOf(vector.Int8)}}, Limit: one}
	if b, err := Execute(context.Background(), inner, in, Options{Ties: true}); err != nil || !b.Ties || b.Rows != 1 || b.Columns[0].Ints[0] != 1 {
		t.Errorf("%+v %v", b, err)
	}
	wantForward(t, inner, in, Options{}, plan.ReasonTies)
}
