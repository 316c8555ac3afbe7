package pushdown

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// shown reports whether values of a kind are cast to text as PostgreSQL writes them: booleans are
// cast to true, and written as t.
func shown(k vector.Kind) bool {
	switch k {
	case vector.Numeric, vector.Date, vector.Time, vector.Timestamp, vector.TimestampTZ, vector.MACAddr, vector.UUID, vector.Enum, vector.OID, vector.Name:
		return true
	}
	return k.IsInt()
}

// concatenation analyses ||. Beside text, PostgreSQL writes an operand of another type as text
// (textanycat, anytextcat).
func (a *analyzer) concatenation(l, r value) plan.Expr {
	if e, ok := a.concatenatedArray(l, r); ok {
		return e
	}
	key := builtinKey("||", []vector.Kind{l.kind(), r.kind()})
	for _, oid := range []uint32{sqlfn.OIDByteaCat, sqlfn.OIDBitCat} {
		if slices.Contains(builtins[key], oid) {
			a.calls("||", l.kind(), r.kind())
			return a.callOf(sqlfn.ByOID(oid), []value{l, r})
		}
	}
	if !slices.ContainsFunc(builtins[key], func(oid uint32) bool {
		return oid == sqlfn.OIDTextCat || oid == sqlfn.OIDTextAnyCat || oid == sqlfn.OIDAnyTextCat
	}) {
		fail(plan.ReasonFunction, key)
	}
	for _, v := range []value{l, r} {
		if k := v.kind(); !v.unknown() && !k.IsText() && !shown(k) {
			fail(plan.ReasonFunction, key)
		}
	}
	a.calls("||", l.kind(), r.kind())
	a.addCalls([]uint32{sqlfn.OIDTextCat})
	return a.callOf(sqlfn.ByOID(sqlfn.OIDTextCat), []value{l, r})
}

// asText returns the arguments of a function that takes those of all types and writes them as text, by the output
// functions of their types.
func (a *analyzer) asText(name string, vals []value) []value {
	out := slices.Clone(vals)
	for i, v := range vals {
		switch k := v.kind(); {
		case v.param > 0:
			fail(plan.ReasonParameter, "type of a parameter of "+name+"()")
		case k == vector.Bool:
			out[i] = typed(a.boolOut(v.e))
		case !v.unknown() && k != vector.Text && k != vector.Varchar && !shown(k):
			fail(plan.ReasonFunction, name+"() of "+k.String())
		}
	}
	return out
}

// boolOut writes a boolean as boolout does: the cast to text has other words.
func (a *analyzer) boolOut(e plan.Expr) plan.Expr {
	t := vector.TypeOf(vector.Text)
	return a.call(plan.OpCase, t, e, plan.Const{Datum: vector.String("t")}, a.not(e), plan.Const{Datum: vector.String("f")}, plan.Const{Datum: vector.Null(t)})
}

// concat analyses concat(), which takes arguments of all types, writes them as text, and skips nulls.
func (a *analyzer) concat(vals []value) plan.Expr {
	if len(vals) == 0 {
		fail(plan.ReasonFunction, "concat()")
	}
	a.addCalls([]uint32{sqlfn.OIDConcat})
	return a.concatenated(a.asText("concat", vals))
}

// concatenated is concat() of texts.
func (a *analyzer) concatenated(vals []value) plan.Expr {
	f, none := sqlfn.ByOID(sqlfn.OIDConcat), ""
	e := a.callOf(f, []value{{text: &none}, vals[0]})
	for _, v := range vals[1:] {
		e = a.callOf(f, []value{typed(e), v})
	}
	return e
}

// concatWS analyses concat_ws(separator, ...), which is concat() with a separator, of type text, between what is not null.
func (a *analyzer) concatWS(vals []value) plan.Expr {
	f := sqlfn.ConcatWS(len(vals))
	if f == nil {
		fail(plan.ReasonFunction, "concat_ws()")
	}
	if k := vals[0].kind(); vals[0].param == 0 && !vals[0].unknown() && !k.IsText() {
		fail(plan.ReasonFunction, "concat_ws() with a separator of type "+k.String())
	}
	a.callsCast(vals[0], vector.Text)
	a.addCalls([]uint32{sqlfn.OIDConcatWS})
	return a.callOf(f, append([]value{vals[0]}, a.asText("concat_ws", vals[1:])...))
}

// OIDs of format() with one argument and with more.
const (
	oidFormatAlone = 3540
	oidFormat      = 3539
)

// format analyses format() with a constant format of %s, each with its argument or the next, and %%. It is concat() then.
func (a *analyzer) format(vals []value) plan.Expr {
	if len(vals) == 0 || vals[0].text == nil {
		fail(plan.ReasonFunction, "format() with a format that is not constant")
	}
	pieces, ok := formatPieces(*vals[0].text, len(vals)-1)
	if !ok {
		fail(plan.ReasonFunction, "format() with other than %s and %%, or of other arguments than these")
	}
	if len(vals) == 1 {
		a.addCalls([]uint32{oidFormatAlone})
	} else {
		a.addCalls([]uint32{oidFormat})
	}
	args := a.asText("format", vals[1:])
	list := make([]value, len(pieces))
	for i, p := range pieces {
		if list[i] = (value{text: &pieces[i].text}); p.arg > 0 {
			list[i] = args[p.arg-1]
		}
	}
	return a.concatenated(list)
}

