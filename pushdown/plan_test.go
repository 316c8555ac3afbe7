package pushdown

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

func TestShadowedNames(t *testing.T) {
	cat := testCatalog(t)
	f := func(shadowed, sql string, want plan.Reason) {
		t.Helper()
		c := *cat
		c.Shadowed = map[string]bool{shadowed: true}
		st := Plan(syntax.Parse(sql), nil, &c)
		var got plan.Reason
		if st.Forward != nil {
			got = st.Forward.Reason
		}
		if got != want {
			t.Errorf("%s with %q shadowed: %q, want %q", sql, shadowed, got, want)
		}
	}
	f("sum", "SELECT sum(qty) FROM orders", plan.ReasonShadowed)
	f("sum", "SELECT pg_catalog.sum(qty) FROM orders", "")
	f("sum", "SELECT count(qty) FROM orders", "")
	f("+", "SELECT qty + 1 FROM orders", plan.ReasonShadowed)
	f("+", "SELECT qty OPERATOR(pg_catalog.+) 1 FROM orders", "")
	f("=", "SELECT id FROM orders WHERE qty IN (1, 2)", plan.ReasonShadowed)
	f("=", "SELECT count(*) FROM logs JOIN customers c USING (customer_id)", plan.ReasonShadowed)
	f("=", "SELECT CASE qty WHEN 1 THEN 2 END FROM orders", plan.ReasonShadowed)
	f("=", "SELECT nullif(qty, 1) FROM orders", plan.ReasonShadowed)
	f("=", "SELECT id FROM orders WHERE qty IS DISTINCT FROM 1", plan.ReasonShadowed)
	f(">=", "SELECT id FROM orders WHERE qty BETWEEN 1 AND 2", plan.ReasonShadowed)
	f("<=", "SELECT id FROM orders WHERE qty BETWEEN 1 AND 2", plan.ReasonShadowed)
	f("<", "SELECT id FROM orders WHERE qty NOT BETWEEN 1 AND 2", plan.ReasonShadowed)
	f("=", "SELECT id FROM orders WHERE qty BETWEEN 1 AND 2", "")
	f("~~", "SELECT id FROM orders WHERE kind LIKE 'a'", plan.ReasonShadowed)
	f("date_trunc", "SELECT date_trunc('day', at) FROM orders", plan.ReasonShadowed)
	f("extract", "SELECT extract(year FROM at) FROM orders", "") // SQL syntax means pg_catalog's
	f("::", "SELECT id FROM orders WHERE qty > 1", plan.ReasonShadowed)
}

func TestDeclaredParameters(t *testing.T) {
	cat := testCatalog(t)
	f := func(sql string, oids []uint32, want string) {
		t.Helper()
		got := formatStatement(Plan(syntax.Parse(sql), oids, cat))
		if !strings.Contains(got, want) {
			t.Errorf("%s %v\n got:\n%swant: %s", sql, oids, got, want)
		}
	}
	f("SELECT id FROM orders WHERE qty = $1", []uint32{sqltype.OIDInt8}, "$1: bigint")
	f("SELECT id FROM orders WHERE qty = $1", []uint32{0}, "$1: integer")
	f("SELECT id FROM orders WHERE qty = $1", []uint32{sqltype.OIDUnknown}, "$1: integer")
	f("SELECT id FROM orders WHERE qty = $1 AND big = $1", []uint32{sqltype.OIDInt4}, "$1: integer")
	f("SELECT id FROM orders WHERE amount > $1", []uint32{sqltype.OIDNumeric}, "$1: numeric.2")
	f("SELECT id FROM orders WHERE qty > $1", []uint32{sqltype.OIDNumeric}, "$1: numeric.0")
	f("SELECT id FROM orders WHERE amount > $1", []uint32{sqltype.OIDFloat8}, "filter: >(cast:double precision(t0.amount), $1)")
	f("SELECT id FROM orders WHERE amount > $1", []uint32{sqltype.OIDInt4}, "filter: >(t0.amount, cast:numeric.2($1))")
	f("SELECT id FROM orders WHERE amount > $1 AND rate > $1", []uint32{sqltype.OIDNumeric}, "forward: unsupported type")
	f("SELECT amount + $1 FROM orders", []uint32{sqltype.OIDNumeric}, "forward: parameter")
	f("SELECT id FROM orders WHERE kind = $1", []uint32{sqltype.OIDVarchar}, "filter: =(t0.kind, $1)")
	f("SELECT id FROM orders WHERE day >= $1", []uint32{sqltype.OIDTimestamp}, "filter: >=(cast:timestamp(t0.day), $1)")
	f("SELECT id FROM orders WHERE qty = $1", []uint32{600}, "forward: unsupported type") // point
	f("SELECT id FROM orders WHERE qty = 1", []uint32{0}, "forward: parameter: type of $1")
	f("SELECT id FROM orders WHERE qty = 1", []uint32{600}, "forward: parameter: type of $1")
	f("SELECT id FROM orders WHERE qty = $2", []uint32{sqltype.OIDInt4}, "$2: integer")
	f("SELECT id FROM orders WHERE qty = $2", nil, "forward: parameter: type of $1")
	f("SELECT id FROM orders WHERE qty = $70000", nil, "forward: parameter")
}

