package sqlfn

import (
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
}

var textSamples = []string{"", "a", "Abc def", "  blanks  ", "100%", `a\b'c"d`, "żółć", "日本語", "👩‍💻", "é", "tab\tand\nline"}

func lengthOf(name string, oid uint32, k vector.Kind) Function {
	return Function{
		Name: name, OID: oid, Result: vector.Int4, Args: []Param{{Kind: k}}, Samples: [][]string{textSamples},
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
	return Function{
		Name: "octet_length", OID: oid, Result: vector.Int4, Args: []Param{{Kind: k}}, Samples: [][]string{textSamples},
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: int64(len(args[0].Str))}, nil },
	}
}
