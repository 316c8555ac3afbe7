package sqlfn

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"math"
	"math/bits"
	"strings"

	"pgaccel/vector"
)

// OIDByteaCat is the operator || of bytea.
const OIDByteaCat = 2011

// binary are functions of bytea (PostgreSQL's varlena.c and cryptohashfuncs.c).
var binary = []Function{
	bytesLengthOf("length", 2010, 1),
	bytesLengthOf("octet_length", 720, 1),
	bytesLengthOf("bit_length", 1810, 8),
	{
		Name: "byteacat", OID: OIDByteaCat, Result: vector.Bytea, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Bytea}}, Total: true,
		Samples: [][]string{byteaSamples, byteaSamples},
		Eval:    func(args []vector.Value) (vector.Value, error) { return held(args[0].Str, args[1].Str) },
	},
	subbytesOf("substring", 2012, true),
	subbytesOf("substring", 2013, false),
	subbytesOf("substr", 2085, true),
	subbytesOf("substr", 2086, false),
	bytesOverlayOf(749, true),
	bytesOverlayOf(752, false),
	{
		Name: "position", OID: 2014, Result: vector.Int4, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Bytea, Usual: byteaSamples[:6]}}, Total: true,
		Samples: [][]string{byteaSamples, byteaSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{I: int64(strings.Index(args[0].Str, args[1].Str)) + 1}, nil
		},
	},
	bytesTrimOf("btrim", 2015, true, true),
	bytesTrimOf("ltrim", 6195, true, false),
	bytesTrimOf("rtrim", 6196, false, true),
	byteAt, bitAt, byteSet, bitSet,
	{
		Name: "bit_count", OID: 6163, Result: vector.Int8, Args: []Param{{Kind: vector.Bytea}}, Total: true, Samples: [][]string{byteaSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			n := 0
			for _, b := range []byte(args[0].Str) {
				n += bits.OnesCount8(b)
			}
			return vector.Value{I: int64(n)}, nil
		},
	},
	{
		Name: "md5", OID: 2321, Result: vector.Text, Args: []Param{{Kind: vector.Bytea}}, Total: true, Samples: [][]string{byteaSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			sum := md5.Sum([]byte(args[0].Str))
			return vector.Value{Str: hex.EncodeToString(sum[:])}, nil
		},
	},
	hashOf("sha224", 3419, func(b []byte) []byte { h := sha256.Sum224(b); return h[:] }),
	hashOf("sha256", 3420, func(b []byte) []byte { h := sha256.Sum256(b); return h[:] }),
	hashOf("sha384", 3421, func(b []byte) []byte { h := sha512.Sum384(b); return h[:] }),
	hashOf("sha512", 3422, func(b []byte) []byte { h := sha512.Sum512(b); return h[:] }),
}

var (
	byteaSamples  = []string{"", "a", `\x00`, `\x6162`, `\xff`, " a ", `\xdeadbeef`, `\x0000`, `\x80ff80`, `a\\b`, "größe", `\x00610062`, `\x6162616261`}
	offsetSamples = []string{"0", "1", "2", "3", "7", "8", "31", "32", "-1", "2147483647", "-2147483648"}
)

// bytesLengthOf counts units of which a byte has some.
func bytesLengthOf(name string, oid uint32, units int64) Function {
	return Function{
		Name: name, OID: oid, Result: vector.Int4, Args: []Param{{Kind: vector.Bytea}}, Total: units == 1, Samples: [][]string{byteaSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			n := int64(len(args[0].Str)) * units
			if n > math.MaxInt32 {
				return vector.NullValue, failed("integer out of range")
			}
			return vector.Value{I: n}, nil
		},
	}
}

// byteOffset is offset in bytes.
func byteOffset(s string, n int64) int { return int(min(max(n, 0), int64(len(s)))) }

// subbytesOf is bytea_substring, as substringOf is that of text.
func subbytesOf(name string, oid uint32, length bool) Function {
	f := Function{
		Name: name, OID: oid, Result: vector.Bytea, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Int4}}, Total: !length,
		Samples: [][]string{byteaSamples, {"1", "2", "0", "-1", "5", "2147483647", "-2147483648"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			from, end, err := substringBounds(args)
			if err != nil {
				return vector.NullValue, err
			}
			s := args[0].Str
			start := byteOffset(s, from-1)
			return vector.Value{Str: s[start:max(start, byteOffset(s, end-1))]}, nil
		},
	}
	if length {
		f.TotalFor = func(c Call) bool { n := c.Args[2].Const; return n != nil && (n.Null || n.I >= 0) }
		f.Args = append(f.Args, Param{Kind: vector.Int4})
		f.Samples = append(f.Samples, []string{"0", "1", "3", "100", "-1", "2147483647"})
	}
	return f
}

// bytesOverlayOf is overlayOf of bytes.
func bytesOverlayOf(oid uint32, length bool) Function {
	f := Function{
		Name: "overlay", OID: oid, Result: vector.Bytea,
		Args:    []Param{{Kind: vector.Bytea}, {Kind: vector.Bytea, Usual: byteaSamples[:6]}, {Kind: vector.Int4, Usual: []string{"1", "2", "3", "8"}}},
		Samples: [][]string{byteaSamples, {"", "x", `\x00ff`, "long enough"}, {"1", "2", "4", "100", "0", "-1", "2147483647", "-2147483648"}},
	}
	return overlaid(f, length, func(s string) int { return len(s) }, byteOffset)
}

