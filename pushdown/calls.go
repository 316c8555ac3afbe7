package pushdown

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// builtinsText says which functions PostgreSQL calls for an operator, a cast, a function or
// an aggregate with operands of given types: its own, and those of the casts that it puts
// in. TestBuiltins makes it of what a server's parser says, and compares; OIDs of built-in
// functions do not change between versions; one that a server lacks it does not call. A
// line is
//
//	name(type,type) OID OID ...
//
//go:embed builtins.txt
var builtinsText string

var builtins = parseBuiltins(builtinsText)

func parseBuiltins(text string) map[string][]uint32 {
	m := map[string][]uint32{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		oids := make([]uint32, len(f)-1)
		for i, s := range f[1:] {
			n, err := strconv.ParseUint(s, 10, 32)
			if err != nil {
				panic(fmt.Sprintf("BUG: builtins.txt: %q", line))
			}
			oids[i] = uint32(n)
		}
		m[f[0]] = oids
	}
	return m
}

// builtinKey is what builtins.txt has for a name with operands of the kinds.
func builtinKey(name string, kinds []vector.Kind) string {
	b := append(make([]byte, 0, 48), name...)
	b = append(b, '(')
	for i, k := range kinds {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, typeName(k)...)
	}
	return string(append(b, ')'))
}

// typeName is the name of a kind in pg_type; a constant without a type, and a parameter, have
// kind Invalid.
func typeName(k vector.Kind) string {
	if k == vector.Invalid {
		return "unknown"
	}
	return sqltype.Of(k).Name
}

// calls notes that the server calls what name(kinds) stands for: EXECUTE on it is checked.
// It may note more than the server calls: a right that is lacking only forwards. What is
// not known must not pass.
func (a *analyzer) calls(name string, kinds ...vector.Kind) {
	if name == "count" && len(kinds) == 1 && (kinds[0].IsArray() || kinds[0] == vector.Opaque) {
		kinds = []vector.Kind{vector.Text} // it is of any type
	}
	key := builtinKey(name, kinds)
	if a.called[key] {
		return
	}
	oids, ok := builtins[key]
	if !ok {
		fail(plan.ReasonFunction, "rights on "+key)
	}
	a.called[key] = true
	a.addCalls(oids)
}

// callsOperator notes an operator of two operands that may be negated, commuted, or taken
// for another of its family by the server's planner: noteDerived sees to that.
func (a *analyzer) callsOperator(symbol string, l, r vector.Kind) {
	a.calls(symbol, l, r)
	if symbol == "=" && !slices.Contains(a.equated, [2]vector.Kind{l, r}) {
		a.equated = append(a.equated, [2]vector.Kind{l, r})
	}
	if l == vector.Bool {
		a.negated = true // x = false is NOT x (simplify_boolean_equality in clauses.c)
	}
}

// callsCast notes the cast of a value to a type; one without a type yet is read as that.
func (a *analyzer) callsCast(v value, to vector.Kind) {
	if !v.unknown() && v.kind() != to && !(to == vector.Text && isCitextValue(v)) { // which is binary coercible
		a.calls("::", v.kind(), to)
	}
}

// callsEquality notes how values of a kind are found to be equal: grouping and DISTINCT
// check the right to the function of the operator = (ExecBuildGroupingEqual).
func (a *analyzer) callsEquality(k vector.Kind) {
	noOrder(k)
	a.calls("=", k, k)
}

// callsMember notes x = ANY (array of members of kind k), and what it may become: the
// planner turns <> ALL into a search of a hash table with =, as = ANY, from nine members on
// (MIN_ARRAY_SIZE_FOR_HASHED_SAOP in clauses.c).
func (a *analyzer) callsMember(symbol string, x, k vector.Kind, members int) {
	a.callsOperator("=", x, k)
	if symbol == "<>" {
		a.callsOperator("<>", x, k)
	}
	if members >= 9 {
		a.calls("hash", x)
	}
}

// negators are the operators that NOT x op y becomes (negate_clause in prepqual.c).
var negators = map[string]string{"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "~~": "!~~", "!~~": "~~", "~~*": "!~~*", "!~~*": "~~*",
	"~": "!~", "!~": "~", "~*": "!~*", "!~*": "~*"}

// noteDerived notes what the server's planner may call in place of what is written, once
// everything is noted that is.
func (a *analyzer) noteDerived() {
	// From a = b and b = c it concludes a = c, and it commutes a = b (equivclass.c): the
	// types of one family of operators, in every pair.
	for _, p := range a.equated {
		for _, o := range a.equated {
			for _, l := range p {
				for _, r := range o {
					if _, ok := builtins[builtinKey("=", []vector.Kind{l, r})]; ok && category(l) == category(r) {
						a.calls("=", l, r)
					}
				}
			}
		}
	}
	if a.negated {
		for key := range a.called {
			if i := strings.IndexByte(key, '('); strings.IndexByte(key, ',') > 0 && negators[key[:i]] != "" {
				if oids, ok := builtins[negators[key[:i]]+key[i:]]; ok {
					a.addCalls(oids)
				}
			}
		}
	}
}

func (a *analyzer) addCalls(oids []uint32) {
	for _, oid := range oids {
		if i, found := slices.BinarySearch(a.oids, oid); !found {
			a.oids = slices.Insert(a.oids, i, oid)
		}
	}
}

// operatorSymbol is the operator that an operation is written with.
var operatorSymbol = map[plan.Op]string{plan.OpEq: "=", plan.OpNe: "<>", plan.OpLt: "<", plan.OpLe: "<=", plan.OpGt: ">", plan.OpGe: ">=",
	plan.OpAdd: "+", plan.OpSub: "-", plan.OpMul: "*", plan.OpDiv: "/", plan.OpMod: "%"}
