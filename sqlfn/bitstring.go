package sqlfn

import (
	"math"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// OIDBitCat is the operator || of strings of bits.
const OIDBitCat = 1679

// bitStrings are functions, operators and casts of strings of bits (PostgreSQL's varbit.c), which are held as characters 0 and 1.
var bitStrings = []Function{
	bitwiseOf("bitand", 1673, func(a, b byte) byte { return a & b }),
	bitwiseOf("bitor", 1674, func(a, b byte) byte { return a | b }),
	bitwiseOf("bitxor", 1675, func(a, b byte) byte { return a ^ b ^ '0' }),
	{Name: "bitnot", OID: 1676, Result: vector.Bit, Args: []Param{{Kind: vector.Bit}}, Total: true, Samples: [][]string{bitSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			b := []byte(args[0].Str)
			for i := range b {
				b[i] ^= 1
			}
			return vector.Value{Str: string(b)}, nil
		}},
	{Name: "bitcat", OID: OIDBitCat, Result: vector.VarBit, Args: []Param{{Kind: vector.VarBit}, {Kind: vector.VarBit}}, Total: true, Samples: [][]string{varbitSamples, varbitSamples},
		Eval: func(args []vector.Value) (vector.Value, error) { return held(args[0].Str, args[1].Str) }},
	bitShiftOf("bitshiftleft", 1677, 1),
	bitShiftOf("bitshiftright", 1678, -1),
	bitNumberOf("length", 1681, vector.Int4, func(s string) int64 { return int64(len(s)) }),
	bitNumberOf("bit_length", 1812, vector.Int4, func(s string) int64 { return int64(len(s)) }),
	bitNumberOf("octet_length", 1682, vector.Int4, func(s string) int64 { return int64(len(s)+7) / 8 }),
	bitNumberOf("bit_count", 6162, vector.Int8, func(s string) int64 { return int64(strings.Count(s, "1")) }),
	{Name: "get_bit", OID: 3032, Result: vector.Int4, Args: []Param{{Kind: vector.Bit}, {Kind: vector.Int4, Usual: []string{"0"}}}, Samples: [][]string{bitSamples, {"0", "0", "0", "1", "-1"}}, Partial: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			if args[1].I < 0 || args[1].I >= int64(len(args[0].Str)) {
				return vector.NullValue, failed("bit index out of valid range")
			}
			return vector.Value{I: int64(args[0].Str[args[1].I] - '0')}, nil
		}},
	numberOfBits("int4", 1684, vector.Int4, 32, func(v uint64) int64 { return int64(int32(v)) }),
	numberOfBits("int8", 2076, vector.Int8, 64, func(v uint64) int64 { return int64(v) }),
	bitsOfNumber(1683, vector.Int4),
	bitsOfNumber(2075, vector.Int8),
	bitLengthOf("bit", OIDBitLength, vector.Bit),
	bitLengthOf("varbit", OIDVarBitLength, vector.VarBit),
}

// The functions of casts to a length.
const (
	OIDBitLength    = 1685
	OIDVarBitLength = 1687
)

// BitAsVarBit and VarBitAsBit are casts for which the server calls nothing.
var (
	BitAsVarBit = &Function{Name: "varbit", OID: oidBitAsVarBit, Result: vector.VarBit, Total: true, Args: []Param{{Kind: vector.Bit}},
		Eval: func(args []vector.Value) (vector.Value, error) { return args[0], nil }}
	VarBitAsBit = &Function{Name: "bit", OID: oidVarBitAsBit, Result: vector.Bit, Total: true, Args: []Param{{Kind: vector.VarBit}},
		Eval: func(args []vector.Value) (vector.Value, error) { return args[0], nil }}
)

var (
	bitSamples       = sqltype.Of(vector.Bit).Samples
	varbitSamples    = sqltype.Of(vector.VarBit).Samples
	bitLengthSamples = []string{"1", "2", "8", "31", "32", "33", "64", "70"}
)

// mostBits bounds the lengths of which strings are made here.
const mostBits = 1 << 16

// bitwiseOf is of strings of one length.
func bitwiseOf(name string, oid uint32, f func(a, b byte) byte) Function {
	return Function{Name: name, OID: oid, Result: vector.Bit, Args: []Param{{Kind: vector.Bit}, {Kind: vector.Bit}}, Samples: [][]string{bitSamples, bitSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			l, r := args[0].Str, args[1].Str
			if len(l) != len(r) {
				return vector.NullValue, failed("bit strings of different sizes")
			}
			out := make([]byte, len(l))
			for i := range out {
				out[i] = f(l[i], r[i])
			}
			return vector.Value{Str: string(out)}, nil
		}}
}

