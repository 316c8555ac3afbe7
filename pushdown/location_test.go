package pushdown

import (
	"slices"
	"strings"
	"testing"

	"pgaccel/syntax"
)

// TestRefusalsHaveAPlace: the place at which a refusal is said to begin, marked by ^ in
// the statement. A statement without a mark has none that is known.
func TestRefusalsHaveAPlace(t *testing.T) {
	cat := testCatalog(t)
	for _, marked := range []string{
		"SELECT id, ^array_agg(id) OVER () FROM orders",
		"SELECT 'ä' AS a, id + abs(^random()) FROM orders",
		"SELECT id FROM orders o WHERE id > 5 AND ^EXISTS (SELECT 1 FROM orders i WHERE i.id + o.id = 7)",
		"SELECT id FROM orders o WHERE id > 5 AND id = ^(SELECT max(id) FROM orders i WHERE i.id + o.id > 7)",
		"SELECT ^(SELECT count(*) FROM orders WHERE qty / c.id > 1) FROM customers c",
		"SELECT count(*) FROM orders, ^views",
		"SELECT count(*) FROM ^orders x LEFT JOIN orders y ON x.id > y.id + x.qty",
		"^WITH RECURSIVE x AS (SELECT id FROM orders) SELECT id FROM x",
		"SELECT id FROM orders FOR ^UPDATE",
		"SELECT ^DISTINCT ON (kind) kind, id FROM orders GROUP BY ROLLUP (kind, id)",
		"SELECT id FROM orders LIMIT ^-1",
		"SELECT id FROM orders ORDER BY ^99",
		"SELECT sum(id) FROM orders, ^json_array_elements('[]')",
		"SELECT id FROM orders WHERE ROW(id, 1) ^*= ROW(1, 1)",
		"SELECT 5",
		"DELETE FROM orders",
	} {
		sql := strings.Replace(marked, "^", "", 1)
		st := Plan(syntax.Parse(sql), nil, cat)
		if st.Forward == nil {
			t.Errorf("%s is planned", sql)
			continue
		}
		if want := strings.Index(marked, "^"); st.At != want {
			t.Errorf("%s (%s): at %d, want %d", marked, st.Forward.Detail, st.At, want)
		}
	}
	if st := Plan(syntax.Parse("SELECT count(*) FROM orders"), nil, cat); st.Forward != nil || st.At != -1 {
		t.Errorf("planned: %+v", st)
	}
}

// TestAllRefusals: each thing that is refused, where what it stands in does not depend on others;
// all are marked by ^.
func TestAllRefusals(t *testing.T) {
	cat := testCatalog(t)
	for _, c := range []struct {
		marked string
		want   []string
	}{
		{"SELECT ^quote_literal(kind), id, ^quote_ident(kind) FROM orders WHERE id > 5 AND ^random() < 1 AND qty = ^ARRAY[1]",
			[]string{"quote_literal()", "quote_ident()", "random()", "array"}},
		{"SELECT quote_literal(kind) FROM ^nosuch a, orders b JOIN ^nothing c ON quote_ident(kind) = 'a'", []string{"nosuch is not", "nothing is not"}},
		{"SELECT count(*) FROM orders a JOIN customers b ON ^quote_literal(kind) = name AND ^quote_ident(kind) = name", []string{"quote_literal()", "quote_ident()"}},
		{"SELECT id FROM orders ORDER BY ^quote_literal(kind), qty, ^quote_ident(kind) LIMIT ^-1 OFFSET ^-2", []string{"quote_literal()", "quote_ident()", "LIMIT or OFFSET", "LIMIT or OFFSET"}},
		{"SELECT count(*) FROM orders GROUP BY ^quote_literal(kind), ^quote_ident(kind)", []string{"quote_literal()", "quote_ident()"}},
		{"SELECT ^kind, qty, ^status, count(*) FROM orders GROUP BY qty", []string{"neither grouped", "neither grouped"}},
		{"SELECT x FROM (SELECT ^quote_literal(kind) AS x, ^quote_ident(kind) FROM orders) a, (SELECT max(^doc) FROM orders) b", []string{"quote_literal()", "quote_ident()", "column doc: type regclass"}},
		{"SELECT ^array_agg(id) OVER (), (SELECT ^quote_literal(name) FROM customers c LIMIT 1) FROM orders", []string{"window function", "quote_literal()"}},
		{"SELECT " + strings.Repeat("^quote_literal(kind), ", 20) + "quote_literal(kind) FROM orders", slices.Repeat([]string{"quote_literal()"}, 20)},
	} {
		sql := strings.ReplaceAll(c.marked, "^", "")
		st := Plan(syntax.Parse(sql), nil, cat)
		var marks []int
		for i, at := 0, 0; i < len(c.marked); i++ {
			if c.marked[i] == '^' {
				marks = append(marks, i-at)
				at++
			}
		}
		if st.Forward == nil || st.Forward != st.Refused[0].Forward || st.At != st.Refused[0].At || len(st.Refused) != len(c.want) {
			t.Errorf("%s: %d refused, want %d", sql, len(st.Refused), len(c.want))
			continue
		}
		for i, r := range st.Refused {
			if !strings.Contains(r.Forward.Detail, c.want[i]) {
				t.Errorf("%s: %s, want %s", sql, r.Forward.Detail, c.want[i])
			}
			if len(marks) == len(c.want) && r.At != marks[i] {
				t.Errorf("%s: %s at %d, want %d", sql, r.Forward.Detail, r.At, marks[i])
			}
		}
	}
}
