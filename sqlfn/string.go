package sqlfn

import (
	"math"
	"strings"
	"unicode/utf8"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// OIDs of functions that pushdown calls for something else than their name.
const (
	OIDTextCat    = 1258 // the operator || of texts
	OIDTextAnyCat = 2003 // and of a text and something else, which is that of texts in SQL
	OIDAnyTextCat = 2004
	OIDConcat     = 3058
	OIDLower      = 870 // which ILIKE is of
)

// strs are functions that make strings of strings, in databases of UTF-8 (PostgreSQL's varlena.c and
// oracle_compat.c).
var strs = []Function{
	{
		Name: "textcat", OID: OIDTextCat, Result: vector.Text, Args: []Param{{Kind: vector.Text}, {Kind: vector.Text}}, Total: true,
		Samples: [][]string{textSamples, textSamples},
		Eval:    func(args []vector.Value) (vector.Value, error) { return held(args[0].Str, args[1].Str) },
	},
	{
		// Of two of its arguments: concat(a, b, c) is concat(concat(a, b), c).
		Name: "concat", OID: OIDConcat, Result: vector.Text, Args: []Param{{Kind: vector.Text}, {Kind: vector.Text}}, Total: true,
		Variadic: true, CalledOnNull: true, Samples: [][]string{textSamples, textSamples},
		Eval: func(args []vector.Value) (vector.Value, error) { return held(args[0].Str, args[1].Str) }, // a null has no Str
	},
	casedOf("lower", OIDLower, (*sqltype.Cases).Lower, func(b byte) byte {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}),
	casedOf("upper", 871, (*sqltype.Cases).Upper, func(b byte) byte {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		return b
	}),
	{
		Name: "left", OID: 3060, Result: vector.Text, Args: []Param{{Kind: vector.Text}, {Kind: vector.Int4, Usual: lengthSamples[:6]}}, Total: true,
		Samples: [][]string{textSamples, lengthSamples},
		Prefix:  func(c Call) bool { n := c.Args[1].Const; return n != nil && !n.Null && n.I >= 0 },
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, n := args[0].Str, args[1].I
			if n < 0 { // without the last ones
				n += int64(utf8.RuneCountInString(s))
			}
			return vector.Value{Str: s[:offset(s, n)]}, nil
		},
	},
	{
		Name: "right", OID: 3061, Result: vector.Text, Args: []Param{{Kind: vector.Text}, {Kind: vector.Int4, Usual: lengthSamples[:6]}},
		Samples:  [][]string{textSamples, lengthSamples},
		TotalFor: func(c Call) bool { n := c.Args[1].Const; return n != nil && (n.Null || n.I > math.MinInt32) },
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, n := args[0].Str, args[1].I
			switch {
			case n == math.MinInt32: // the server negates it within 32 bits
				return vector.NullValue, failed("right() of the least integer")
			case n < 0: // without the first ones
				n = -n
			default:
				n = int64(utf8.RuneCountInString(s)) - n
			}
			return vector.Value{Str: s[offset(s, n):]}, nil
		},
	},
	{
		Name: "replace", OID: 2087, Result: vector.Text,
		Args:    []Param{{Kind: vector.Text}, {Kind: vector.Text, Usual: partSamples}, {Kind: vector.Text, Usual: partSamples}},
		Samples: [][]string{textSamples, partSamples, partSamples},
		TotalFor: func(c Call) bool {
			from, to := c.Args[1].Const, c.Args[2].Const
			return from != nil && to != nil && (from.Null || to.Null || from.Str == "" || len(to.Str) <= len(from.Str))
		},
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, from, to := args[0].Str, args[1].Str, args[2].Str
			if from == "" {
				return args[0], nil
			}
			if n := len(to) - len(from); n > 0 && len(s)+n*strings.Count(s, from) > maxText {
				return vector.NullValue, failed("text of this length")
			}
			return vector.Value{Str: strings.ReplaceAll(s, from, to)}, nil
		},
	},
	trimOf("btrim", 884, true, strings.Trim),
	trimOf("btrim", 885, false, strings.Trim),
	trimOf("ltrim", 875, true, strings.TrimLeft),
	trimOf("ltrim", 881, false, strings.TrimLeft),
	trimOf("rtrim", 876, true, strings.TrimRight),
	trimOf("rtrim", 882, false, strings.TrimRight),
	positionOf("strpos", 868),
	positionOf("position", 849),
	regexpReplace,
}

