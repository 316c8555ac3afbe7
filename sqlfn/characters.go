package sqlfn

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"pgaccel/vector"
)

// characters are functions of single characters of strings, and of the text of values, in databases of UTF-8 (PostgreSQL's
// varlena.c and oracle_compat.c).
var characters = []Function{
	{
		Name: "translate", OID: 878, Result: vector.Text, Total: true,
		Args:    []Param{{Kind: vector.Text}, {Kind: vector.Text, Usual: partSamples}, {Kind: vector.Text, Usual: partSamples}},
		Samples: [][]string{textSamples, append([]string{"abc", "aba", "óż本"}, partSamples...), append([]string{"xyz", "żx"}, partSamples...)},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return translated(args[0].Str, args[1].Str, args[2].Str)
		},
	},
	overlayOf(1404, true),
	overlayOf(1405, false),
	{
		Name: "ascii", OID: 1620, Result: vector.Int4, Args: []Param{{Kind: vector.Text}}, Samples: [][]string{textSamples}, Total: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			if args[0].Str == "" {
				return vector.Value{}, nil
			}
			c, _ := utf8.DecodeRuneInString(args[0].Str)
			return vector.Value{I: int64(c)}, nil
		},
	},
	{
		Name: "chr", OID: OIDChr, Result: vector.Text, Args: []Param{{Kind: vector.Int4}}, Partial: true,
		Samples:  [][]string{{"65", "1", "10", "127", "128", "233", "26085", "55295", "57344", "65535", "128512", "1114111", "0", "-1", "55296", "57343", "1114112", "2147483647"}},
		TotalFor: func(c Call) bool { n := c.Args[0].Const; return n != nil && (n.Null || validChar(n.I)) },
		Eval: func(args []vector.Value) (vector.Value, error) {
			if !validChar(args[0].I) {
				return vector.NullValue, failed("requested character not valid for encoding")
			}
			return vector.Value{Str: string(rune(args[0].I))}, nil
		},
	},
	toHexOf(2089, vector.Int4),
	toHexOf(2090, vector.Int8),
	{
		Name: "starts_with", OID: OIDStartsWith, Result: vector.Bool, Args: []Param{{Kind: vector.Text}, {Kind: vector.Text, Usual: partSamples}}, Total: true,
		Samples: [][]string{textSamples, append([]string{"Abc", "Abc def!", "żó", "\xc5\xbc"}, partSamples...)},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.BoolValue(strings.HasPrefix(args[0].Str, args[1].Str)), nil
		},
	},
	{
		Name: "bit_length", OID: 1811, Result: vector.Int4, Args: []Param{{Kind: vector.Text}}, Samples: [][]string{textSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			n := int64(len(args[0].Str)) * 8
			if n > math.MaxInt32 {
				return vector.NullValue, failed("integer out of range")
			}
			return vector.Value{I: n}, nil
		},
	},
	concatWS,
}

// OIDs of functions that are called otherwise than by their names.
const (
	OIDStartsWith = 3696 // the operator ^@
	OIDConcatWS   = 3059
	OIDChr        = 1621 // whose characters are those of the database's encoding
)

func validChar(c int64) bool { return c > 0 && c <= utf8.MaxRune && utf8.ValidRune(rune(c)) }

// translated puts for each character of s that is one of from the one at its place in to, and nothing where to is shorter.
func translated(s, from, to string) (vector.Value, error) {
	if len(s) > maxText/4 { // the server makes room for four bytes of each
		return vector.NullValue, failed("text of this length")
	}
	if from == "" {
		return vector.Value{Str: s}, nil
	}
	set, by := []rune(from), []rune(to)
	return vector.Value{Str: strings.Map(func(c rune) rune {
		switch at := slices.Index(set, c); {
		case at < 0:
			return c
		case at < len(by):
			return by[at]
		}
		return -1
	}, s)}, nil
}

