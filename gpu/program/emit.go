package program

import (
	"fmt"
	"strings"

	"pgaccel/gpu/device"
	"pgaccel/plan"
)

// generator writes one kernel.
type generator struct {
	p *Program
	t Tuning

	params []param
	known  map[string]bool // names of params

	lines  []string
	indent int
	next   int // for names
}

// param is a member of the kernel's parameter.
type param struct {
	ctype, name string
	value       func(a *arguments) uint64
}

// arguments are what a launch has for its parameters.
type arguments struct {
	q        *Query
	b        *Buffers
	l        layout
	first    device.Pointer // the segment that is 0 in the list
	segments int            // in the list
	ofBlock  uint32         // the first vector of a block's first warp is that of the block before, and so much
	ofWarp   uint32         // likewise of a warp
	ofUnit   uint32         // log2 of the vectors that a warp takes at a time
	all      bool           // the list has all segments from the first on
}

// param adds a member once, and returns how the kernel names it.
func (g *generator) param(ctype, name string, value func(a *arguments) uint64) string {
	if !g.known[name] {
		g.known[name] = true
		g.params = append(g.params, param{ctype, name, value})
	}
	return "p." + name
}

// pointer adds a member that is a pointer.
func (g *generator) pointer(ctype, name string, value func(a *arguments) device.Pointer) string {
	return g.param("const "+ctype+" *", name, func(a *arguments) uint64 { return uint64(value(a)) })
}

// pack returns the parameter of a launch.
func packParams(params []param, a *arguments) []byte {
	var p device.Params
	for _, m := range params {
		if m.ctype == "uint32_t" {
			p.U32(uint32(m.value(a)))
		} else {
			p.U64(m.value(a))
		}
	}
	return p.Bytes()
}

func (g *generator) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.HasPrefix(text, "}") {
		g.indent--
	}
	indent := strings.Repeat("\t", g.indent)
	if strings.HasPrefix(text, "#") {
		indent = ""
	}
	g.lines = append(g.lines, indent+text)
	if strings.HasSuffix(text, "{") {
		g.indent++
	}
}

func (g *generator) name(prefix string) string {
	g.next++
	return fmt.Sprintf("%s_%d", prefix, g.next)
}

func ctype(wide bool) string {
	if wide {
		return "int64_t"
	}
	return "int32_t"
}

// value is a computed node: C++ names; null is "" where it is never null.
type value struct {
	v, null string
	wide    bool
}

// isTrue is the condition that a value is true.
func (v value) isTrue() string {
	if v.null == "" {
		return v.v + " != 0"
	}
	return "(!" + v.null + " && " + v.v + " != 0)"
}

// notNull is the condition that a value is not null.
func (v value) notNull() string {
	if v.null == "" {
		return "true"
	}
	return "!" + v.null
}

// as is the value as an integer of 64 or 32 bits.
func (v value) as(wide bool) string {
	if v.wide == wide {
		return v.v
	}
	return "(" + ctype(wide) + ")" + v.v
}

// row emits what is computed of one row by each lane. Everything it emits is in scope as
// long as it is used.
type row struct {
	g     *generator
	alive string // the name of a bool: the lane's row is there and has passed until here
	// column emits the decoding of a column once and returns its name, and its reference's.
	column func(i int) (offset, reference, null string)
	memo   map[string]value
	found  map[int]partner
	// entries are the lookups whose entries are read for all rows that pass: a probe reads
	// them at once.
	entries map[int]bool
}

// partner is a lookup's position or entry: in is the condition that there may be one.
type partner struct{ in, position string }

// node emits a node and what it is computed from, each once. Faults count where guard
// holds, which is alive where it is "".
func (r *row) node(i int, guard string) value {
	if guard == "" || !r.g.p.risky(i) {
		guard = r.alive
		if !r.g.p.risky(i) {
			guard = "" // whatever it is
		}
	}
	key := fmt.Sprint(i, guard)
	if v, ok := r.memo[key]; ok {
		return v
	}
	v := r.compute(i, guard)
	r.memo[key] = v
	return v
}