func TestSmall(t *testing.T) {
	cat := testCatalog(t)
	f := func(sql, want string) {
		t.Helper()
		st := Plan(syntax.Parse(sql), nil, cat)
		got := ""
		if st.Small != nil {
			detail, ok := strings.CutSuffix(st.Small.Detail, "; SET pgaccel.mode = 'force' takes it all the same")
			if got = detail; !ok {
				t.Errorf("%s: %q does not say what to do", sql, detail)
			}
			if st.Small.Reason != plan.ReasonSmall {
				t.Errorf("%s: reason %q", sql, st.Small.Reason)
			}
		}
		if st.Star == nil || got != want {
			t.Errorf("%s: %q, want %q (%v)", sql, got, want, st.Forward)
		}
	}
	f("SELECT count(*) FROM regions", "few rows, which the server reads as fast")
	f("SELECT count(*) FROM orders WHERE id = 5", "one row by a unique key, which an index of the server finds as fast")
	f("SELECT count(*) FROM orders WHERE 5 = id AND qty = 1", "one row by a unique key, which an index of the server finds as fast")
	f("SELECT count(*) FROM shops WHERE id = 1", "")
	f("SELECT count(*) FROM shops WHERE id = 1 AND lang = 'a'", "one row by a unique key, which an index of the server finds as fast")
	f("SELECT title FROM shops WHERE id = 1", "rows by a column that an index of the server begins with")
	f("SELECT id FROM orders WHERE day = '2024-01-01'", "rows by a column that an index of the server begins with")
	f("SELECT id FROM orders WHERE day > '2024-01-01'", "")
	f("SELECT id FROM orders WHERE shop_id = 1", "")
	f("SELECT sum(qty) FROM orders WHERE day = '2024-01-01'", "")
	f("SELECT id FROM orders", "rows as they come, of which sending is most of the work")
	f("SELECT id FROM orders ORDER BY qty", "")
	cat.Lookup("", "regions")[0].Rows = smallRows
	f("SELECT count(*) FROM regions", "")
}

func TestUnqualifiedNamePrefersPublic(t *testing.T) {
	column := []catalog.Column{{Name: "a", AttNum: 1, Type: vector.TypeOf(vector.Int4)}}
	cat := &catalog.Catalog{Tables: []*catalog.Table{
		{OID: 1, Schema: "archive", Name: "t", Columns: column}, {OID: 2, Schema: "public", Name: "t", Columns: column},
		{OID: 3, Schema: "other", Name: "u", Columns: column}}}
	f := func(sql string, oid uint32, ref string) {
		t.Helper()
		st := Plan(syntax.Parse(sql), nil, cat)
		if st.Star == nil || st.Deps.Tables[0].Meta.OID != oid || st.Deps.Tables[0].Ref != ref {
			t.Errorf("%s: %s", sql, formatStatement(st))
		}
	}
	f("SELECT a FROM t", 2, `"t"`)
	f("SELECT a FROM archive.t", 1, `"archive"."t"`)
	f("SELECT a FROM u", 3, `"u"`)
	f(`SELECT "t".a FROM "archive"."t"`, 1, `"archive"."t"`)
}

