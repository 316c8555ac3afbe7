package pushdown

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgaccel/plan"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// Each WITH query reads the one before it twice: PostgreSQL plans each once, and so does this, but a walk over the
// tree would see 2^100 operators.
func TestSharedTwice(t *testing.T) {
	cat := testCatalog(t)
	for _, step := range []string{
		"SELECT x.k, x.n FROM before x JOIN before y ON x.k = y.k",
		"SELECT k, (SELECT max(n) FROM before) AS n FROM before",
		"SELECT k, n FROM before WHERE k IN (SELECT k FROM before)",
		"SELECT k, n FROM before UNION ALL SELECT k, n FROM before",
		"SELECT k, n FROM before EXCEPT SELECT k, n FROM before",
		"SELECT k, x.n FROM before x FULL JOIN before y USING (k)",
		"SELECT k, n FROM before x WHERE n < (SELECT avg(n) FROM before y WHERE y.k < x.k)",
	} {
		sql := func(levels int) string {
			var b strings.Builder
			b.WriteString("WITH w0 AS (SELECT qty AS k, count(*) AS n FROM orders GROUP BY qty)")
			for i := range levels {
				fmt.Fprintf(&b, ", w%d AS (%s)", i+1, strings.ReplaceAll(step, "before", fmt.Sprintf("w%d", i)))
			}
			fmt.Fprintf(&b, " SELECT count(*) FROM w%d", levels)
			return b.String()
		}
		if st := Plan(syntax.Parse(sql(3)), nil, cat); st.Star == nil {
			t.Errorf("%s, 3 times: refused: %v", step, st.Forward)
		}
		st := Plan(syntax.Parse(sql(100)), nil, cat)
		if st.Forward == nil || st.Forward.Reason != plan.ReasonShape || st.Forward.Detail != "a query of this size" {
			t.Errorf("%s, 100 times: %v", step, st.Forward)
		}
	}
}

// foldableReference is foldable, as eval_const_expressions goes down an expression.
func foldableReference(e plan.Expr) bool {
	c, ok := e.(*plan.Call)
	if !readsRows(e) || !ok {
		return !readsRows(e)
	}
	switch c.Op {
	case plan.OpCoalesce:
		return foldableReference(c.Args[0])
	case plan.OpCase:
		for i := 0; i+1 < len(c.Args); i += 2 {
			if foldableReference(c.Args[i]) {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(c.Args, func(x plan.Expr) bool {
		if k, ok := x.(plan.Const); ok {
			return k.Null
		}
		if _, ok := x.(plan.ServerConst); ok {
			return false
		}
		return foldableReference(x)
	})
}

func TestFoldable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var random func(depth int) plan.Expr
	random = func(depth int) plan.Expr {
		if depth == 0 || rng.IntN(4) == 0 {
			return []plan.Expr{plan.Column{}, plan.ServerConst{}, plan.Const{}, plan.Const{Datum: vector.Datum{Null: true}}}[rng.IntN(4)]
		}
		c := &plan.Call{Op: []plan.Op{plan.OpCoalesce, plan.OpCase, plan.OpAdd, plan.OpNot}[rng.IntN(4)]}
		for range 1 + rng.IntN(4) {
			c.Args = append(c.Args, random(depth-1))
		}
		return c
	}
	answers := map[bool]int{}
	for range 20_000 {
		e := random(1 + rng.IntN(4))
		want := foldableReference(e)
		if foldable(e) != want {
			t.Fatalf("%#v: foldable is %v", e, !want)
		}
		if readsRows(e) {
			answers[want]++
		}
	}
	if answers[true] < 100 || answers[false] < 100 {
		t.Errorf("of those that read rows: %v", answers)
	}
}

// A chain of operators is as deep as it is long, which the parser allows up to a thousand or so.
func TestLongChain(t *testing.T) {
	if st := Plan(syntax.Parse("SELECT "+strings.Repeat("qty + ", 900)+"qty FROM orders"), nil, testCatalog(t)); st.Star == nil {
		t.Errorf("refused: %v", st.Forward)
	}
}
