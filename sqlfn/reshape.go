package sqlfn

import (
	"crypto/md5"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"pgaccel/vector"
)

// maxMade is the greatest length, in characters and in bytes, of what a small argument makes out of little here. The
// server makes up to a gigabyte, one row at a time.
const maxMade = 1 << 20

// reshapes are functions that take strings apart, fill them up and repeat them, in databases of UTF-8
// (PostgreSQL's varlena.c and oracle_compat.c).
var reshapes = []Function{
	{
		Name: "split_part", OID: 2088, Result: vector.Text,
		Args:     []Param{{Kind: vector.Text}, {Kind: vector.Text, Usual: partSamples}, {Kind: vector.Int4, Usual: []string{"1", "2", "3"}}},
		Samples:  [][]string{append([]string{"a,b,,c", "aaaaa", ",", "日本語本"}, textSamples...), append([]string{",", "本"}, partSamples...), splitSamples},
		TotalFor: func(c Call) bool { n := c.Args[2].Const; return n != nil && (n.Null || n.I != 0) },
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, separator, n := args[0].Str, args[1].Str, args[2].I
			switch {
			case n == 0:
				return vector.NullValue, failed("field position must not be zero")
			case n > 0:
				return vector.Value{Str: fieldOf(s, separator, n)}, nil
			case separator == "" && n < -1:
				return vector.Value{}, nil
			case separator == "":
				return args[0], nil
			}
			// Separators that overlap are found from the front.
			if n += int64(strings.Count(s, separator)) + 2; n <= 0 {
				return vector.Value{}, nil
			}
			return vector.Value{Str: fieldOf(s, separator, n)}, nil
		},
	},
	padOf("lpad", 873, true),
	padOf("lpad", 879, false),
	padOf("rpad", 874, true),
	padOf("rpad", 880, false),
	{
		Name: "repeat", OID: 1622, Result: vector.Text, Args: []Param{{Kind: vector.Text}, {Kind: vector.Int4, Usual: []string{"0", "1", "2", "3", "-1"}}},
		Samples:  [][]string{textSamples, {"0", "1", "2", "3", "100", "-1", "-2147483648", "1100000000"}},
		TotalFor: func(c Call) bool { n := c.Args[1].Const; return n != nil && (n.Null || n.I <= 1) },
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, n := args[0].Str, max(args[1].I, 0)
			switch {
			case s == "" || n == 1:
				return args[0], nil
			case n > maxMade/int64(len(s)):
				return vector.NullValue, failed("text of this length")
			}
			return vector.Value{Str: strings.Repeat(s, int(n))}, nil
		},
	},
	{
		Name: "reverse", OID: 3062, Result: vector.Text, Args: []Param{{Kind: vector.Text}}, Total: true, Samples: [][]string{textSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			s := args[0].Str
			b := make([]byte, len(s))
			end := len(s)
			for at := 0; at < len(s); {
				_, n := utf8.DecodeRuneInString(s[at:])
				end -= n
				copy(b[end:], s[at:at+n])
				at += n
			}
			return vector.Value{Str: string(b)}, nil
		},
	},
	{
		Name: "md5", OID: 2311, Result: vector.Text, Args: []Param{{Kind: vector.Text}}, Samples: [][]string{textSamples}, Total: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			sum := md5.Sum([]byte(args[0].Str))
			return vector.Value{Str: hex.EncodeToString(sum[:])}, nil
		},
	},
	initcap(),
}

var (
	splitSamples = []string{"1", "2", "3", "0", "-1", "-2", "-3", "100", "-100", "2147483647", "-2147483648"}
	padSamples   = []string{"8", "10", "3", "0", "1", "2", "-1", "100", "300000000", "2147483647", "-2147483648"}
)

// fieldOf returns field n of those between separators, from 1 on.
func fieldOf(s, separator string, n int64) string {
	if separator == "" {
		if n > 1 {
			return ""
		}
		return s
	}
	for ; n > 1; n-- {
		_, rest, found := strings.Cut(s, separator)
		if !found {
			return ""
		}
		s = rest
	}
	field, _, _ := strings.Cut(s, separator)
	return field
}

// padOf fills a string up to a length, or cuts it off there: with argument 3 over and over, or with blanks.
func padOf(name string, oid uint32, given bool) Function {
	f := Function{
		Name: name, OID: oid, Result: vector.Text, Args: []Param{{Kind: vector.Text}, {Kind: vector.Int4, Usual: padSamples[:6]}},
		Samples:  [][]string{textSamples, padSamples},
		TotalFor: func(c Call) bool { n := c.Args[1].Const; return n != nil && (n.Null || n.I <= maxMade) },
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, n, fill := args[0].Str, max(args[1].I, 0), " "
			if given {
				fill = args[2].Str
			}
			have := int64(utf8.RuneCountInString(s))
			lacks := n - have
			switch {
			case min(n, have) > maxText/4: // the server wants four bytes of each character
				return vector.NullValue, failed("text of this length")
			case lacks <= 0:
				return vector.Value{Str: s[:offset(s, n)]}, nil
			case fill == "":
				return args[0], nil
			case n > maxMade:
				return vector.NullValue, failed("text of this length")
			}
			whole, part := lacks/int64(utf8.RuneCountInString(fill)), lacks%int64(utf8.RuneCountInString(fill))
			fill = strings.Repeat(fill, int(whole)) + fill[:offset(fill, part)]
			if name == "lpad" {
				return vector.Value{Str: fill + s}, nil
			}
			return vector.Value{Str: s + fill}, nil
		},
	}
	if given {
		f.Args = append(f.Args, Param{Kind: vector.Text, Usual: partSamples})
		f.Samples = append(f.Samples, partSamples)
	}
	return f
}

// initcap begins words with capitals. In C these are of letters and digits of ASCII. Elsewhere the server may ask ICU, to
// which a_b, a.b and 1a are other words than to the C library: of texts with more than letters and what always divides
// them Eval has no result, nor of words with ij in front, which is one letter in Dutch.
func initcap() Function {
	f := Function{Name: "initcap", OID: 872, Result: vector.Text, Args: []Param{{Kind: vector.Text}}, Samples: [][]string{append([]string{"a b", "hELLO world-wide, (wEB)", "x"}, textSamples...)}}
	ascii := f
	ascii.Total = true
	ascii.Samples = [][]string{append([]string{"1a a1b", "a_b.c'd", "éa", "ijs"}, f.Samples[0]...)}
	ascii.Eval = func(args []vector.Value) (vector.Value, error) {
		b := []byte(args[0].Str)
		within := false
		for i, c := range b {
			switch {
			case within && 'A' <= c && c <= 'Z':
				b[i] += 'a' - 'A'
			case !within && 'a' <= c && c <= 'z':
				b[i] -= 'a' - 'A'
			}
			within = letter(c) || '0' <= c && c <= '9'
		}
		return vector.Value{Str: string(b)}, nil
	}
	f.InASCII = &ascii
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		s := args[0].Str
		letters, strange := false, false
		for i := range len(s) {
			c := s[i]
			switch {
			case letter(c):
				letters = true
				strange = strange || c|0x20 == 'i' && i+1 < len(s) && s[i+1]|0x20 == 'j' && (i == 0 || !letter(s[i-1]))
			case c >= utf8.RuneSelf:
				return vector.NullValue, failed("case of letters outside of ASCII")
			default:
				strange = strange || strings.IndexByte(" \t\n\r-,()/&+", c) < 0
			}
		}
		if letters && strange {
			return vector.NullValue, failed("initcap() of more than words of letters")
		}
		return ascii.Eval(args)
	}
	return f
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
