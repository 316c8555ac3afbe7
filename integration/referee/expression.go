package referee

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"pgaccel/catalog"
	"pgaccel/olap"
	"pgaccel/pushdown"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// shape is a way to make a value of a kind: SQL with ¿N for what is of kind args[N]. What is constant is written in it.
type shape struct {
	text   string
	args   []vector.Kind
	result vector.Kind
}

// forms of expressions beside signatures, of every kind K.
var formsOfKinds = []struct {
	text string
	args []vector.Kind // Invalid is the kind itself
}{
	{"CASE WHEN ¿0 THEN ¿1 ELSE ¿2 END", []vector.Kind{vector.Bool, 0, 0}}, {"CASE WHEN ¿0 THEN ¿1 END", []vector.Kind{vector.Bool, 0}},
	{"CASE ¿0 WHEN ¿1 THEN ¿2 ELSE ¿3 END", []vector.Kind{vector.Int4, vector.Int4, 0, 0}},
	{"COALESCE(¿0, ¿1)", []vector.Kind{0, 0}}, {"NULLIF(¿0, ¿1)", []vector.Kind{0, 0}}, {"GREATEST(¿0, ¿1)", []vector.Kind{0, 0}}, {"LEAST(¿0, ¿1, ¿2)", []vector.Kind{0, 0, 0}},
}

var formsOfConditions = []struct {
	text string
	args []vector.Kind
}{
	{"(¿0 IS NULL)", []vector.Kind{0}}, {"(¿0 IS NOT NULL)", []vector.Kind{0}}, {"(¿0 IS DISTINCT FROM ¿1)", []vector.Kind{0, 0}}, {"(¿0 BETWEEN ¿1 AND ¿2)", []vector.Kind{0, 0, 0}},
	{"(¿0 NOT BETWEEN SYMMETRIC ¿1 AND ¿2)", []vector.Kind{0, 0, 0}}, {"(¿0 IN (¿1, ¿2))", []vector.Kind{0, 0, 0}}, {"(¿0 NOT IN (¿1, ¿2))", []vector.Kind{0, 0, 0}},
}

// expressions makes random expressions over the table of hardTable.
type expressions struct {
	r       *rand.Rand
	cat     *catalog.Catalog
	forms   map[vector.Kind][]shape // by result
	kinds   []vector.Kind           // that have forms or columns
	planned int
}

// hardKinds are the kinds of which hardTable has columns: arrays, too.
func hardKinds() []vector.Kind {
	kinds := vector.Kinds()
	for _, k := range vector.Kinds() {
		if a := vector.ArrayOf(k); a != vector.Invalid {
			kinds = append(kinds, a)
		}
	}
	return kinds
}

// columnName is a column of hardTable: each kind has two.
func columnName(k vector.Kind, n int) string {
	if k.IsArray() {
		return fmt.Sprintf("a%d_%d", k.Element(), n)
	}
	return fmt.Sprintf("k%d_%d", k, n)
}

// typeOfColumn is the type that a column of the table has.
func typeOfColumn(k vector.Kind, n int) string {
	name := sqltype.Of(k.Element()).Name
	switch {
	case k.IsArray():
		return name + "[]"
	case k == vector.Numeric:
		return []string{"numeric(18,4)", "numeric(9,0)"}[n]
	case k == vector.BPChar:
		return []string{"bpchar(8)", "bpchar(3)"}[n]
	case k == vector.Varchar && n > 0:
		return "varchar(5)"
	}
	return name
}

const hardTableName = "rf_hard.t"

// newExpressions reads which signatures are answered, of those that a server has, by planning calls of them.
func newExpressions(seed uint64, list []signature, bytewise bool) *expressions {
	x := &expressions{r: rand.New(rand.NewPCG(seed, 0)), forms: map[vector.Kind][]shape{}}
	t := &catalog.Table{OID: 20000, Schema: "rf_hard", Name: "t", Rows: 1e6}
	t.Columns = []catalog.Column{{Name: "id", AttNum: 1, TypeOID: sqltype.OIDInt4, Type: vector.TypeOf(vector.Int4), NotNull: true}}
	for _, k := range hardKinds() {
		for n := range 2 {
			typ := vector.TypeOf(k)
			switch {
			case k == vector.Numeric:
				typ.Scale, typ.Typmod = int16(4-4*n), []int32{18<<16 | 4 + 4, 9<<16 + 4}[n]
			case k == vector.BPChar:
				typ.Typmod = []int32{12, 7}[n]
			case k == vector.Varchar && n > 0:
				typ.Typmod = 9
			}
			if k.Element().IsText() {
				typ.Collation = vector.Collation{OID: 100, Deterministic: true, C: bytewise}
			}
			t.Columns = append(t.Columns, catalog.Column{Name: columnName(k, n), AttNum: int16(len(t.Columns) + 1), TypeOID: sqltype.OID(k), Type: typ})
		}
	}
	x.cat = &catalog.Catalog{Tables: []*catalog.Table{t}, Shadowed: map[string]bool{}}
	x.kinds = append(hardKinds(), vector.Interval)
	add := func(f shape) {
		if f.result != vector.Invalid && x.answered(f) {
			x.forms[f.result] = append(x.forms[f.result], f)
		}
	}
	for _, s := range list {
		x.addSignature(s, add)
	}
	x.addForms(add)
	return x
}

