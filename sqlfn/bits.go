package sqlfn

import "pgaccel/vector"

// bitwise are the functions of the operators & | # << >> and ~ of integers (PostgreSQL's int.c and int8.c).
var bitwise = func() (list []Function) {
	for i, k := range []vector.Kind{vector.Int2, vector.Int4, vector.Int8} {
		name, oid := []string{"int2", "int4", "int8"}[i], uint32(1892+6*i)
		samples := append([]string{"3", "255"}, intSamples[k]...)
		both := []Param{{Kind: k}, {Kind: k, Usual: []string{"1", "7", "255"}}}
		of := func(suffix string, oid uint32, f func(a, b int64) int64) {
			list = append(list, Function{Name: name + suffix, OID: oid, Result: k, Args: both, Total: true, Samples: [][]string{samples, samples},
				Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: f(args[0].I, args[1].I)}, nil }})
		}
		of("and", oid, func(a, b int64) int64 { return a & b })
		of("or", oid+1, func(a, b int64) int64 { return a | b })
		of("xor", oid+2, func(a, b int64) int64 { return a ^ b })
		list = append(list, Function{Name: name + "not", OID: oid + 3, Result: k, Args: both[:1], Total: true, Samples: [][]string{samples},
			Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: ^args[0].I}, nil }},
			shiftOf(name+"shl", oid+4, k, samples, func(v int64, n int64) int64 { return v << n }),
			shiftOf(name+"shr", oid+5, k, samples, func(v int64, n int64) int64 { return v >> n }))
	}
	return list
}()

var intSamples = map[vector.Kind][]string{vector.Int2: {"0", "1", "-1", "32767", "-32768"}, vector.Int4: {"0", "1", "-1", "2147483647", "-2147483648"},
	vector.Int8: {"0", "1", "-1", "9223372036854775807", "-9223372036854775808"}}

// shiftOf is of a value and a number of bits. The server shifts a smallint as an integer; what C leaves open, a
// number that is negative or not below the width, is the server's to answer.
func shiftOf(name string, oid uint32, k vector.Kind, samples []string, shift func(v, n int64) int64) Function {
	width := int64(32)
	if k == vector.Int8 {
		width = 64
	}
	return Function{Name: name, OID: oid, Result: k, Args: []Param{{Kind: k}, {Kind: vector.Int4, Usual: []string{"1", "3", "8"}}},
		Samples: [][]string{samples, {"0", "1", "3", "7", "15", "16", "31", "-1", "64"}},
		TotalFor: func(c Call) bool {
			n := c.Args[1].Const
			return n != nil && (n.Null || n.I >= 0 && n.I < width)
		},
		Eval: func(args []vector.Value) (vector.Value, error) {
			n := args[1].I
			if n < 0 || n >= width {
				return vector.NullValue, failed("a shift by more bits than there are")
			}
			v := shift(args[0].I, n)
			switch k {
			case vector.Int2:
				v = int64(int16(v))
			case vector.Int4:
				v = int64(int32(v))
			}
			return vector.Value{I: v}, nil
		},
	}
}