// Exponential and deep statements must end quickly, with a reason.
func TestHostileStatements(t *testing.T) {
	cat := testCatalog(t)
	f := func(sql string, want plan.Reason) {
		t.Helper()
		text := syntax.Parse(sql)
		st := Plan(text, nil, cat)
		if st.Forward == nil || st.Forward.Reason != want {
			t.Errorf("%.60s...: %.200s", sql, formatStatement(st))
		}
		if shape, _ := text.Normalize(-1); (shape == "<unparsable>") != (want == plan.ReasonNotSelect) {
			t.Errorf("%.60s...: shape %.60s", sql, shape)
		}
		text.Split()
		text.RewriteVirtual(0, func(string, int) (string, bool) { return "SELECT 1", true })
	}
	nested := func(open, inner, close string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(close, n)
	}
	f("SELECT "+nested("nullif(", "qty", ", 1)", 100)+" FROM orders", plan.ReasonShape)
	f("SELECT 1 FROM orders WHERE "+nested("(", "paid", " BETWEEN false AND true)", 100), plan.ReasonShape)
	f("SELECT qty"+strings.Repeat(" + qty", 100000)+" FROM orders", plan.ReasonNotSelect)
	f("SELECT 1 FROM orders"+strings.Repeat(" UNION SELECT 1, 2 FROM orders", 20000), plan.ReasonNotSelect)
	f("SELECT "+nested("(", "qty", ")", 100000)+" FROM orders", plan.ReasonNotSelect)
	f("SELECT "+nested("(SELECT ", "1", ")", 3000)+" FROM orders", plan.ReasonNotSelect)
	f("SELECT "+nested("CASE WHEN paid THEN ", "1", " END", 20000)+" FROM orders", plan.ReasonNotSelect)
	f("SELECT qty"+strings.Repeat("::int", 50000)+" FROM orders", plan.ReasonNotSelect)
	f("SELECT "+nested("ARRAY[", "1", "]", 20000)+" FROM orders", plan.ReasonNotSelect)
	f("SELECT 1 FROM orders"+strings.Repeat(" JOIN orders ON true", 20000), plan.ReasonNotSelect)
	f("SELECT 1 FROM orders WHERE "+strings.Repeat("NOT ", 50000)+"paid", plan.ReasonNotSelect)
	f("SELECT 1 FROM orders"+strings.Repeat(", orders", 70), plan.ReasonShape)
	doubled := "WITH w0 AS (SELECT %s)"
	for i := range 40 {
		doubled += fmt.Sprintf(", w%d AS NOT MATERIALIZED (SELECT a.x FROM w%d a, w%d b)", i+1, i, i)
	}
	f(fmt.Sprintf(doubled, "1 AS x")+" SELECT x FROM w40", plan.ReasonShape)
	f(fmt.Sprintf(doubled, "id AS x FROM orders")+" SELECT x FROM w40", plan.ReasonShape)
	f(fmt.Sprintf(doubled, "random() AS x")+" SELECT x FROM w40", plan.ReasonVolatile)
	f("SELECT id FROM orders\x00 WHERE qty = 1", plan.ReasonNotSelect)
	f("SELECT '\xff' FROM orders", plan.ReasonNotSelect)
}