func (x *expressions) addForms(add func(shape)) {
	of := func(args []vector.Kind, k vector.Kind) []vector.Kind {
		args = slices.Clone(args)
		for i := range args {
			if args[i] == vector.Invalid {
				args[i] = k
			}
		}
		return args
	}
	for _, k := range x.kinds {
		if k.IsArray() {
			i := vector.Int4
			add(shape{"(¿0)[¿1]", []vector.Kind{k, i}, k.Element()})
			add(shape{"(¿0)[1]", []vector.Kind{k}, k.Element()})
			add(shape{"(¿0)[¿1:¿2]", []vector.Kind{k, i, i}, k})
			add(shape{"(¿0)[2:]", []vector.Kind{k}, k})
		}
		add(shape{"jsonb_build_array(¿0, ¿1)", []vector.Kind{k, k}, vector.JSONB})
		add(shape{"jsonb_build_object('k', ¿0, ¿1, ¿0)", []vector.Kind{k, vector.Text}, vector.JSONB})
		for _, f := range formsOfKinds {
			add(shape{f.text, of(f.args, k), k})
		}
		for _, f := range formsOfConditions {
			add(shape{f.text, of(f.args, k), vector.Bool})
		}
	}
	b := vector.Bool
	for range 3 { // so that conditions are not mostly comparisons
		add(shape{"(¿0 AND ¿1)", []vector.Kind{b, b}, b})
		add(shape{"(¿0 OR ¿1)", []vector.Kind{b, b}, b})
		add(shape{"(NOT ¿0)", []vector.Kind{b}, b})
	}
	add(shape{"¿0::numeric(9,2)", []vector.Kind{vector.Numeric}, vector.Numeric})
	add(shape{"¿0::numeric(18,6)", []vector.Kind{vector.Int4}, vector.Numeric})
}

// kindsOfType are the kinds by pg_type.typname.
var kindsOfType = func() map[string]vector.Kind {
	m := map[string]vector.Kind{}
	for _, k := range hardKinds() {
		if k.IsArray() {
			m[sqltype.Of(k.Element()).Name+"[]"] = k
		} else {
			m[sqltype.Of(k).Name] = k
		}
	}
	m["interval"] = vector.Interval
	return m
}()

// polymorphic is the kind that stands for a polymorphic type, and others as they are.
func polymorphic(typname string, of vector.Kind) vector.Kind {
	switch typname {
	case "anyarray", "anycompatiblearray":
		return vector.ArrayOf(of)
	case "anyelement", "anycompatible", "anynonarray", "anycompatiblenonarray", "any":
		return of
	}
	return kindsOfType[typname]
}

// addSignature adds calls of a signature that are answered, some of whose arguments may be constant.
func (x *expressions) addSignature(s signature, add func(shape)) {
	if s.What == "aggregate" || len(s.Args) == 0 || len(s.Args) > 4 || s.Name == "pg_typeof" {
		return
	}
	instances := []vector.Kind{vector.Invalid}
	if slices.ContainsFunc(s.Args, func(a string) bool { return strings.HasPrefix(a, "any") }) {
		instances = vector.Kinds()
	}
	for _, of := range instances {
		args := make([]vector.Kind, len(s.Args))
		for i, a := range s.Args {
			args[i] = polymorphic(a, of)
		}
		result := polymorphic(s.Result, of)
		if slices.Contains(args, vector.Invalid) || result == vector.Invalid {
			continue
		}
		for mask := range 1<<len(args) - 1 { // not all constant
			for range 1 + 3*min(mask, 1) {
				parts := make([]string, len(args))
				var free []vector.Kind
				for i, k := range args {
					if mask>>i&1 != 0 {
						parts[i] = x.constantOf(s.Name, i, k)
						continue
					}
					parts[i] = fmt.Sprintf("¿%d", len(free))
					free = append(free, k)
				}
				add(shape{s.write(parts), free, result})
			}
		}
	}
}

// write writes a call.
func (s signature) write(args []string) string {
	switch {
	case s.What == "cast":
		return args[0] + "::" + s.Result
	case s.What == "operator" && len(args) == 1:
		return "(" + s.Name + " " + args[0] + ")"
	case s.What == "operator":
		return "(" + args[0] + " " + s.Name + " " + args[1] + ")"
	}
	switch s.Name {
	case "repeat", "lpad", "rpad": // of two billion characters, be they none, the server takes half a minute
		args = slices.Clone(args)
		args[1] = "(" + args[1] + " % 1000)"
	}
	return catalog.QuoteIdentifier(s.Name) + "(" + strings.Join(args, ", ") + ")"
}

