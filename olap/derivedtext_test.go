package olap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/vector"
)

// TestDerivedText compares expressions computed of a function's few results with the same computed of
// each string.
func TestDerivedText(t *testing.T) {
	leaf := plan.Column{T: textType(vector.Text, collC, -1)}
	meta := &catalog.Table{OID: 7, Name: "texts", Columns: []catalog.Column{{Name: "s", Type: leaf.T}}}
	r := rand.New(rand.NewPCG(9, 9))
	for _, n := range []int{1, 63, 64, 127, 128, 129, 511, 512, 513, dictPiece + 1, 2*dictPiece + 1} {
		var rows [][]vector.Datum
		for i, s := range randomTexts(r, n) {
			rows = append(rows, []vector.Datum{{Type: leaf.T, Str: fmt.Sprintf("a%c/%d %s", "abé"[i%2], i%3, strings.Repeat(s, i%2))}})
		}
		d := columnDict(load(t, newStore(t, 1<<16), meta, rows).Dicts[0], leaf.T)
		nested := 0
		for i, e := range textConditions(leaf) {
			for _, nullable := range []bool{false, true} {
				p := &pipeline{x: &execution{opt: Options{Workers: 3, Eager: true, derived: &derivedTexts{}}, memory: new(atomic.Int64), room: 1 << 40}}
				c := &compiler{p: p}
				leaf := leaf
				plan.Walk(e, func(x plan.Expr) bool {
					if col, ok := x.(plan.Column); ok {
						leaf = col // of char(n), some of them
					}
					return true
				})
				arg := &node{t: leaf.T, dict: d, hi: int64(d.n - 1), nullable: nullable}
				want, err := c.tabulateDict(arg, e)
				if err != nil {
					t.Fatal(err)
				}
				got, err := c.overDerived(e, leaf, arg)
				if err != nil {
					t.Fatal(err)
				}
				if got == nil {
					continue
				}
				nested++
				for code := int64(-1); code < int64(d.n); code++ {
					if code < 0 && !nullable {
						continue
					}
					g, w := valueAt(got, code), valueAt(want, code)
					if g != w {
						t.Fatalf("condition %d of %d strings, nullable %v: %q is %s instead of %s", i, d.n, nullable, at(d, code), g, w)
					}
				}
				if got.lo > got.hi || got.nullable != want.nullable {
					t.Fatalf("condition %d of %d strings: [%d, %d], nullable %v", i, d.n, got.lo, got.hi, got.nullable)
				}
				again, err := c.overDerived(e, leaf, arg)
				if err != nil || again == nil || again.args[0].tab != got.args[0].tab || again.args[0].dict == got.args[0].dict {
					t.Fatalf("condition %d: its function is computed anew, or its dictionary is shared (%v)", i, err)
				}
			}
		}
		if nested < 8 {
			t.Errorf("%d conditions of %d strings are computed of a function's results", nested, n)
		}
	}
}

func at(d *dict, code int64) string {
	if code < 0 {
		return "null"
	}
	return d.at(code)
}

// valueAt is the value that tables over tables have for a code, as text; that of null for -1.
func valueAt(n *node, code int64) string {
	if n.kind != nodeTable {
		if code < 0 {
			return "null"
		}
		return fmt.Sprint(code)
	}
	s := valueAt(n.args[0], code)
	var v int64
	switch {
	case s == "fault":
		return s
	case s == "null" && n.tab.OnNullNull:
		return s
	case s == "null" && n.tab.OnNullFault:
		return "fault"
	case s == "null":
		v = n.tab.OnNull
	default:
		if n.args[0].dict != nil && n.args[0].kind == nodeTable {
			for v = 0; n.args[0].dict.at(v) != s; v++ {
			}
		} else {
			fmt.Sscan(s, &v)
		}
		switch i := v - n.tab.Lo; {
		case n.tab.Faults != nil && n.tab.Faults[i] != 0:
			return "fault"
		case n.tab.Nulls != nil && n.tab.Nulls[i] != 0:
			return "null"
		default:
			v = n.tab.Values[i]
		}
	}
	if n.dict != nil {
		return n.dict.at(v)
	}
	return fmt.Sprint(v)
}