// formatPiece is a part of a format: argument arg, from 1 on, or a text where that is 0.
type formatPiece struct {
	arg  int
	text string
}

var formatSpecifier = regexp.MustCompile(`^%(?:([1-9][0-9]?)\$)?s`)

// formatPieces reads a format (text_format in varlena.c). ok is false where it has anything but %s and %%, too few arguments,
// or some that are not shown: these may be errors nevertheless.
func formatPieces(format string, args int) (pieces []formatPiece, ok bool) {
	pieces = []formatPiece{{}}
	last := &pieces[0]
	used := make([]bool, args)
	for next := 1; format != ""; {
		at := strings.IndexByte(format, '%')
		switch {
		case at < 0:
			at = len(format)
			fallthrough
		case at > 0:
			last.text += format[:at]
			format = format[at:]
			continue
		case strings.HasPrefix(format, "%%"):
			last.text += "%"
			format = format[2:]
			continue
		}
		found := formatSpecifier.FindStringSubmatch(format)
		if found == nil {
			return nil, false
		}
		arg := next
		if found[1] != "" {
			arg, _ = strconv.Atoi(found[1])
		}
		if next = arg + 1; arg > args {
			return nil, false
		}
		used[arg-1] = true
		pieces = append(pieces, formatPiece{arg: arg}, formatPiece{})
		last, format = &pieces[len(pieces)-1], format[len(found[0]):]
	}
	return pieces, !slices.Contains(used, false)
}

// startsWith analyses ^@.
func (a *analyzer) startsWith(l, r value) plan.Expr {
	a.calls("^@", l.kind(), r.kind())
	return a.callOf(sqlfn.ByOID(sqlfn.OIDStartsWith), []value{l, r})
}

// regexpMatches are the functions of the operators that match regular expressions, of texts: char(n) has others.
var regexpMatches = map[string]uint32{"~": sqlfn.OIDRegexpEq, "!~": sqlfn.OIDRegexpNe, "~*": sqlfn.OIDRegexpInCaseEq, "!~*": sqlfn.OIDRegexpInCaseNe}

// regexpMatch analyses such an operator, with a constant pattern.
func (a *analyzer) regexpMatch(symbol string, f *sqlfn.Function, l, r value) plan.Expr {
	t := vector.TypeOf(vector.Text)
	l, r = typed(a.resolve(l, t)), typed(a.resolve(r, t))
	if l.kind() == vector.Name && r.kind() == vector.Text { // an operator of its own, which does as text's
		a.callsOperator(symbol, l.kind(), r.kind())
		l = typed(a.cast(l.e, t))
	}
	if key := builtinKey(symbol, []vector.Kind{l.kind(), r.kind()}); !slices.Contains(builtins[key], f.OID) {
		fail(plan.ReasonFunction, "operator "+key)
	}
	a.callsOperator(symbol, l.kind(), r.kind())
	if !isLeaf(r.e) || r.kind() == vector.BPChar {
		fail(plan.ReasonFunction, symbol+" with a pattern that is not constant")
	}
	if c, ok := r.e.(plan.Const); ok && !c.Null && !sqlfn.TakesRegexp(c.Str, strings.HasSuffix(symbol, "*")) {
		fail(plan.ReasonFunction, symbol+" with a pattern of this form")
	}
	return a.callOf(f, []value{l, r})
}

// cased returns the form of a function of letters' cases for a collation.
func (a *analyzer) cased(f *sqlfn.Function, c vector.Collation) *sqlfn.Function {
	switch c.OID {
	case cCollation, posixCollation:
		return f.InASCII
	case 0, defaultCollation:
		if a.cat.ASCIICase {
			return f.InASCII
		}
	}
	if c.OID == 0 {
		var ok bool
		if c, ok = a.defaultCollation(); !ok {
			fail(plan.ReasonCollation, f.Name+"() in the database's collation")
		}
	}
	if c.Turkic {
		fail(plan.ReasonCollation, f.Name+"() in a language with a dotless i")
	}
	return a.ofCases(f, c)
}

// ofCases returns a function of letters' cases outside of C, and notes the collation where its cases are of use to it.
func (a *analyzer) ofCases(f *sqlfn.Function, c vector.Collation) *sqlfn.Function {
	oid := c.OID
	if oid == 0 {
		oid = defaultCollation
	}
	if f.CanCases() && !slices.Contains(a.casedIn, oid) {
		a.casedIn = append(a.casedIn, oid)
	}
	return f
}

// insensitive makes LIKE ILIKE, which is LIKE of both in lower case (Generic_Text_IC_like in like.c).
func (a *analyzer) insensitive(like *plan.Call) {
	coll := mergeCollations(like.Args[0].Type().Collation, like.Args[1].Type().Collation)
	if coll.OID == 0 { // as all text of no column
		coll, _ = a.defaultCollation()
	}
	if coll.Turkic {
		fail(plan.ReasonCollation, "ILIKE in a language with a dotless i")
	}
	lower := sqlfn.ByOID(sqlfn.OIDLower)
	switch like.Insensitive = true; {
	case coll.OID == cCollation || coll.OID == posixCollation || coll.OID == defaultCollation && a.cat.ASCIICase:
		like.Func = lower.InASCII
	case coll.OID == 0 && a.cat.ASCIICase:
		like.Func = lower.InASCII
	default:
		like.Func = a.ofCases(lower, coll)
	}
}