// constantOf is a constant that may stand for an argument.
func (x *expressions) constantOf(name string, i int, k vector.Kind) string {
	var lists [][]string
	for _, f := range sqlfn.Named(name) {
		if i < len(f.Args) && f.Args[i].Constants != nil && !f.Args[i].Interval {
			lists = append(lists, f.Args[i].Constants)
		}
	}
	if len(lists) > 0 && x.r.IntN(5) > 0 {
		return quote(pick(x.r, pick(x.r, lists...)...))
	}
	return x.literal(k)
}

// hardLiterals are literals of kinds beside their samples.
var hardLiterals = map[vector.Kind][]string{
	vector.Int2: {"1", "2", "3", "7", "10", "-5"}, vector.Int4: {"1", "2", "3", "5", "10", "-7", "31", "64"}, vector.Int8: {"1", "2", "3", "10", "-100", "4294967296"},
	vector.Numeric: {"1", "2.5", "-0.5", "10", "0.001", "99999999999999.9999"}, vector.Float8: {"1", "2", "-2.5", "NaN", "Infinity", "-Infinity", "1e300"}, vector.Float4: {"2", "-2.5", "NaN", "Infinity"},
	vector.Text:     {"a", "b", "abc", "aé", "12", "-7", "2024-02-29", "{a,b}", "{\"b\",NULL}", "A", "x,y,z", "ab%c", "..", "a.b.c", "Ünï", "true", "[a-z]+", "it's"},
	vector.Interval: {"1 day", "-1 month", "1 year 2 mons 3 days 04:05:06.7", "36 hours", "-00:00:01", "00:00:00"}, vector.Timestamp: {"2024-01-31 10:20:30", "2023-03-26 02:30:00"},
	vector.TimestampTZ: {"2024-01-31 10:20:30+00", "2023-03-26 01:00:00+00"}, vector.Date: {"2024-01-31", "2023-12-31", "infinity", "-infinity"},
}

// literal is a typed literal of a kind.
func (x *expressions) literal(k vector.Kind) string {
	list := slices.Concat(sqltype.Of(k.Element()).Samples, hardLiterals[k.Element()], hardLiterals[k.Element()])
	if k.IsArray() {
		var members []string
		for range x.r.IntN(4) {
			members = append(members, quote(pick(x.r, list...))+"::"+sqltype.Of(k.Element()).Name)
		}
		return "ARRAY[" + strings.Join(members, ", ") + "]::" + sqltype.Of(k.Element()).Name + "[]"
	}
	if v := pick(x.r, list...); x.r.IntN(3) > 0 || !k.IsInt() {
		return quote(v) + "::" + sqltype.Of(k).Name
	} else if strings.HasPrefix(v, "-") {
		return "(" + v + ")"
	} else {
		return v
	}
}

// leaf is a column, or a literal now and then.
func (x *expressions) leaf(k vector.Kind) string {
	switch {
	case x.r.IntN(8) == 0:
		return x.literal(k)
	case k == vector.Interval:
		return fmt.Sprintf("(%s - %s)", columnName(vector.Timestamp, 0), columnName(vector.Timestamp, 1))
	}
	return columnName(k, x.r.IntN(2))
}

// of is an expression of a kind.
func (x *expressions) of(k vector.Kind, depth int) string {
	if depth == 0 || len(x.forms[k]) == 0 {
		return x.leaf(k)
	}
	return x.fill(pick(x.r, x.forms[k]...), depth-1)
}

func (x *expressions) fill(f shape, depth int) string {
	args := make([]string, len(f.args))
	for i, k := range f.args {
		d := depth
		if d > 0 && x.r.IntN(4) == 0 {
			d = 0
		}
		args[i] = x.of(k, d)
	}
	return f.write(args)
}

// write puts arguments in their places.
func (f shape) write(args []string) string {
	var pairs []string
	for i, a := range args {
		pairs = append(pairs, fmt.Sprintf("¿%d", i), a)
	}
	return strings.NewReplacer(pairs...).Replace(f.text)
}

// answered reports whether a form is, over columns.
func (x *expressions) answered(f shape) bool {
	for range 2 {
		args := make([]string, len(f.args))
		for i, k := range f.args {
			if args[i] = columnName(k, x.r.IntN(2)); k == vector.Interval {
				args[i] = x.leafInterval()
			}
		}
		if x.plans(f.write(args)) {
			return true
		}
	}
	return false
}

func (x *expressions) leafInterval() string {
	return fmt.Sprintf("(%s - %s)", columnName(vector.Timestamp, 0), columnName(vector.Timestamp, 1))
}

// plans reports whether an expression is planned.
func (x *expressions) plans(e string) bool {
	st := pushdown.Plan(syntax.Parse("SELECT id, "+e+" FROM rf_hard.t ORDER BY id"), nil, x.cat)
	return st.Star != nil && olap.Supports(st.Star) == nil
}

// next returns an expression that is planned.
func (x *expressions) next() string {
	for {
		x.planned++
		k := pick(x.r, x.kinds...)
		if e := x.of(k, 1+x.r.IntN(3)); x.plans(e) {
			return e
		}
	}
}