// overlayOf puts argument 2 in place of characters of argument 1, from the one numbered as argument 3: as many as argument 4
// says, or as argument 2 has.
func overlayOf(oid uint32, length bool) Function {
	f := Function{
		Name: "overlay", OID: oid, Result: vector.Text,
		Args:    []Param{{Kind: vector.Text}, {Kind: vector.Text, Usual: partSamples}, {Kind: vector.Int4, Usual: []string{"1", "2", "3", "8"}}},
		Samples: [][]string{textSamples, {"", "x", "żół", "long enough"}, {"1", "2", "4", "100", "0", "-1", "2147483647", "-2147483648"}},
	}
	return overlaid(f, length, utf8.RuneCountInString, offset)
}

// overlaid completes overlay() of what has units, of which count are in a string, and the n-th, from 0, is at an offset.
func overlaid(f Function, length bool, count func(s string) int, offset func(s string, n int64) int) Function {
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		s, with, from := args[0].Str, args[1].Str, args[2].I
		n := int64(count(with))
		if length {
			n = args[3].I
		}
		switch {
		case from <= 0:
			return vector.NullValue, failed("negative substring length not allowed")
		case from+n > math.MaxInt32:
			return vector.NullValue, failed("integer out of range")
		}
		head, tail := s[:offset(s, from-1)], s[offset(s, from+n-1):]
		if len(head)+len(with)+len(tail) > maxText {
			return vector.NullValue, failed(f.Result.String() + " of this length")
		}
		return vector.Value{Str: head + with + tail}, nil
	}
	if length {
		f.Args = append(f.Args, Param{Kind: vector.Int4, Usual: []string{"0", "1", "2"}})
		f.Samples = append(f.Samples, []string{"0", "1", "3", "100", "-1", "-2147483648", "2147483647"})
	}
	return f
}

// toHexOf writes an integer's bits.
func toHexOf(oid uint32, k vector.Kind) Function {
	return Function{
		Name: "to_hex", OID: oid, Result: vector.Text, Args: []Param{{Kind: k}}, Total: true,
		Samples: [][]string{{"0", "1", "-1", "255", "2147483647", "-2147483648"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			v := uint64(args[0].I)
			if k == vector.Int4 {
				v = uint64(uint32(v))
			}
			return vector.Value{Str: strconv.FormatUint(v, 16)}, nil
		},
	}
}

// concatWS puts a separator between values. A null among these is left out.
var concatWS = Function{
	Name: "concat_ws", OID: OIDConcatWS, Result: vector.Text, Args: []Param{{Kind: vector.Text, Usual: partSamples}, {Kind: vector.Text}, {Kind: vector.Text}},
	Total: true, Variadic: true, CalledOnNull: true, Samples: [][]string{partSamples, textSamples, textSamples},
	Eval: func(args []vector.Value) (vector.Value, error) {
		if args[0].Null {
			return vector.NullValue, nil
		}
		var list []string
		size := 0
		for _, v := range args[1:] {
			if !v.Null {
				list = append(list, v.Str)
				size += len(v.Str) + len(args[0].Str)
			}
		}
		if size > maxText+len(args[0].Str) {
			return vector.NullValue, failed("text of this length")
		}
		return vector.Value{Str: strings.Join(list, args[0].Str)}, nil
	},
}

// maxArgs is the most arguments that a function of the server's has (FUNC_MAX_ARGS).
const maxArgs = 100

// concatsWS are concat_ws() by the number of their arguments: each is one function, as those of the table are.
var concatsWS [maxArgs + 1]atomic.Pointer[Function]

// ConcatWS returns concat_ws() of n arguments, the separator one of them; nil where the server has none.
func ConcatWS(n int) *Function {
	if n < 2 || n > maxArgs {
		return nil
	}
	if n == len(concatWS.Args) {
		return ByOID(OIDConcatWS)
	}
	if f := concatsWS[n].Load(); f != nil {
		return f
	}
	f := concatWS
	f.Args = slices.Repeat([]Param{{Kind: vector.Text}}, n)
	concatsWS[n].CompareAndSwap(nil, &f)
	return concatsWS[n].Load()
}
