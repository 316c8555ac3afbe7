package olap

import (
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

// TestOrderedDict compares the first characters of strings that are in order, and of some that came later,
// with those of each string by itself.
func TestOrderedDict(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	p := &pipeline{x: &execution{opt: Options{Workers: 3}, memory: new(atomic.Int64), room: 1 << 40}}
	for _, leaf := range []plan.Column{{T: textType(vector.Text, collC, -1)}, {T: textType(vector.Varchar, collC, 40+4)}, {T: textType(vector.BPChar, collC, 30+4)}} {
		text := plan.Expr(leaf)
		if leaf.T.Kind != vector.Text {
			text = &plan.Call{Op: plan.OpCast, T: textType(vector.Text, collC, -1), Args: []plan.Expr{leaf}}
		}
		for _, n := range []int{1, 63, 64, 65, 127, 128, 129, 511, 512, 513, 2*dictPiece - 1, 2 * dictPiece, 2*dictPiece + 1} {
			meta := &catalog.Table{OID: 7, Name: "texts", Columns: []catalog.Column{{Name: "s", Type: leaf.T}}}
			var rows [][]vector.Datum
			for i, s := range randomTexts(r, n) {
				if s = strings.Repeat("é1", i%5) + s; leaf.T.Kind == vector.BPChar {
					s += strings.Repeat(" ", 30-len([]rune(s)))
				}
				rows = append(rows, []vector.Datum{{Type: leaf.T, Str: s}})
			}
			tab := load(t, newStore(t, 1<<16), meta, rows)
			d := columnDict(tab.Dicts[0], leaf.T)
			for _, e := range []*plan.Call{
				functionCall(sqlfn.ByOID(936), text, integer(1), integer(2)), functionCall(sqlfn.ByOID(936), text, integer(-1), integer(3)),
				functionCall(sqlfn.ByOID(877), text, integer(1), integer(0)), functionCall(sqlfn.ByOID(877), text, integer(1), integer(100)),
				functionCall(sqlfn.ByOID(936), text, integer(2), integer(2)), functionCall(sqlfn.ByOID(937), text, integer(3)),
				functionCall(sqlfn.ByOID(3060), text, integer(1)), functionCall(sqlfn.ByOID(3060), text, integer(-1)),
				functionCall(sqlfn.ByOID(3060), text, integer(0)), functionCall(sqlfn.ByOID(3061), text, integer(2)),
			} {
				e.T.Collation = leaf.T.Collation
				form := newEntryForm(e, d, nil)
				what := fmt.Sprintf("%s over %d of %v", e.Func.Name, d.n, leaf.T.Kind)
				// All orders that may be known, the dictionary's own among them.
				for _, ordered := range []int{0, min(70, orderedBy(e, d)), orderedBy(e, d)} {
					got := make([]string, d.n)
					eachResult(d, form.value, 0, d.n, ordered, func(from, to int, r vector.Value, err error) {
						if err != nil {
							t.Fatal(err)
						}
						for i := from; i < to; i++ {
							got[i] = strings.Clone(r.Str)
						}
					})
					for i := range got {
						if want, err := form.value(d.at(int64(i))); err != nil || got[i] != want.Str {
							t.Fatalf("%s: %q of %q instead of %q (%v)", what, got[i], d.at(int64(i)), want.Str, err)
						}
					}
				}
				arg := &node{t: leaf.T, dict: d, hi: int64(max(d.n-1, 0))}
				got, err := (&compiler{p: p}).tabulateDict(arg, e)
				if err != nil {
					t.Fatal(err)
				}
				plain := *arg
				var list []string
				for i := range d.n {
					list = append(list, d.at(int64(i)))
				}
				plain.dict = listDict(list, leaf.T)
				want, err := (&compiler{p: p}).tabulateDict(&plain, e)
				if err != nil {
					t.Fatal(err)
				}
				if g, w := tableText(got), tableText(want); g != w {
					t.Fatalf("%s:\n%.300s\ninstead of\n%.300s", what, g, w)
				}
			}
		}
	}
}

// TestOrderedBy: what is no prefix of the leaf's text has no order.
func TestOrderedBy(t *testing.T) {
	leaf := plan.Column{T: textType(vector.Text, collC, -1)}
	meta := &catalog.Table{OID: 7, Name: "texts", Columns: []catalog.Column{{Name: "s", Type: leaf.T}}}
	var rows [][]vector.Datum
	for i := range 3000 {
		rows = append(rows, []vector.Datum{{Type: leaf.T, Str: fmt.Sprint(i, strings.Repeat("x", i%7))}})
	}
	d := columnDict(load(t, newStore(t, 1<<16), meta, rows).Dicts[0], leaf.T)
	if d.src.Ordered() == 0 {
		t.Fatal("nothing is packed")
	}
	first := functionCall(sqlfn.ByOID(936), leaf, integer(1), integer(2))
	if orderedBy(first, d) != d.src.Ordered() {
		t.Error("the first two characters have no order")
	}
	null := plan.Const{Datum: vector.Null(vector.TypeOf(vector.Int4))}
	for i, e := range []*plan.Call{
		functionCall(sqlfn.ByOID(936), leaf, integer(2), integer(2)), functionCall(sqlfn.ByOID(936), leaf, integer(1), integer(-1)),
		functionCall(sqlfn.ByOID(936), leaf, null, integer(1)), functionCall(sqlfn.ByOID(936), leaf, integer(1), null),
		functionCall(sqlfn.ByOID(3060), leaf, integer(-1)), functionCall(sqlfn.ByOID(3060), leaf, null),
		functionCall(sqlfn.ByOID(936), functionCall(sqlfn.ByOID(3061), leaf, integer(1)), integer(1), integer(1)),
		functionCall(sqlfn.ByOID(3060), leaf, plan.Column{Column: 1, T: vector.TypeOf(vector.Int4)}),
	} {
		if orderedBy(e, d) != 0 {
			t.Errorf("call %d has an order", i)
		}
	}
	codes := slices.Collect(func(yield func(string) bool) {
		for c := range d.src.Ordered() {
			yield(d.at(int64(c)))
		}
	})
	if !slices.IsSorted(codes) {
		t.Error("the strings of the copy are in no order")
	}
}

// TestDecidedDict compares what a part of each string decides, of strings that are in order and of some that came later, with
// what each string by itself has.
func TestDecidedDict(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	p := &pipeline{x: &execution{opt: Options{Workers: 3}, memory: new(atomic.Int64), room: 1 << 40}}
	for _, leaf := range []plan.Column{{T: textType(vector.Text, collC, -1)}, {T: textType(vector.Varchar, collC, 400+4)}} {
		text := plan.Expr(leaf)
		if leaf.T.Kind != vector.Text {
			text = &plan.Call{Op: plan.OpCast, T: textType(vector.Text, collC, -1), Args: []plan.Expr{leaf}}
		}
		for _, n := range []int{1, 63, 64, 65, 127, 128, 129, 511, 512, 513, 2*dictPiece - 1, 2 * dictPiece, 2*dictPiece + 1} {
			meta := &catalog.Table{OID: 7, Name: "texts", Columns: []catalog.Column{{Name: "s", Type: leaf.T}}}
			var rows [][]vector.Datum
			for i, s := range randomTexts(r, n) {
				host := []string{"http://", "https://www.", "https://", ""}[r.IntN(4)] + []string{"navy.example", "blue.example", "b", "żółć.日本語", "navy.example" + strings.Repeat(".x", 100)}[r.IntN(5)]
				if i%3 > 0 {
					s = strings.Repeat("/red", r.IntN(3)) + "/" + s
				}
				rows = append(rows, []vector.Datum{{Type: leaf.T, Str: host + s}})
			}
			d := columnDict(load(t, newStore(t, 1<<16), meta, rows).Dicts[0], leaf.T)
			for _, args := range [][2]string{{`^https?://(www[.])?([^/]+)/.*$`, `\2`}, {`^https?://(?:www\.)?([^/]+)/.*$`, `<\1>`}, {`^(.).*$`, `\1`}, {"^.*$", ""}, {"^(.*)b$", `\1`}} {
				constant := func(s string) plan.Expr {
					return plan.Const{Datum: vector.Datum{Type: textType(vector.Text, collC, -1), Str: s}}
				}
				e := functionCall(sqlfn.ByOID(2284), text, constant(args[0]), constant(args[1]))
				e.T.Collation = leaf.T.Collation
				form := newEntryForm(e, d, nil)
				if form.evalPrefix == nil {
					t.Fatal("no part of a string decides")
				}
				arg := &node{t: leaf.T, dict: d, hi: int64(max(d.n-1, 0))}
				got, err := (&compiler{p: p}).tabulateDict(arg, e)
				if err != nil {
					t.Fatal(err)
				}
				for code := range int64(d.n) {
					if want, err := form.value(d.at(code)); err != nil || got.dict.at(got.tab.Values[code]) != want.Str {
						t.Fatalf("%d strings, %v: %q of %q instead of %q (%v)", d.n, args, got.dict.at(got.tab.Values[code]), d.at(code), want.Str, err)
					}
				}
			}
		}
	}
}