// define emits a constant for a node and returns its value.
func (r *row) define(i int, v, null string) value {
	n := &r.g.p.Nodes[i]
	out := value{v: r.g.name(fmt.Sprintf("v%d", i)), wide: n.Wide}
	r.g.line("const %s %s = %s;", ctype(n.Wide), out.v, v)
	if n.Nullable && null != "" && null != "false" {
		out.null = r.g.name(fmt.Sprintf("n%d", i))
		r.g.line("const bool %s = %s;", out.null, null)
	}
	return out
}

// either is the condition that one of the values is null.
func either(values ...value) string {
	var nulls []string
	for _, v := range values {
		if v.null != "" {
			nulls = append(nulls, v.null)
		}
	}
	return strings.Join(nulls, " || ")
}

// fault emits that a condition is a fault.
func (r *row) fault(guard, null, bad string) {
	if null != "" {
		bad = "!(" + null + ") && " + bad
	}
	r.g.line("fault |= %s && %s;", guard, bad)
}

var comparisons = map[Op]string{plan.OpEq: "==", plan.OpNe: "!=", plan.OpLt: "<", plan.OpLe: "<=", plan.OpGt: ">", plan.OpGe: ">="}

func (r *row) compute(i int, guard string) value {
	g, n := r.g, &r.g.p.Nodes[i]
	switch n.Op {
	case OpConst:
		at := n.Index
		k := g.param("int64_t", fmt.Sprintf("k%d", at), func(a *arguments) uint64 { return uint64(a.q.Constants[at]) })
		v := value{v: "(" + ctype(n.Wide) + ")" + k, wide: n.Wide}
		if n.Nullable {
			v.null = "true"
		}
		return v
	case OpColumn:
		offset, reference, null := r.column(n.Index)
		sum := fmt.Sprintf("(int64_t)((uint64_t)%s + %s)", reference, offset)
		if !n.Wide {
			sum = fmt.Sprintf("(int32_t)((uint32_t)%s + (uint32_t)%s)", reference, offset)
		}
		return r.define(i, sum, null)
	case OpEntry:
		return r.define(i, fmt.Sprintf("(%s)%s", ctype(n.Wide), r.entry(n.Index)), "")
	case OpOut:
		return r.out(i)
	case plan.OpCase, plan.OpCoalesce:
		return r.choose(i, guard)
	}
	var args []value
	wide := n.Wide
	for _, a := range n.Args {
		v := r.node(a, guard)
		args = append(args, v)
		wide = wide || v.wide
	}
	null := either(args...)
	if c, ok := comparisons[n.Op]; ok {
		return r.define(i, fmt.Sprintf("%s %s %s", args[0].as(wide), c, args[1].as(wide)), null)
	}
	a := args[0]
	switch n.Op {
	case plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpDiv, plan.OpMod, plan.OpAbs:
		return r.arithmetic(i, args, null, guard)
	case plan.OpDistinct:
		b := args[1]
		same := fmt.Sprintf("%s == %s", a.as(wide), b.as(wide))
		switch {
		case null == "":
			return r.define(i, "!("+same+")", "")
		case a.null == "":
			return r.define(i, fmt.Sprintf("%s || !(%s)", b.null, same), "")
		case b.null == "":
			return r.define(i, fmt.Sprintf("%s || !(%s)", a.null, same), "")
		}
		return r.define(i, fmt.Sprintf("%s != %s || (!%s && !(%s))", a.null, b.null, a.null, same), "")
	case plan.OpAnd, plan.OpOr:
		return r.logic(i, args)
	case plan.OpNot:
		return r.define(i, "1 - "+a.v, null)
	case plan.OpIsNull:
		if a.null == "" {
			return r.define(i, "0", "")
		}
		return r.define(i, a.null, "")
	case plan.OpIsNotNull:
		return r.define(i, a.notNull(), "")
	case plan.OpIsTrue:
		return r.define(i, a.isTrue(), "")
	case plan.OpIsFalse:
		return r.define(i, fmt.Sprintf("%s && %s == 0", a.notNull(), a.v), "")
	case OpTable:
		return r.table(i, a, guard)
	case OpFloatKey:
		if n.Checked {
			r.fault(guard, null, fmt.Sprintf("!float_alone(%s)", a.as(true)))
		}
		return r.define(i, fmt.Sprintf("float_key(%s)", a.as(true)), null)
	case OpShift:
		at := n.Index
		k := g.param("int64_t", fmt.Sprintf("k%d", at), func(a *arguments) uint64 { return uint64(a.q.Constants[at]) })
		return r.define(i, value{v: fmt.Sprintf("(%s >> %s)", a.as(true), k), wide: true}.as(n.Wide), null)
	case OpFloatOf:
		return r.define(i, fmt.Sprintf("float_of(%s)", a.as(true)), null)
	case OpFloatAdd, OpFloatSub, OpFloatMul, OpFloatDiv:
		bad, x := g.name("bad"), g.name("x")
		call := map[Op]string{OpFloatAdd: "float_add", OpFloatSub: "float_sub", OpFloatMul: "float_mul", OpFloatDiv: "float_div"}[n.Op]
		g.line("bool %s;", bad)
		g.line("const int64_t %s = %s(%s, %s, %s);", x, call, a.as(true), args[1].as(true), bad)
		r.fault(guard, null, bad)
		return r.define(i, value{v: x, wide: true}.as(n.Wide), null)
	case OpFixedHigh, OpFixedLow:
		at, bad, part := n.Index, g.name("bad"), g.name("part")
		base := g.param("int64_t", fmt.Sprintf("k%d", at), func(a *arguments) uint64 { return uint64(a.q.Constants[at]) })
		call := map[Op]string{OpFixedHigh: "fixed_high", OpFixedLow: "fixed_low"}[n.Op]
		g.line("bool %s;", bad)
		g.line("const int64_t %s = %s(%s, %s, %s);", part, call, a.as(true), base, bad)
		r.fault(guard, null, bad)
		return r.define(i, value{v: part, wide: true}.as(n.Wide), null)
	case plan.OpIn, OpStep:
		at := n.Index
		set := g.pointer("int64_t", fmt.Sprintf("set%d", at), func(a *arguments) device.Pointer { return a.b.Sets[at] })
		size := g.param("uint32_t", fmt.Sprintf("set%d_size", at), func(a *arguments) uint64 { return uint64(len(a.q.Sets[at])) })
		call := map[Op]string{plan.OpIn: "set_has", OpStep: "set_step"}[n.Op]
		return r.define(i, fmt.Sprintf("%s(%s, %s, %s)", call, set, size, a.as(true)), null)
	}
	panic(fmt.Sprintf("BUG: operation %d", n.Op))
}

