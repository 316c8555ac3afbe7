package sqlfn

import (
	"slices"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Function is one overload of a built-in function.
type Function struct {
	Name   string // pg_proc.proname
	OID    uint32 // pg_proc.oid
	Args   []Param
	Result vector.Kind
	// CalledOnNull is the opposite of pg_proc.proisstrict: where it is false, a null
	// argument makes the result null and Eval never sees one (Apply).
	CalledOnNull bool
	// Variadic: in pg_proc it takes any number of arguments, of any type; a call of more than Args is
	// one of calls.
	Variadic bool
	// InASCII is the function under collations in which only letters of ASCII have a case; of others Eval
	// has no result where that matters. Nil: it depends on no collation.
	InASCII *Function
	// cased is the string of which it is the case, under a collation whose cases are known; nil: that is of no use to it.
	cased func(c *sqltype.Cases, s string) (string, bool)
	// Cases are those that InCases has made it one of; nil of functions of the table.
	Cases *sqltype.Cases
	// Zone says which time zone the result depends on: Eval and Kernel are as it is UTC, In as it is
	// another.
	Zone ZoneUse
	// zoneArg is the argument that is the name of a NamedZone.
	zoneArg int
	// InZone is the zone that In or a cast has made it one of; nil of functions of the table.
	InZone *sqltype.Zone
	// in makes of a copy of the function what it is in a zone.
	in func(f *Function, z *sqltype.Zone)
	// Digits bounds a Numeric result: that many digits before the decimal point; 0: unknown.
	Digits int
	// Rounds: argument 1 and the result are Numeric, the result with one digit more before the
	// decimal point at most.
	Rounds bool
	// Type is the result's type where that is more than a kind: the scale of a Numeric. Nil:
	// the plain type of Result, text with the collation of the arguments.
	Type func(c Call) vector.Type
	// Eval computes the function of one row. Its error, an Error, says that the server is
	// to be asked: where that reports an error, and where we do not know.
	Eval func(args []vector.Value) (vector.Value, error)
	// Kernel returns a faster form for rows of which only argument i varies, nil for none. It
	// computes what Eval does.
	Kernel func(c Call, i int) *Kernel
	// Around returns, of a call of which only argument i varies, Kernel.Around of Eval; nil: it is not known.
	Around func(c Call, i int) func(v int64) (lo, hi int64)
	// Prefix says of calls, by their constants, that the result is so many characters that argument 0 begins
	// with: of strings in the order of their bytes the results are in that order, too. nil: of none.
	Prefix func(c Call) bool
	// EvalPrefix is Eval, and says how much of argument 0 decides the result: all texts that begin with so many bytes have it; -1
	// where that is not known. Nil: it never is.
	EvalPrefix func(args []vector.Value) (r vector.Value, bytes int, err error)
	// Length says that the result is the length of a text, and what it counts.
	Length Length
	// Total says that the server has a result for all arguments, and Eval, too, where that has no
	// more bits than are held.
	Total bool
	// TotalFor says that of some calls, where Total is false; nil: of none.
	TotalFor func(c Call) bool
	// Partial: it fails for most arguments; generators of random queries leave it out.
	Partial bool
	// Samples are arguments with which tests call it: for each Param literals without quotes,
	// of which every combination is tried. Constants are samples by themselves.
	Samples [][]string
}

// Length is what a function counts of a text.
type Length uint8

const (
	NoLength   Length = iota // another function
	Characters               // of UTF-8
	Bytes
)

// Fails reports whether Eval may return an error for the rows of a call.
func (f *Function) Fails(c Call) bool { return !f.Total && (f.TotalFor == nil || !f.TotalFor(c)) }

// Param is an argument.
type Param struct {
	Kind vector.Kind
	// Constants are the values that may stand there; a call with anything else is forwarded.
	// Nil: any expression.
	Constants []string
	// Also says of others whether they may stand there, too; nil: none may.
	Also func(c string) bool
	// Interval: in the server it is an interval, of which Constants are texts (IntervalText).
	Interval bool
	// Usual are the constants that mostly stand there: what generators of random queries write.
	Usual []string
	// AnyCase: the server takes Constants, which are in lower case, in any case of letters.
	AnyCase bool
}

// Call is what is known of a call before there are rows.
type Call struct {
	Args []Arg
	T    vector.Type // of the result; not set for Function.Type
}

// Arg is an argument of a Call.
type Arg struct {
	Type vector.Type
	// Const is its value where it is constant, else nil.
	Const *vector.Value
}

// Kernel is a function of one 64-bit word to another. A Numeric result is unscaled, with the
// scale of the call's type.
type Kernel struct {
	F func(v int64) (int64, error)
	// First and Last bound what F takes: anything else fails. Within, one that is Monotone may fail next
	// to them, one with Range where that has an error, any other one nowhere but where Fails is set.
	First, Last int64
	Fails       bool
	// Monotone: greater arguments have no smaller results. Else these lie in Min to Max, or as Range
	// says for arguments from lo to hi.
	Monotone bool
	Min, Max int64
	Range    func(lo, hi int64) (least, greatest int64, err error)
	// Around returns the first and the last argument around one for which F is the same; nil: they are not
	// worth to be known.
	Around func(v int64) (lo, hi int64)
	// Every returns, with Around, a length so that for arguments from lo to hi F is the same from each
	// multiple of it to the next; 0 for none.
	Every func(lo, hi int64) int64
	// Shift returns the first and the last argument around a finite one for which F differs from its
	// argument by the same, as far as F takes them; nil: it is not known.
	Shift func(v int64) (lo, hi int64)
}

// Bounds returns the bounds of F of arguments from lo to hi. Its error says that it may fail.
func (k *Kernel) Bounds(lo, hi int64) (least, greatest int64, err error) {
	switch {
	case k.Range != nil:
		return k.Range(lo, hi)
	case !k.Monotone:
		return k.Min, k.Max, nil
	}
	if least, err = k.F(lo); err == nil {
		greatest, err = k.F(hi)
	}
	return least, greatest, err
}

// Error says why a function has no result here: the statement is forwarded.
type Error struct{ Detail string }

// Error implements error.
func (e *Error) Error() string { return e.Detail }

func failed(detail string) error { return &Error{detail} }

// Apply computes the function of one row, nulls included.
func (f *Function) Apply(args []vector.Value) (vector.Value, error) {
	if !f.CalledOnNull {
		for _, a := range args {
			if a.Null {
				return a, nil
			}
		}
	}
	return f.Eval(args)
}

// ResultType returns the type of a call's result. Text has no collation yet.
func (f *Function) ResultType(c Call) vector.Type {
	if f.Type != nil {
		return f.Type(c)
	}
	return vector.TypeOf(f.Result)
}

// Takes reports whether a constant may stand there: Constants says so.
func (p *Param) Takes(c string) bool {
	if p.AnyCase {
		c = strings.ToLower(c)
	}
	return p.Constants == nil || slices.Contains(p.Constants, c) || p.Also != nil && p.Also(c)
}

// Accepts reports whether a call has the arguments and the result that f has.
func (f *Function) Accepts(c Call) bool {
	if len(c.Args) != len(f.Args) {
		return false
	}
	for i, a := range c.Args {
		p := &f.Args[i]
		if a.Type.Kind != p.Kind || p.Constants != nil && (a.Const == nil || a.Const.Null || !p.Takes(a.Const.Str)) {
			return false
		}
	}
	t := f.ResultType(c)
	// Once parameters have values the scale may be known that was not when T was.
	return c.T.Kind == t.Kind && (c.T.Scale == t.Scale || c.T.Varying())
}

var (
	all    = slices.Concat(datetime, numeric, text, arithmetics, strs, reshapes, characters, matches, numberChars, documents, madeDocuments, textNumbers, rawDocuments, bitwise, scales, clocks, conversions, splits, binary, bytesLike, encodings, amounts, bitStrings)
	byOID  = map[uint32]*Function{}
	byName = map[string][]*Function{}
)

func init() {
	for i := range all {
		f := &all[i]
		if byOID[f.OID] != nil {
			panic("BUG: two functions of one OID: " + f.Name)
		}
		byOID[f.OID] = f
		byName[f.Name] = append(byName[f.Name], f)
	}
}

// All returns all functions, which the caller must not change.
func All() []Function { return all }

// ByOID returns the function of pg_proc.oid, nil where there is none.
func ByOID(oid uint32) *Function { return byOID[oid] }

// Named returns the overloads of a name.
func Named(name string) []*Function { return byName[name] }

// Lookup returns the overload with exactly these arguments, nil where there is none.
func Lookup(name string, args ...vector.Kind) *Function {
	for _, f := range byName[name] {
		if slices.EqualFunc(f.Args, args, func(p Param, k vector.Kind) bool { return p.Kind == k }) {
			return f
		}
	}
	return nil
}