var (
	partSamples   = []string{"a", " ", "", "b", "%", "def", "ó", "aa", " a", "\\", "日本語"}
	lengthSamples = []string{"1", "2", "3", "0", "-1", "-3", "5", "100", "-100", "2147483647", "-2147483647", "-2147483648"}
)

// maxText is the greatest length of a value of the server's (MaxAllocSize, less its header).
const maxText = 1<<30 - 5

func held(a, b string) (vector.Value, error) {
	if len(a)+len(b) > maxText {
		return vector.NullValue, failed("text of this length")
	}
	return vector.Value{Str: a + b}, nil
}

// casedOf changes the case of letters. Of those outside of ASCII only the server knows which there are
// and what becomes of them, unless they are none: in C. See InCases.
func casedOf(name string, oid uint32, cased func(*sqltype.Cases, string) (string, bool), change func(byte) byte) Function {
	f := Function{Name: name, OID: oid, Result: vector.Text, Args: []Param{{Kind: vector.Text}}, Samples: [][]string{textSamples}}
	ascii := f
	ascii.Total = true
	ascii.Eval = func(args []vector.Value) (vector.Value, error) {
		b := []byte(args[0].Str)
		for i := range b {
			b[i] = change(b[i])
		}
		return vector.Value{Str: string(b)}, nil
	}
	f.InASCII, f.cased = &ascii, cased
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		for _, b := range []byte(args[0].Str) {
			if b >= utf8.RuneSelf {
				return vector.NullValue, failed("case of letters outside of ASCII")
			}
		}
		return ascii.Eval(args)
	}
	return f
}

// CanCases reports whether InCases is of use.
func (f *Function) CanCases() bool { return f.cased != nil }

// InCases returns a function of letters' cases under a collation that has these. ICU has rules for what stands side by side: Eval
// has no result where these are not known.
func (f *Function) InCases(c *sqltype.Cases) *Function {
	in := *f
	in.InASCII, in.cased, in.Cases = nil, nil, c
	in.Eval = func(args []vector.Value) (vector.Value, error) {
		s, ok := f.cased(c, args[0].Str)
		if !ok {
			return vector.NullValue, failed("case of letters that depends on what stands beside them")
		}
		if len(s) > maxText {
			return vector.NullValue, failed("text of this length")
		}
		return vector.Value{Str: s}, nil
	}
	return &in
}

// offset returns where the first n characters of s end.
func offset(s string, n int64) int {
	for i := range s {
		if n <= 0 {
			return i
		}
		n--
	}
	return len(s)
}

// trimOf removes characters of a set from the ends: blanks, where there is no argument 2.
func trimOf(name string, oid uint32, set bool, trim func(s, set string) string) Function {
	f := Function{
		Name: name, OID: oid, Result: vector.Text, Args: []Param{{Kind: vector.Text}}, Total: true, Samples: [][]string{textSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			blanks := " "
			if set {
				blanks = args[1].Str
			}
			return vector.Value{Str: trim(args[0].Str, blanks)}, nil
		},
	}
	if set {
		f.Args = append(f.Args, Param{Kind: vector.Text, Usual: partSamples})
		f.Samples = append(f.Samples, partSamples)
	}
	return f
}

// positionOf returns the number of the character where argument 2 begins in argument 1, 0 where it does
// not occur.
func positionOf(name string, oid uint32) Function {
	return Function{
		Name: name, OID: oid, Result: vector.Int4, Args: []Param{{Kind: vector.Text}, {Kind: vector.Text, Usual: partSamples}}, Total: true,
		Samples: [][]string{textSamples, partSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			at := strings.Index(args[0].Str, args[1].Str)
			if at < 0 {
				return vector.Value{}, nil
			}
			return vector.Value{I: int64(utf8.RuneCountInString(args[0].Str[:at])) + 1}, nil
		},
	}
}
