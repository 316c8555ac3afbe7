package sqlfn

import (
	"math"
	"strings"
	"unicode/utf8"

	"pgaccel/vector"
)

// text are the functions of strings, in databases of UTF-8 (PostgreSQL's varlena.c and
// varchar.c). A char(n) has no length beyond its last character that is no blank, but octets.
var text = []Function{
	lengthOf("length", 1317, vector.Text),
	lengthOf("length", 1318, vector.BPChar),
	lengthOf("char_length", 1381, vector.Text),
	lengthOf("char_length", 1372, vector.BPChar),
	lengthOf("character_length", 1369, vector.Text),
	lengthOf("character_length", 1367, vector.BPChar),
	octetLengthOf(1374, vector.Text),
	octetLengthOf(1375, vector.BPChar),
	substringOf("substring", 936, true),
	substringOf("substring", 937, false),
	substringOf("substr", 877, true),
	substringOf("substr", 883, false),
}

var textSamples = []string{"", "a", "Abc def", "  blanks  ", "100%", `a\b'c"d`, "żółć", "日本語", "👩‍💻", "é", "tab\tand\nline"}

func lengthOf(name string, oid uint32, k vector.Kind) Function {
	length := Characters
	if k == vector.BPChar { // without trailing blanks
		length = NoLength
	}
	return Function{
		Name: name, OID: oid, Result: vector.Int4, Args: []Param{{Kind: k}}, Total: true, Samples: [][]string{textSamples}, Length: length,
		Eval: func(args []vector.Value) (vector.Value, error) {
			s := args[0].Str
			if k == vector.BPChar {
				s = strings.TrimRight(s, " ")
			}
			return vector.Value{I: int64(utf8.RuneCountInString(s))}, nil
		},
	}
}

func octetLengthOf(oid uint32, k vector.Kind) Function {
	length := Bytes
	if k == vector.BPChar {
		length = NoLength
	}
	return Function{
		Name: "octet_length", OID: oid, Result: vector.Int4, Args: []Param{{Kind: k}}, Total: true, Samples: [][]string{textSamples}, Length: length,
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: int64(len(args[0].Str))}, nil },
	}
}

// substringBounds is the first unit that substring(s, from, length) has, from 1, and the one behind its last.
func substringBounds(args []vector.Value) (from, end int64, err error) {
	from, end = args[1].I, math.MaxInt64
	if len(args) == 2 {
		return from, end, nil
	}
	switch n := args[2].I; {
	case n < 0:
		return 0, 0, failed("negative substring length not allowed")
	case from+n <= math.MaxInt32: // the server takes what it cannot add up for the end of the string
		end = from + n
	}
	return from, end, nil
}

// substringOf is text_substring: length characters from the one numbered start on, which may lie
// before the first. Without a length it is all of the rest.
func substringOf(name string, oid uint32, length bool) Function {
	starts, lengths := []string{"1", "2", "0", "-1", "5", "2147483647", "-2147483648"}, []string{"0", "1", "3", "100", "-1", "2147483647"}
	f := Function{
		Name: name, OID: oid, Result: vector.Text, Args: []Param{{Kind: vector.Text}, {Kind: vector.Int4}},
		Samples: [][]string{textSamples, starts},
		Eval: func(args []vector.Value) (vector.Value, error) {
			from, end, err := substringBounds(args)
			if err != nil {
				return vector.Value{}, err
			}
			s := args[0].Str
			n := int64(0)
			start := len(s)
			for i := range s {
				if n++; n >= end {
					return vector.Value{Str: s[min(start, i):i]}, nil
				}
				if n >= from && start == len(s) {
					start = i
				}
			}
			return vector.Value{Str: s[start:]}, nil
		},
	}
	if length {
		f.Prefix = func(c Call) bool {
			from, n := c.Args[1].Const, c.Args[2].Const
			return from != nil && n != nil && !from.Null && !n.Null && from.I <= 1 && n.I >= 0
		}
		f.TotalFor = func(c Call) bool { n := c.Args[2].Const; return n != nil && (n.Null || n.I >= 0) }
		f.Args = append(f.Args, Param{Kind: vector.Int4})
		f.Samples = append(f.Samples, lengths)
	}
	return f
}
