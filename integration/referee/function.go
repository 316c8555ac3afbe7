package referee

import (
	"math"
	"slices"
	"strings"
	"sync"

	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// function calls a function of the table with a result of the kind, nil where none was
// found.
func (g *gen) function(k kind, depth int) *node {
	all := sqlfn.All()
	if g.chance(40) { // what the tables have columns for
		if cols := g.columns(func(*column) bool { return true }); len(cols) > 0 {
			if of := functionsOf()[[2]kind{k, pick(g.r, cols...).t.kind}]; len(of) > 0 {
				all = of
			}
		}
	}
	if len(g.prefer) > 0 && g.chance(50) {
		all = g.prefer
	}
	for range 30 {
		f := &all[g.r.IntN(len(all))]
		if kind(f.Result) != k {
			continue
		}
		return g.apply(f, func(k kind) *node {
			a := g.of(k, min(depth, 1))
			if a.lit != nil && a.lit.form == open || !tame(a) && !g.reckless {
				return nil
			}
			return a
		})
	}
	return nil
}

// functionsOf are those with a result of a kind that take another: [2]kind{result, argument}.
var functionsOf = sync.OnceValue(func() map[[2]kind][]sqlfn.Function {
	found := map[[2]kind][]sqlfn.Function{}
	for _, f := range sqlfn.All() {
		seen := map[kind]bool{}
		for _, p := range f.Args {
			if k := kind(p.Kind); !seen[k] {
				seen[k] = true
				found[[2]kind{kind(f.Result), k}] = append(found[[2]kind{kind(f.Result), k}], f)
			}
		}
	}
	return found
})

// functionOf calls some function that takes a, nil where there is none.
func (g *gen) functionOf(a *node) *node {
	var found []*sqlfn.Function
	all := sqlfn.All()
	for i := range all {
		if slices.ContainsFunc(all[i].Args, func(p sqlfn.Param) bool { return p.Constants == nil && kind(p.Kind) == a.t.kind }) {
			found = append(found, &all[i])
		}
	}
	if len(found) == 0 {
		return nil
	}
	return g.apply(pick(g.r, found...), func(k kind) *node {
		if k == a.t.kind {
			return a
		}
		return g.of(k, 0)
	})
}

// apply calls f with arguments that arg returns by their kinds; nil where it has none. A
// function that is Partial gets a constant that it takes.
func (g *gen) apply(f *sqlfn.Function, arg func(kind) *node) *node {
	site := sqlfn.Call{Args: make([]sqlfn.Arg, len(f.Args))}
	forms, args := make([]string, len(f.Args)), []*node(nil)
	for i, p := range f.Args {
		site.Args[i].Type = vector.TypeOf(p.Kind)
		switch {
		case p.Constants != nil:
			c := pick(g.r, p.Constants...)
			if f.Partial {
				c = p.Constants[0]
			}
			site.Args[i].Const = &vector.Value{Str: c}
			forms[i] = "'" + c + "'"
			if g.chance(20) {
				forms[i] = strings.ToUpper(forms[i])
			}
		case f.Partial && !(g.reckless && g.chance(20)):
			forms[i] = "'" + f.Samples[i][0] + "'"
		case p.Usual != nil && !g.chance(15):
			forms[i] = usual(pick(g.r, p.Usual...), &site.Args[i])
		default:
			a := arg(kind(p.Kind))
			if a == nil || len(args) > 0 && !collationsAgree(args[0].t, a.t) || f.Rounds && a.lit != nil {
				return nil
			}
			site.Args[i].Type.Scale = int16(a.t.scale)
			args, forms[i] = append(args, a), "@"
		}
	}
	return g.resultOf(f, site, forms, args)
}

// concatenation makes text of several values, one of them text.
func (g *gen) concatenation() *node {
	t := typ{kind: text, coll: computed}
	var args []*node
	var forms []string
	variadic := g.chance(35)
	for i := range 2 + g.r.IntN(2) {
		k := pick(g.r, text, text, varchar, char, int4, int8, numeric, date)
		if variadic && g.chance(10) {
			k = boolean
		}
		if i == 0 {
			k = pick(g.r, text, varchar)
		}
		if g.chance(20) {
			forms = append(forms, quote(pick(g.r, ", ", "", " ", "é", "a ")))
			continue
		}
		a := g.leaf(k)
		if variadic && k == char || a == nil {
			a = g.leaf(varchar)
		}
		if a == nil || t.coll != computed && a.t.kind.isText() && !collationsAgree(t, a.t) {
			return nil
		}
		if a.t.kind.isText() && t.coll == computed {
			t.coll = a.t.coll
		}
		args, forms = append(args, a), append(forms, "@")
	}
	switch {
	case variadic && g.chance(30):
		separator := pick(g.r, "', '", "''", "'ä'", "NULL::text")
		return op(t, "concat_ws("+separator+", "+strings.Join(forms, ", ")+")", args...)
	case variadic && g.chance(40):
		format := pick(g.r, "%s", "100%%: %s-", "ä %s") + strings.Repeat(pick(g.r, "%s", ", %s", "-%s%%"), len(forms)-1)
		return op(t, "format("+quote(format)+", "+strings.Join(forms, ", ")+")", args...)
	case variadic:
		return op(t, "concat("+strings.Join(forms, ", ")+")", args...)
	}
	return op(t, "("+strings.Join(forms, " || ")+")", args...)
}

// usual writes a constant that an argument often is.
func usual(c string, a *sqlfn.Arg) string {
	d, ok := sqltype.Of(a.Type.Kind).Parse(c)
	if !ok {
		panic("BUG: a constant that is none: " + c)
	}
	v := d.Value()
	a.Const = &v
	if a.Type.Kind.IsString() {
		return quote(c)
	}
	return c
}

// resultOf makes the node of a call.
func (g *gen) resultOf(f *sqlfn.Function, site sqlfn.Call, forms []string, args []*node) *node {
	t := typ{kind: kind(f.Result), coll: computed}
	if len(args) > 0 && args[0].t.kind.isText() {
		t.coll = args[0].t.coll
	}
	sql := f.Name + "(" + strings.Join(forms, ", ") + ")"
	if f.Name == "extract" { // a keyword
		unit := forms[0]
		if g.chance(85) {
			unit = strings.Trim(unit, "'")
		}
		sql = "extract(" + unit + " FROM " + forms[1] + ")"
	}
	switch {
	case slices.Contains([]string{"time", "interval", "numeric", "bool", "float4", "bit"}, f.Name): // the names of types
		sql = `"` + f.Name + `"(` + strings.Join(forms, ", ") + ")"
	case f.Name == "textcat", f.Name == "byteacat":
		sql = "(" + forms[0] + " || " + forms[1] + ")"
	case f.Name == "position":
		sql = "position((" + forms[1] + ") IN (" + forms[0] + "))"
		slices.Reverse(args)
	}
	n := op(t, sql, args...)
	if t.kind == numeric {
		n.t.scale = int(f.ResultType(site).Scale)
		if f.Digits > 0 {
			n.t.prec = f.Digits + n.t.scale
			n.within(-math.Pow10(f.Digits), math.Pow10(f.Digits))
		}
		if f.Rounds && n.t.scale != varying {
			a := args[0]
			if a.t.prec > 0 && a.t.scale != varying {
				n.t.prec = a.t.prec - a.t.scale + 1 + n.t.scale
			}
			unit := 1.0
			if len(site.Args) > 1 {
				unit = math.Pow10(max(0, -int(site.Args[1].Const.I)))
			}
			n.within(a.lo-unit, a.hi+unit)
		}
	}
	if t.kind.isInt() {
		n.within(t.kind.limits())
	}
	return n
}
