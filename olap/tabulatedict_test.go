package olap

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// textConditions are expressions over one column of text.
func textConditions(leaf plan.Column) []*plan.Call {
	text := func(s string) plan.Expr {
		return plan.Const{Datum: vector.Datum{Type: leaf.T, Str: s}}
	}
	null := plan.Const{Datum: vector.Null(leaf.T)}
	boolean := func(op plan.Op, args ...plan.Expr) *plan.Call { return call(op, vector.Bool, args...) }
	like := func(p string, insensitive bool) *plan.Call {
		c := boolean(plan.OpLike, leaf, text(p))
		c.Insensitive = insensitive
		return c
	}
	var substring *sqlfn.Function
	for i, f := range sqlfn.All() {
		if f.Name == "substring" && len(f.Args) == 3 {
			substring = &sqlfn.All()[i]
		}
	}
	sub := functionCall(substring, leaf, integer(2), integer(2))
	fails := functionCall(substring, leaf, integer(1), integer(-1))
	sub.T.Collation, fails.T.Collation = leaf.T.Collation, leaf.T.Collation
	char := plan.Column{T: textType(vector.BPChar, collC, 12+4)} // the same strings: env does not look
	plain := &plan.Call{Op: plan.OpCast, T: leaf.T, Args: []plan.Expr{char}}
	trimmed := functionCall(substring, plain, integer(1), integer(3))
	nested := functionCall(substring, sub, integer(2), integer(1))
	trimmed.T.Collation, nested.T.Collation = leaf.T.Collation, leaf.T.Collation
	in := boolean(plan.OpIn, sub, text("ab"), text("é/"), text("aa"))
	many := boolean(plan.OpIn, leaf)
	for i := range 20 {
		many.Args = append(many.Args, text(strings.Repeat("a", i)))
	}
	return []*plan.Call{
		like("%a%b%", false), like("a%", false), like("%a_b%", false), like("%A%", true), like(`%\`, false),
		boolean(plan.OpNot, like("%b%é%", false)),
		boolean(plan.OpEq, leaf, text("ab")), boolean(plan.OpNe, sub, text("ab")), boolean(plan.OpEq, leaf, null),
		in, many, boolean(plan.OpIn, leaf, text("ab"), null), boolean(plan.OpLt, leaf, text("b")),
		boolean(plan.OpAnd, like("%a%", false), boolean(plan.OpNot, in)),
		boolean(plan.OpOr, in, like(`a\`, false), boolean(plan.OpEq, fails, text("a"))),
		boolean(plan.OpAnd, in, like(`a\`, false)),
		trimmed, nested, boolean(plan.OpIn, trimmed, text("ab"), text("a ")), boolean(plan.OpNe, nested, text("a")),
		boolean(plan.OpEq, plain, text("a")), boolean(plan.OpEq, functionCall(substring, fails, integer(1), integer(1)), text("a")),
		boolean(plan.OpDistinct, leaf, text("ab")),
		sub, fails,
		functionCall(sqlfn.ByOID(1317), leaf), // length
		{Op: plan.OpCoalesce, T: leaf.T, Args: []plan.Expr{leaf, text("none")}},
	}
}

func randomTexts(r *rand.Rand, n int) []string {
	letters := []rune("abAB/é€\U0001f600  ")
	seen := map[string]bool{}
	for len(seen) < n {
		s := make([]rune, r.IntN(12))
		for i := range s {
			s[i] = letters[r.IntN(len(letters))]
		}
		seen[string(s)] = true
	}
	list := make([]string, 0, n)
	for s := range seen {
		list = append(list, s)
	}
	slices.Sort(list)
	r.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func TestTextTest(t *testing.T) {
	leaf := plan.Column{T: textType(vector.Text, collC, -1)}
	r := rand.New(rand.NewPCG(5, 5))
	texts := randomTexts(r, 400)
	prepared := 0
	var now vector.Value
	v := &env{leaf: func(plan.Expr) (vector.Value, error) { return now, nil }}
	for i, e := range textConditions(leaf) {
		test := prepareTest(e)
		if test == nil {
			continue
		}
		prepared++
		for _, s := range texts {
			now = vector.Value{Str: s}
			want, wantErr := v.eval(e)
			got, err := test(s)
			if (err != nil) != (wantErr != nil) || err == nil && got.value() != want {
				t.Fatalf("condition %d of %q: %v, %v instead of %v, %v", i, s, got, err, want, wantErr)
			}
		}
	}
	if prepared < 17 {
		t.Errorf("%d conditions are prepared", prepared)
	}
}

func TestTabulateDict(t *testing.T) {
	leaf := plan.Column{T: textType(vector.Text, collC, -1)}
	r := rand.New(rand.NewPCG(6, 6))
	all := randomTexts(r, 3*dictPiece+1)
	p := &pipeline{x: &execution{opt: Options{Workers: 3}, memory: new(atomic.Int64), room: 1 << 40}}
	for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, dictPiece - 1, dictPiece, dictPiece + 1,
		2*dictPiece - 1, 2 * dictPiece, 2*dictPiece + 1, 3*dictPiece + 1} {
		for i, e := range textConditions(leaf) {
			for _, nullable := range []bool{false, true} {
				c := &compiler{p: p}
				arg := &node{t: leaf.T, dict: listDict(all[:n], leaf.T), hi: int64(max(n-1, 0)), nullable: nullable}
				var now vector.Value
				v := &env{leaf: func(plan.Expr) (vector.Value, error) { return now, nil }, dicts: []*dict{arg.dict}}
				want, err := c.tabulateOver(arg, e.T, func(x vector.Value) (vector.Value, error) {
					now = x
					return v.eval(e)
				})
				if err != nil {
					t.Fatal(err)
				}
				got, err := c.tabulateDict(arg, e)
				if err != nil {
					t.Fatal(err)
				}
				if !got.nullable && (slices.Contains(got.tab.Nulls, 1) || got.tab.OnNullNull) {
					t.Fatalf("condition %d over %d strings is never null", i, n)
				}
				if g, w := tableText(got), tableText(want); g != w {
					t.Fatalf("condition %d over %d strings, nullable %v:\n%.400s\ninstead of\n%.400s", i, n, nullable, g, w)
				}
			}
		}
	}
}

// TestEncodedLike compares LIKE over strings as the dictionary has encoded them with LIKE over the
// strings.
func TestEncodedLike(t *testing.T) {
	leaf := plan.Column{T: textType(vector.Text, collC, -1)}
	meta := &catalog.Table{OID: 7, Name: "texts", Columns: []catalog.Column{{Name: "s", Type: leaf.T}}}
	r := rand.New(rand.NewPCG(8, 8))
	p := &pipeline{x: &execution{opt: Options{Workers: 3}, memory: new(atomic.Int64), room: 1 << 40}}
	sizes := []int{2*dictPiece - 1, 2 * dictPiece, 2*dictPiece + 1, 3*dictPiece + 1}
	if testing.Short() {
		sizes = sizes[2:3]
	}
	for _, n := range sizes {
		var rows [][]vector.Datum
		for i, s := range randomTexts(r, n) {
			rows = append(rows, []vector.Datum{{Type: leaf.T, Str: strings.Repeat(s, i%3) + "carefully final deposits " + s}})
		}
		d := columnDict(load(t, newStore(t, 1<<16), meta, rows).Dicts[0], leaf.T)
		for _, pattern := range []string{"%a%b%", "carefully%", "%carefully%a", "a%b", "%", "%%", "%é%", `%\%%`, "%€ %depo%", "a%", "%😀"} {
			for _, not := range []bool{false, true} {
				e := call(plan.OpLike, vector.Bool, leaf, plan.Const{Datum: vector.Datum{Type: leaf.T, Str: pattern}})
				if not {
					e = call(plan.OpNot, vector.Bool, e)
				}
				if newEncodedLike(e, d) == nil {
					t.Fatalf("%q is not matched as it is encoded", pattern)
				}
				arg := &node{t: leaf.T, dict: d, hi: int64(d.n - 1)}
				got, err := (&compiler{p: p}).tabulateDict(arg, e)
				if err != nil {
					t.Fatal(err)
				}
				var want piece
				values := make([]int64, d.n)
				want.fillTruths(d, prepareTest(e), values)
				if !slices.Equal(got.tab.Values, values) || got.lo != want.lo || got.hi != want.hi {
					t.Fatalf("%q over %d strings, not %v: other values, or %d..%d instead of %d..%d", pattern, d.n, not, got.lo, got.hi, want.lo, want.hi)
				}
			}
		}
		for _, pattern := range []string{"a_%", "a", `%a\`} {
			if newEncodedLike(call(plan.OpLike, vector.Bool, leaf, plan.Const{Datum: vector.Datum{Type: leaf.T, Str: pattern}}), d) != nil {
				t.Errorf("%q is matched as it is encoded", pattern)
			}
		}
	}
}

// tableText is all of a nodeTable.
func tableText(n *node) string {
	var list []string
	if n.dict != nil {
		for code := range int64(n.dict.n) {
			list = append(list, n.dict.at(code))
		}
	}
	failed := n.tab.err != nil
	for i, fault := range n.tab.Faults { // whether it is null, too, says nothing
		if fault != 0 && n.tab.Nulls != nil {
			n.tab.Nulls[i] = 0
		}
	}
	if !slices.Contains(n.tab.Nulls, 1) {
		n.tab.Nulls = nil
	}
	return fmt.Sprintf("[%d, %d] risky %v failed %v %q %+v", n.lo, n.hi, n.risky, failed, list, n.tab.TableData)
}

func BenchmarkTabulateDict(b *testing.B) {
	leaf := plan.Column{T: textType(vector.Text, collC, -1)}
	r := rand.New(rand.NewPCG(7, 7))
	words := []string{"carefully", "special", "requests", "deposits", "furiously", "accounts", "final", "packages", "sleep"}
	list := make([]string, 1<<17)
	for i := range list {
		var s []string
		for range 6 {
			s = append(s, words[r.IntN(len(words))])
		}
		list[i] = fmt.Sprint(strings.Join(s, " "), i)
	}
	p := &pipeline{x: &execution{opt: Options{Workers: 1}, memory: new(atomic.Int64), room: 1 << 40}}
	c := &compiler{p: p}
	arg := &node{t: leaf.T, dict: listDict(list, leaf.T), hi: int64(len(list) - 1)}
	like := call(plan.OpLike, vector.Bool, leaf, plan.Const{Datum: vector.Datum{Type: leaf.T, Str: "%special%requests%"}})
	not := call(plan.OpNot, vector.Bool, like)
	per := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(list)), "ns/string")
	}
	b.Run("plain", func(b *testing.B) {
		var now vector.Value
		v := &env{leaf: func(plan.Expr) (vector.Value, error) { return now, nil }}
		for b.Loop() {
			if _, err := c.tabulateOver(arg, not.T, func(x vector.Value) (vector.Value, error) {
				now = x
				return v.eval(not)
			}); err != nil {
				b.Fatal(err)
			}
		}
		per(b)
	})
	b.Run("pieces", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.tabulateDict(arg, not); err != nil {
				b.Fatal(err)
			}
		}
		per(b)
	})
}

// TestUnion unites dictionaries: one has all strings of the other, or not.
func TestUnion(t *testing.T) {
	text := vector.TypeOf(vector.Text)
	text.Collation = vector.Collation{OID: 950, Deterministic: true, C: true}
	for _, more := range [][]string{{""}, {"b", "a"}, {"aa"}, {"", "zz", "b"}, {}} {
		list := []string{"b", "", "c", "a"}
		c := &compiler{}
		of := func(list []string) *node {
			return &node{kind: nodeColumn, t: text, dict: listDict(list, text), hi: int64(max(len(list)-1, 0))}
		}
		n := &node{t: text, args: []*node{of(list), of(more)}}
		if err := c.unite(n, []int{0, 1}); err != nil {
			t.Fatal(err)
		}
		ranks, err := n.dict.rank(text.Collation)
		if err != nil {
			t.Fatal(err)
		}
		code := func(arm, k int) int64 {
			if a := n.args[arm]; a.kind == nodeTable {
				return a.tab.Values[k]
			}
			return int64(k)
		}
		for i, a := range list {
			if got := n.dict.at(code(0, i)); got != a {
				t.Errorf("%q and %q: %q is %q", list, more, a, got)
			}
			for k, b := range more {
				if got := n.dict.at(code(1, k)); got != b {
					t.Errorf("%q and %q: %q is %q", list, more, b, got)
				}
				if got, want := cmp.Compare(ranks[code(0, i)], ranks[code(1, k)]), strings.Compare(a, b); got != want {
					t.Errorf("%q and %q: ranks of %q and %q compare as %d", list, more, a, b, got)
				}
			}
		}
	}
}
