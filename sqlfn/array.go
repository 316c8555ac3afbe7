package sqlfn

import (
	"slices"
	"sync"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// arrayOf identifies a function that makes an array.
type arrayOf struct {
	elem vector.Kind
	n    int
}

// makers are those functions that were asked for: each is one function, as those of the table are.
var makers sync.Map // of *Function by arrayOf

// MakeArray returns the function that makes an array of n values of a kind. It is none of the server's: where
// one of them is null the array is.
func MakeArray(elem vector.Kind, n int) *Function {
	key := arrayOf{elem, n}
	if f, ok := makers.Load(key); ok {
		return f.(*Function)
	}
	f := &Function{Name: "array", Result: vector.ArrayOf(elem), Args: slices.Repeat([]Param{{Kind: elem}}, n), Total: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			list := sqltype.NewArray(vector.TypeOf(elem))
			for _, v := range args {
				list.Add(v)
			}
			return vector.Value{Str: list.String()}, nil
		},
	}
	kept, _ := makers.LoadOrStore(key, f)
	return kept.(*Function)
}