// What is long but flat is planned: IN lists of thousands, many outputs.
func TestLongStatements(t *testing.T) {
	cat := testCatalog(t)
	var ints, strs []string
	for i := range 20000 {
		ints = append(ints, fmt.Sprint(i))
		strs = append(strs, fmt.Sprintf("'v%d'", -i))
	}
	f := func(sql string) {
		t.Helper()
		if st := Plan(syntax.Parse(sql), nil, cat); st.Star == nil {
			t.Errorf("%.60s...: %v", sql, st.Forward)
		}
	}
	f("SELECT count(*) FROM orders WHERE qty IN (" + strings.Join(ints, ", ") + ")")
	f("SELECT count(*) FROM orders WHERE qty NOT IN (-" + strings.Join(ints, ", -") + ")")
	f("SELECT count(*) FROM orders WHERE status IN (" + strings.Join(strs, ", ") + ")")
	f("SELECT sum(qty + " + strings.Join(ints[:1600], "), sum(qty + ") + ") FROM orders")
	f("SELECT count(*) FROM orders WHERE qty = " + strings.Join(ints[:800], " OR qty = "))
}

// FuzzPlan: no text makes Plan panic or take a query that is not bound to the
// catalog.
func FuzzPlan(f *testing.F) {
	trees, _ := filepath.Glob("testdata/trees/*.txt")
	for _, name := range append(trees, "testdata/select.txt", "testdata/bi.txt", "testdata/ssb.txt") {
		for _, block := range strings.Split(readText(f, name), "\n\n") {
			sql, _, _ := strings.Cut(block, "\n----")
			f.Add(sql)
		}
	}
	for _, name := range []string{"testdata/expressions.sql", "testdata/aggregates.sql"} {
		for _, e := range strings.Split(readText(f, name), "\n") {
			f.Add("SELECT " + e + " FROM orders WHERE (" + e + ") IS NOT NULL GROUP BY 1 HAVING (" + e + ") = 1")
		}
	}
	// The same refusal met twice: what is joined is not there the second time either.
	for _, sql := range []string{
		"WITH u AS (WITH w AS (SELECT id FROM orders) SELECT id FROM orders), t AS (SELECT o.id FROM orders o JOIN u ON o.id = u.id) SELECT count(*) FROM u JOIN t ON u.id = t.id",
		"WITH t AS (WITH w AS (SELECT id FROM orders) SELECT id FROM orders) SELECT count(*) FROM t JOIN (orders u JOIN t t2 ON u.id = t2.id) ON t.id = u.id",
		"with t as not materialized (with t as (select) select k1 from t), u as (select from (t join t on 20)) select from (shops s1 join u on b1.id) join u on u.id",
	} {
		f.Add(sql)
	}
	cat := testCatalog(f)
	f.Fuzz(func(t *testing.T, sql string) {
		text := syntax.Parse(sql)
		st := Plan(text, nil, cat)
		if (st.Star == nil) == (st.Forward == nil) {
			t.Fatal("neither or both of Query and Forward")
		}
		if st.Forward != nil {
			if st.Forward.Reason == plan.ReasonInternalError {
				t.Fatalf("%s", st.Forward.Detail)
			}
		}
		checkPlan(t, st)
		text.Split()
		text.Normalize(0, len(sql))
	})
}

// TestOtherEncoding: how long text is, and what LIKE takes for a character, depends on the
// server's encoding.
func TestOtherEncoding(t *testing.T) {
	cat := *testCatalog(t)
	for _, sql := range []string{"SELECT id FROM orders WHERE id < octet_length('a')", "SELECT id FROM orders WHERE 'a' LIKE '_'", "SELECT id, extract(year FROM at) FROM orders"} {
		for _, cat.OtherEncoding = range []bool{false, true} {
			if st := Plan(syntax.Parse(sql), nil, &cat); (st.Star != nil) == (cat.OtherEncoding && !strings.Contains(sql, "extract")) {
				t.Errorf("%s, encoding other than UTF8 %v: %v", sql, cat.OtherEncoding, st.Forward)
			}
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	cat := testCatalog(b)
	sql, _, _ := strings.Cut(strings.Split(readText(b, "testdata/ssb.txt"), "\n\n")[13], "\n----")
	for b.Loop() {
		if st := Plan(syntax.Parse(sql), nil, cat); st.Star == nil {
			b.Fatal(st.Forward)
		}
	}
}