// bitShiftOf shifts to the left, with sign -1 to the right.
func bitShiftOf(name string, oid uint32, sign int64) Function {
	return Function{Name: name, OID: oid, Result: vector.Bit, Args: []Param{{Kind: vector.Bit}, {Kind: vector.Int4, Usual: []string{"1", "3"}}}, Total: true,
		Samples: [][]string{bitSamples, {"0", "1", "-1", "8", "-2147483648", "2147483647"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, n := args[0].Str, sign*args[1].I
			size := int64(len(s))
			switch {
			case n >= size, -n >= size:
				return vector.Value{Str: strings.Repeat("0", len(s))}, nil
			case n >= 0:
				return vector.Value{Str: s[n:] + strings.Repeat("0", int(n))}, nil
			}
			return vector.Value{Str: strings.Repeat("0", int(-n)) + s[:size+n]}, nil
		}}
}

func bitNumberOf(name string, oid uint32, k vector.Kind, f func(s string) int64) Function {
	return Function{Name: name, OID: oid, Result: k, Args: []Param{{Kind: vector.Bit}}, Total: true, Samples: [][]string{bitSamples},
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: f(args[0].Str)}, nil }}
}

// numberOfBits is a cast to an integer, whose sign is the first of all of its bits.
func numberOfBits(name string, oid uint32, k vector.Kind, width int, f func(v uint64) int64) Function {
	return Function{Name: name, OID: oid, Result: k, Args: []Param{{Kind: vector.Bit}}, Samples: [][]string{bitSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			s := args[0].Str
			if len(s) > width {
				return vector.NullValue, failed(k.String() + " out of range")
			}
			v := uint64(0)
			for i := range len(s) {
				v = v<<1 | uint64(s[i]-'0')
			}
			return vector.Value{I: f(v)}, nil
		}}
}

// bitsOfNumber are the last bits of an integer, before which those of its sign are.
func bitsOfNumber(oid uint32, k vector.Kind) Function {
	return Function{Name: "bit", OID: oid, Result: vector.Bit, Args: []Param{{Kind: k}, {Kind: vector.Int4, Usual: []string{"8", "32"}}}, Samples: [][]string{intSamples[k], bitLengthSamples},
		Type: bitTypeOf(vector.Bit),
		Eval: func(args []vector.Value) (vector.Value, error) {
			n := args[1].I
			if n <= 0 || n > mostBits {
				return vector.NullValue, failed("a bit string of this length")
			}
			out := make([]byte, n)
			for i := range out {
				out[i] = '0' + byte(args[0].I>>min(n-1-int64(i), 63)&1)
			}
			return vector.Value{Str: string(out)}, nil
		}}
}

// bitLengthOf is a cast to a length: bits are cut off at the end, and of bit as many 0 added there.
func bitLengthOf(name string, oid uint32, k vector.Kind) Function {
	samples := bitSamples
	if k == vector.VarBit {
		samples = varbitSamples
	}
	return Function{Name: name, OID: oid, Result: k, Args: []Param{{Kind: k}, {Kind: vector.Int4, Usual: []string{"1", "4", "8"}}, {Kind: vector.Bool, Usual: []string{"true"}}}, Samples: [][]string{samples, bitLengthSamples, {"t", "t", "f"}},
		Type: bitTypeOf(k),
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, n := args[0].Str, args[1].I
			switch size := int64(len(s)); {
			case n <= 0 || n > mostBits:
				return vector.NullValue, failed("a bit string of this length")
			case n == size, k == vector.VarBit && n > size:
			case args[2].I == 0:
				return vector.NullValue, failed("a bit string of another length")
			case n < size:
				s = s[:n]
			default:
				s += strings.Repeat("0", int(n-size))
			}
			return vector.Value{Str: s}, nil
		}}
}

// bitTypeOf has the length where that is constant.
func bitTypeOf(k vector.Kind) func(c Call) vector.Type {
	return func(c Call) vector.Type {
		t := vector.TypeOf(k)
		if n := c.Args[1].Const; n != nil && !n.Null && n.I > 0 && n.I <= math.MaxInt32 {
			t.Typmod = int32(n.I)
		}
		return t
	}
}
