package sqlfn

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"pgaccel/vector"
)

// TestTextsAreNotKept: a row's text lies in memory that the next row's is written to. What a function keeps of one call
// for the next must be its own.
func TestTextsAreNotKept(t *testing.T) {
	asked := 0
	for _, f := range All() {
		if f.Eval == nil || len(f.Samples) != len(f.Args) {
			continue
		}
		for at := range f.Args {
			if f.Args[at].Kind != vector.Text {
				continue
			}
			args := make([]vector.Value, len(f.Args))
			ok := true
			for i := range args {
				if args[i].Str = "a"; len(f.Samples[i]) > 0 {
					args[i].Str = f.Samples[i][0]
				}
				if k := f.Args[i].Kind; !k.IsText() {
					args[i] = vector.Value{I: 1, Num: vector.Decimal{Unscaled: vector.Int128Of(1)}}
					ok = ok && (k.IsInt() || k.IsFloat() || k == vector.Numeric || k == vector.Timestamp || k == vector.TimestampTZ || k == vector.Date)
				}
			}
			if !ok {
				continue
			}
			call := func(text string) (vector.Value, string) {
				args := append([]vector.Value(nil), args...)
				args[at] = vector.Value{Str: text}
				v, err := f.Eval(args)
				if err != nil {
					return v, err.Error()
				}
				return v, ""
			}
			for _, first := range f.Samples[at] {
				for _, second := range append([]string{strings.Repeat("b", len(first)), strings.Map(other, first)}, f.Samples[at]...) {
					if len(first) != len(second) || first == second || first == "" {
						continue
					}
					call("something else")
					want, wantErr := call(second)
					call("something else")
					b := []byte(first)
					call(unsafe.String(&b[0], len(b)))
					copy(b, second)
					got, err := call(second)
					if !reflect.DeepEqual(got, want) || err != wantErr {
						t.Fatalf("%s of %q at %d is %v %s after %q, not %v %s", f.Name, second, at, got, err, first, want, wantErr)
					}
					asked++
				}
			}
		}
	}
	if asked < 1000 {
		t.Errorf("%d pairs of texts", asked)
	}
}

// other is another character than r, of as many bytes.
func other(r rune) rune {
	if 'a' <= r && r < 'z' || '0' <= r && r < '9' || 'A' <= r && r < 'Z' {
		return r + 1
	}
	return r
}