// bytesTrimOf removes bytes of a set from the ends.
func bytesTrimOf(name string, oid uint32, left, right bool) Function {
	return Function{
		Name: name, OID: oid, Result: vector.Bytea, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Bytea, Usual: byteaSamples[:6]}}, Total: true,
		Samples: [][]string{byteaSamples, byteaSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, set := args[0].Str, []byte(args[1].Str)
			for left && s != "" && bytes.IndexByte(set, s[0]) >= 0 {
				s = s[1:]
			}
			for right && s != "" && bytes.IndexByte(set, s[len(s)-1]) >= 0 {
				s = s[:len(s)-1]
			}
			return vector.Value{Str: s}, nil
		},
	}
}

// hashOf is a hash of bytes.
func hashOf(name string, oid uint32, sum func(b []byte) []byte) Function {
	return Function{Name: name, OID: oid, Result: vector.Bytea, Args: []Param{{Kind: vector.Bytea}}, Total: true, Samples: [][]string{byteaSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{Str: string(sum([]byte(args[0].Str)))}, nil
		},
	}
}

// byteAt to bitSet read and change a byte or a bit, numbered from 0; bits from the least of the first byte on.
var (
	byteAt = Function{
		Name: "get_byte", OID: 721, Result: vector.Int4, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Int4, Usual: offsetSamples[:1]}}, Partial: true,
		Samples: [][]string{append([]string{"ab"}, byteaSamples...), offsetSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, n := args[0].Str, args[1].I
			if n < 0 || n >= int64(len(s)) {
				return vector.NullValue, errIndex
			}
			return vector.Value{I: int64(s[n])}, nil
		},
	}
	bitAt = Function{
		Name: "get_bit", OID: 723, Result: vector.Int4, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Int8, Usual: offsetSamples[:6]}}, Partial: true,
		Samples: [][]string{append([]string{"ab"}, byteaSamples...), offsetSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, n := args[0].Str, args[1].I
			if n < 0 || n >= int64(len(s))*8 {
				return vector.NullValue, errIndex
			}
			return vector.Value{I: int64(s[n/8] >> (n % 8) & 1)}, nil
		},
	}
	byteSet = Function{
		Name: "set_byte", OID: 722, Result: vector.Bytea, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Int4}, {Kind: vector.Int4}}, Partial: true,
		Samples: [][]string{append([]string{"ab"}, byteaSamples...), offsetSamples, {"1", "0", "255", "256", "-1"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			n := args[1].I
			if n < 0 || n >= int64(len(args[0].Str)) {
				return vector.NullValue, errIndex
			}
			b := []byte(args[0].Str)
			b[n] = byte(args[2].I)
			return vector.Value{Str: string(b)}, nil
		},
	}
	bitSet = Function{
		Name: "set_bit", OID: 724, Result: vector.Bytea, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Int8}, {Kind: vector.Int4}}, Partial: true,
		Samples: [][]string{append([]string{"ab"}, byteaSamples...), offsetSamples, {"1", "0", "2", "-1"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			n, bit := args[1].I, args[2].I
			if n < 0 || n >= int64(len(args[0].Str))*8 {
				return vector.NullValue, errIndex
			}
			if bit != 0 && bit != 1 {
				return vector.NullValue, failed("new bit must be 0 or 1")
			}
			b := []byte(args[0].Str)
			b[n/8] = b[n/8]&^(1<<(n%8)) | byte(bit)<<(n%8)
			return vector.Value{Str: string(b)}, nil
		},
	}
	errIndex = failed("index out of valid range")
)

// OIDs of LIKE of bytea.
const (
	OIDByteaLike    = 2005
	OIDByteaNotLike = 2006
)

// bytesLike are LIKE and NOT LIKE of bytea (bytealike and byteanlike): _ is a byte, % any number of them.
var bytesLike = []Function{bytesLikeOf("bytealike", OIDByteaLike, true), bytesLikeOf("byteanlike", OIDByteaNotLike, false)}

func bytesLikeOf(name string, oid uint32, is bool) Function {
	return Function{Name: name, OID: oid, Result: vector.Bool, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Bytea, Usual: likeSamples[:6]}},
		Samples: [][]string{append([]string{"%", "a%b", `a\\%`, "aab"}, byteaSamples...), likeSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			p := args[1].Str
			if n := len(p) - len(strings.TrimRight(p, `\`)); n%2 == 1 { // an error where it is reached
				return vector.NullValue, failed("LIKE pattern must not end with escape character")
			}
			return vector.BoolValue(likeBytes(args[0].Str, p) == is), nil
		},
	}
}

var likeSamples = []string{"%", "a%", "%a", "_", "a", "%a%", "", "__", `\xff25`, `%\000`, `_%_`, `\\\\%`, `\\%`, `a\\\\_`, `%\200%`, `\x25625f`, `%ö%`, "%%a%%_%"}

// likeBytes matches a pattern: where what follows a % does not match, that takes a byte more.
func likeBytes(s, p string) bool {
	type place struct{ s, p string }
	var back *place
	for {
		switch {
		case p != "" && p[0] == '%':
			p = p[1:]
			back = &place{s, p}
			continue
		case p == "" && s == "":
			return true
		case p != "" && s != "":
			c, rest := p[0], p[1:]
			any := c == '_'
			if c == '\\' {
				c, rest = rest[0], rest[1:]
			}
			if any || c == s[0] {
				s, p = s[1:], rest
				continue
			}
		}
		if back == nil || back.s == "" {
			return false
		}
		back.s = back.s[1:]
		s, p = back.s, back.p
	}
}