// literal is a 64-bit constant.
func literal(v int64) string {
	if v == -1<<63 {
		return "(-9223372036854775807ll - 1)"
	}
	return fmt.Sprintf("%dll", v)
}

// arithmetic emits OpAdd .. OpMod and OpAbs.
func (r *row) arithmetic(i int, args []value, null, guard string) value {
	g, n := r.g, &r.g.p.Nodes[i]
	a := args[0]
	var b value
	symbol := map[Op]string{plan.OpAdd: "+", plan.OpSub: "-", plan.OpMul: "*", plan.OpAbs: "-"}[n.Op]
	call := map[Op]string{plan.OpAdd: "checked_add", plan.OpSub: "checked_sub", plan.OpMul: "checked_mul", plan.OpAbs: "checked_sub"}[n.Op]
	if n.Op == plan.OpAbs { // the sign decides which is subtracted from which
		zero := g.name("zero")
		g.line("const %s %s = %s < 0 ? 0 : %s;", ctype(a.wide), zero, a.v, a.v)
		minus := g.name("minus")
		g.line("const %s %s = %s < 0 ? %s : 0;", ctype(a.wide), minus, a.v, a.v)
		a, b = value{v: zero, wide: a.wide}, value{v: minus, wide: a.wide}
	} else {
		b = args[1]
	}
	if n.Op == plan.OpDiv || n.Op == plan.OpMod {
		suffix, both := "32", a.wide || b.wide || n.Wide || n.Checked
		if both {
			suffix = ""
		}
		name := map[Op]string{plan.OpDiv: "checked_div", plan.OpMod: "checked_mod"}[n.Op]
		bad, x := g.name("bad"), g.name("q")
		g.line("bool %s;", bad)
		g.line("const %s %s = %s%s(%s, %s, %s);", ctype(both), x, name, suffix, a.as(both), b.as(both), bad)
		if n.Checked {
			bad = fmt.Sprintf("(%s || %s < %s || %s > %s)", bad, x, literal(n.Min), x, literal(n.Max))
		}
		r.fault(guard, null, bad)
		return r.define(i, value{v: x, wide: both}.as(n.Wide), null)
	}
	if !n.Checked {
		if n.Wide || a.wide || b.wide { // modulo 2^64, which is what is wanted where it fits
			return r.define(i, fmt.Sprintf("(%s)((uint64_t)%s %s (uint64_t)%s)", ctype(n.Wide), a.as(true), symbol, b.as(true)), null)
		}
		return r.define(i, fmt.Sprintf("(int32_t)((uint32_t)%s %s (uint32_t)%s)", a.v, symbol, b.v), null)
	}
	x, bad := g.name("x"), ""
	if a.wide || b.wide {
		bad = g.name("bad")
		g.line("bool %s;", bad)
		g.line("const int64_t %s = %s(%s, %s, %s);", x, call, a.as(true), b.as(true), bad)
		bad += " || "
	} else { // 64 bits hold it
		g.line("const int64_t %s = (int64_t)%s %s (int64_t)%s;", x, a.v, symbol, b.v)
	}
	r.fault(guard, null, fmt.Sprintf("(%s%s < %s || %s > %s)", bad, x, literal(n.Min), x, literal(n.Max)))
	return r.define(i, value{v: x, wide: true}.as(n.Wide), null)
}

