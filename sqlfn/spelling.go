package sqlfn

import (
	"math"

	"pgaccel/vector"
)

// Values of the opaque types interval and citext may be equal and print apart: '1 mon' and '30 days', 'a' and 'A'. Which of them a group
// or a minimum shows is the choice of the server's plan. They are computed where all of a group are spelled alike, and are errors where
// they are not, with which the statement is forwarded. None of these functions is one of the server's.
const (
	oidSpelling = math.MaxUint32 - 1000 - iota
	oidSole
	oidFirstSpelling
	oidLastSpelling
	oidSoleExtreme
	oidCitextText
	oidTextBytes
)

// CitextText is citext as text, which it is binary coercible to.
var CitextText = &Function{Name: "text", OID: oidCitextText, Result: vector.Text, Total: true, Args: []Param{{Kind: vector.Opaque}},
	Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{Str: args[0].Str}, nil }}

// TextBytes are the bytes of a text.
var TextBytes = &Function{Name: "bytes", OID: oidTextBytes, Result: vector.Bytea, Total: true, Args: []Param{{Kind: vector.Text}},
	Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{Str: args[0].Str}, nil }}

// Spelling is the value as it is held. FirstSpelling and LastSpelling have it behind what the value is compared by, and what is equal is
// in two orders that are each other's opposite: where the least of both are one value, no other is equal to it.
var (
	Spelling = &Function{Name: "spelling", OID: oidSpelling, Result: vector.Bytea, Total: true, Args: []Param{{Kind: vector.Opaque}},
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{Str: args[0].Str}, nil }}
	FirstSpelling = spellingOf("first_spelling", oidFirstSpelling, func(b byte) byte { return b }, 0)
	LastSpelling  = spellingOf("last_spelling", oidLastSpelling, func(b byte) byte { return ^b }, math.MaxUint8)
)

// spellingOf returns the function of a key, or the text of one, and a value: the end of the key is a zero byte, before which
// zeros are two bytes, and that of the value is end.
func spellingOf(name string, oid uint32, of func(b byte) byte, end byte) *Function {
	return &Function{Name: name, OID: oid, Result: vector.Bytea, Total: true, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Opaque}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			key, value := args[0].Str, args[1].Str
			b := make([]byte, 0, len(key)+len(value)+8)
			for i := range len(key) {
				if b = append(b, key[i]); key[i] == 0 {
					b = append(b, 1)
				}
			}
			b = append(b, 0, 0)
			for i := range len(value) {
				c := value[i]
				if b = append(b, of(c)); c == 0 {
					b = append(b, of(1))
				}
			}
			return vector.Value{Str: string(append(b, end, end))}, nil
		}}
}

// spelled returns the value of what spellingOf made.
func spelled(s string, of func(b byte) byte) string {
	at := 0
	for s[at] != 0 || s[at+1] != 0 {
		if s[at] == 0 {
			at++
		}
		at++
	}
	s = s[at+2 : len(s)-2]
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := of(s[i])
		if b = append(b, c); c == 0 {
			i++
		}
	}
	return string(b)
}

var errSpelled = failed("one of values that are equal and print apart")

// Sole is the value of type t that is the least and the greatest spelling of a group.
func Sole(t vector.Type) *Function {
	return soleOf("sole", oidSole, t, func(s string) string { return s }, func(s string) string { return s })
}

// SoleExtreme is the value of type t that is the least, or the greatest, by FirstSpelling and by LastSpelling.
func SoleExtreme(t vector.Type) *Function {
	return soleOf("sole_extreme", oidSoleExtreme, t, func(s string) string { return spelled(s, func(b byte) byte { return b }) },
		func(s string) string { return spelled(s, func(b byte) byte { return ^b }) })
}

func soleOf(name string, oid uint32, t vector.Type, first, last func(string) string) *Function {
	t.Typmod = -1
	return &Function{Name: name, OID: oid, Result: vector.Opaque, Type: func(Call) vector.Type { return t }, Args: []Param{{Kind: vector.Bytea}, {Kind: vector.Bytea}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			v := first(args[0].Str)
			if v != last(args[1].Str) {
				return vector.NullValue, errSpelled
			}
			return vector.Value{Str: v}, nil
		}}
}