// logic emits three-valued OpAnd and OpOr.
func (r *row) logic(i int, args []value) value {
	n := &r.g.p.Nodes[i]
	join, stop := " && ", "== 0"
	if n.Op == plan.OpOr {
		join, stop = " || ", "!= 0"
	}
	// Null arguments do not decide: they count as what goes on.
	var parts, stops []string
	for _, a := range args {
		decides := a.v + " " + stop
		if a.null != "" {
			decides = "(!" + a.null + " && " + decides + ")"
		}
		stops = append(stops, decides)
		if n.Op == plan.OpOr {
			parts = append(parts, decides)
		} else {
			parts = append(parts, "!("+decides+")")
		}
	}
	null := either(args...)
	if null != "" {
		null = fmt.Sprintf("(%s) && !(%s)", null, strings.Join(stops, " || "))
	}
	return r.define(i, strings.Join(parts, join), null)
}

// choose emits OpCase and OpCoalesce. Arms are computed for all rows; only their faults
// depend on who takes them.
func (r *row) choose(i int, guard string) value {
	g, n := r.g, &r.g.p.Nodes[i]
	type arm struct {
		take string // the condition
		v    value
	}
	var arms []arm
	risky := r.g.p.risky(i)
	narrow := func(condition string) string {
		if !risky {
			return ""
		}
		name := g.name("g")
		g.line("const bool %s = %s && %s;", name, guard, condition)
		return name
	}
	last := len(n.Args) - 1
	if n.Op == plan.OpCase {
		for k := 0; k < last; k += 2 {
			when := r.node(n.Args[k], guard)
			take := when.isTrue()
			then := r.node(n.Args[k+1], narrow(take))
			arms = append(arms, arm{take, then})
			guard = narrow("!(" + take + ")")
		}
		arms = append(arms, arm{"true", r.node(n.Args[last], guard)})
	} else {
		for k, a := range n.Args {
			v := r.node(a, guard)
			arms = append(arms, arm{v.notNull(), v})
			if v.null == "" {
				break
			}
			if k < last {
				guard = narrow(v.null)
			}
		}
	}
	end := arms[len(arms)-1].v
	v, null := g.name(fmt.Sprintf("v%d", i)), ""
	g.line("%s %s = %s;", ctype(n.Wide), v, end.as(n.Wide))
	if n.Nullable {
		null = g.name(fmt.Sprintf("n%d", i))
		g.line("bool %s = !(%s);", null, end.notNull())
	}
	for k := len(arms) - 2; k >= 0; k-- {
		a := arms[k]
		if null != "" {
			g.line("%s = %s ? !(%s) : %s;", null, a.take, a.v.notNull(), null)
		}
		g.line("%s = %s ? %s : %s;", v, a.take, a.v.as(n.Wide), v)
	}
	return value{v, null, n.Wide}
}

// table emits OpTable. Positions are clamped: the value of a null, or of a row that is not
// there, can be any.
func (r *row) table(i int, a value, guard string) value {
	g, n := r.g, &r.g.p.Nodes[i]
	at := n.Index
	t := g.p.Tables[at]
	name := fmt.Sprintf("t%d", at)
	size := func(a *arguments) int64 { return a.q.Tables[at].Size() }
	values := g.pointer(ctype(t.Wide), name, func(a *arguments) device.Pointer { return a.b.Tables[at] })
	lo := g.param("int64_t", name+"_lo", func(a *arguments) uint64 { return uint64(a.q.Tables[at].Lo) })
	count := g.param("uint32_t", name+"_size", func(a *arguments) uint64 { return uint64(size(a)) })
	pos, in := g.name("at"), g.name("in")
	g.line("const uint64_t %s = (uint64_t)%s - (uint64_t)%s;", pos, a.as(true), lo)
	present := "true"
	if a.null != "" {
		present = a.notNull()
	}
	g.line("const bool %s = %s && %s && %s < %s;", in, r.alive, present, pos, count)
	v := value{v: g.name("v"), wide: t.Wide}
	onNull := "0"
	if a.null != "" {
		onNull = g.param("int64_t", name+"_onnull", func(a *arguments) uint64 { return uint64(a.q.Tables[at].OnNull) })
	}
	g.line("const %s %s = %s ? __ldg(%s + %s) : (%s)%s;", ctype(t.Wide), v.v, in, values, pos, ctype(t.Wide), onNull)
	flag := func(name string, offset func(a *arguments) int64) string {
		flags := g.pointer("uint8_t", name, func(a *arguments) device.Pointer { return a.b.Tables[at] + device.Pointer(offset(a)) })
		return fmt.Sprintf("(%s && __ldg(%s + %s) != 0)", in, flags, pos)
	}
	var nulls []string
	if t.Nulls {
		nulls = append(nulls, flag(name+"_nulls", func(a *arguments) int64 { return padded(size(a) * width4or8(t.Wide)) }))
	}
	if a.null != "" {
		k := g.param("uint32_t", name+"_onnull_null", func(a *arguments) uint64 { return uint64(number(a.q.Tables[at].OnNullNull)) })
		nulls = append(nulls, fmt.Sprintf("(%s && %s != 0)", a.null, k))
	}
	if t.Faults {
		bad := flag(name+"_faults", func(a *arguments) int64 {
			offset := padded(size(a) * width4or8(t.Wide))
			if t.Nulls {
				offset += padded(size(a))
			}
			return offset
		})
		r.fault(guard, "", bad)
		if a.null != "" {
			k := g.param("uint32_t", name+"_onnull_fault", func(a *arguments) uint64 { return uint64(number(a.q.Tables[at].OnNullFault)) })
			r.fault(guard, "", fmt.Sprintf("%s && %s != 0", a.null, k))
		}
	}
	return r.define(i, v.as(n.Wide), strings.Join(nulls, " || "))
}
