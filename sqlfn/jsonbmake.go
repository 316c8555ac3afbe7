package sqlfn

import (
	"cmp"
	"slices"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Documents of jsonb that are made of others, and of other values (PostgreSQL's jsonb.c and jsonfuncs.c), and casts of their numbers.

// OIDs of functions that pushdown has names for, or operators.
const (
	OIDToJSONB     = 3787
	OIDBuildArray  = 3271
	OIDBuildObject = 3273
	OIDJSONBAgg    = 3267
)

var madeDocuments = []Function{
	jsonbMade("jsonb_concat", 3301, vector.JSONB, jsonbSamples, func(s string, v vector.Value) (string, error) { return jsonConcat(s, v.Str), nil }),
	jsonbMade("jsonb_delete", 3302, vector.Text, keySamples, func(s string, v vector.Value) (string, error) { return jsonDelete(s, v.Str) }),
	jsonbMade("jsonb_delete", 3303, vector.Int4, itemSamples, func(s string, v vector.Value) (string, error) { return jsonDeleteAt(s, v.I) }),
	{
		Name: "jsonb_pretty", OID: 3306, Result: vector.Text, Args: []Param{{Kind: vector.JSONB}}, Samples: [][]string{jsonbSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			var b strings.Builder
			jsonPretty(&b, args[0].Str, 0)
			return held(b.String(), "")
		},
	},
	jsonbNumber("numeric", 3449, vector.Numeric), jsonbNumber("int2", 3450, vector.Int2), jsonbNumber("int4", 3451, vector.Int4), jsonbNumber("int8", 3452, vector.Int8),
	jsonbNumber("float8", 2580, vector.Float8),
	{
		Name: "bool", OID: 3556, Result: vector.Bool, Args: []Param{{Kind: vector.JSONB}}, Samples: [][]string{jsonbSamples}, Partial: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			if jsonKind(args[0].Str) != 't' {
				return vector.NullValue, failed("cast of jsonb to boolean of what is none")
			}
			return vector.BoolValue(args[0].Str == "true"), nil
		},
	},
}

// jsonbMade is a function of a document and something else that makes a document.
func jsonbMade(name string, oid uint32, by vector.Kind, samples []string, made func(s string, by vector.Value) (string, error)) Function {
	return Function{Name: name, OID: oid, Result: vector.JSONB, Args: []Param{{Kind: vector.JSONB}, {Kind: by, Usual: samples[:4]}}, Samples: [][]string{jsonbSamples, samples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, err := made(args[0].Str, args[1])
			if err != nil {
				return vector.NullValue, err
			}
			return held(s, "")
		}}
}

// jsonbNumber is a cast of a document that is a number. A null is an error until version 18, and null in that.
func jsonbNumber(name string, oid uint32, to vector.Kind) Function {
	f := Function{Name: name, OID: oid, Result: to, Args: []Param{{Kind: vector.JSONB}}, Partial: true,
		Samples: [][]string{append([]string{"2.5", "-2.5", "32767.4", "32767.5", "2147483647.5", "-2147483648.49", "9223372036854775807", "9223372036854775807.5", "0.1", "100000000000000000000"}, jsonbSamples...)}}
	if to == vector.Numeric {
		f.Type = func(Call) vector.Type { return vector.NumericType(vector.VaryingScale) }
	}
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		if jsonKind(args[0].Str) != '0' {
			return vector.NullValue, failed("cast of jsonb to " + to.String() + " of what is no number")
		}
		if to == vector.Float8 {
			d, ok := sqltype.Of(to).Parse(args[0].Str)
			if !ok {
				return vector.NullValue, failed("double precision out of range")
			}
			return d.Value(), nil
		}
		d, ok := vector.ParseDecimal(args[0].Str)
		if ok && to.IsInt() {
			d, ok = awayFromZero.decimal(d, 0)
		}
		if !ok {
			return vector.NullValue, failed("numeric beyond the bits that are held")
		}
		if to == vector.Numeric {
			return vector.Value{Num: d}, nil
		}
		n, ok := d.Unscaled.Int64()
		if t := sqltype.Of(to); !ok || n < t.Least || n > t.Greatest {
			return vector.NullValue, failed(to.String() + " out of range")
		}
		return vector.Value{I: n}, nil
	}
	return f
}

// jsonList is a document as an array's elements, with what separates them: a single value is one of itself, as in the server, and so is
// an object.
func jsonList(s string) string {
	if s[0] == '[' {
		return s[1 : len(s)-1]
	}
	return s
}

// jsonConcat is s || t (jsonb_concat).
func jsonConcat(s, t string) string {
	if s[0] == '{' && t[0] == '{' {
		return mergeObjects(s, t)
	}
	a, b := jsonList(s), jsonList(t)
	if a == "" || b == "" {
		return "[" + a + b + "]"
	}
	return "[" + a + ", " + b + "]"
}

// jsonMember is a member of an object: what its key means, the key as it is written, with its quotes, and the value.
type jsonMember struct{ key, written, value string }

// compareMembers is the order of an object's members, by what their keys mean: short ones first.
func compareMembers(a, b jsonMember) int {
	return cmp.Or(len(a.key)-len(b.key), strings.Compare(a.key, b.key))
}

// jsonMembers are the members of an object, in its order.
func jsonMembers(s string) (list []jsonMember) {
	for t := itemsOf(s); t.more(); {
		k, v := t.pair()
		list = append(list, jsonMember{k.text(), `"` + k.raw + `"`, v})
	}
	return list
}

// mergeObjects is an object with the members of another; the latter's stand for those of the same keys.
func mergeObjects(s, t string) string {
	x, y := jsonMembers(s), jsonMembers(t)
	var out []jsonMember
	for len(x) > 0 && len(y) > 0 {
		order := compareMembers(x[0], y[0])
		if order < 0 {
			out, x = append(out, x[0]), x[1:]
			continue
		}
		out, y = append(out, y[0]), y[1:]
		if order == 0 {
			x = x[1:]
		}
	}
	return writeObject(slices.Concat(out, x, y))
}

func writeObject(members []jsonMember) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(m.written + ": " + m.value)
	}
	b.WriteByte('}')
	return b.String()
}

func writeArray(values []string) string { return "[" + strings.Join(values, ", ") + "]" }

// jsonDelete is an object without a key, or an array without a string (jsonb_delete).
func jsonDelete(s, key string) (string, error) {
	switch {
	case jsonScalar(s):
		return "", failed("cannot delete from scalar")
	case s[0] == '{':
		return writeObject(slices.DeleteFunc(jsonMembers(s), func(m jsonMember) bool { return m.key == key })), nil
	}
	var kept []string
	for t := itemsOf(s); t.more(); {
		v := t.value()
		if text, ok := stringOf(v); !ok || !text.is(key) {
			kept = append(kept, v)
		}
	}
	return writeArray(kept), nil
}

// jsonDeleteAt is an array without an element, counted from its end where n is negative (jsonb_delete_idx).
func jsonDeleteAt(s string, n int64) (string, error) {
	if s[0] != '[' {
		return "", failed("cannot delete from what is no array using integer index")
	}
	if n < 0 {
		n += jsonLength(s)
	}
	var kept []string
	for t := itemsOf(s); t.more(); n-- {
		if v := t.value(); n != 0 {
			kept = append(kept, v)
		}
	}
	return writeArray(kept), nil
}

// jsonPretty writes a value with a line for each member (JsonbToCStringIndent).
func jsonPretty(b *strings.Builder, s string, level int) {
	if jsonScalar(s) {
		b.WriteString(s)
		return
	}
	line := func(level int) { b.WriteString("\n" + strings.Repeat("    ", level)) }
	b.WriteByte(s[0])
	first := true
	for t := itemsOf(s); t.more(); first = false {
		if !first {
			b.WriteByte(',')
		}
		line(level + 1)
		if s[0] == '{' {
			k, v := t.pair()
			b.WriteString(`"` + k.raw + `": `)
			jsonPretty(b, v, level+1)
			continue
		}
		jsonPretty(b, t.value(), level+1)
	}
	line(level)
	b.WriteByte(s[len(s)-1])
}

// jsonQuoted writes a text as a string.
func jsonQuoted(s string) string { return string(sqltype.AppendJSONString(nil, s)) }

// maxKey bounds a string within a document (JENTRY_OFFLENMASK in jsonb.h).
const maxKey = 1<<28 - 1

// datumToJSONB writes a value of a kind as jsonb does (datum_to_jsonb_internal).
func datumToJSONB(k vector.Kind, v vector.Value) (string, error) {
	switch {
	case v.Null:
		return "null", nil
	case k == vector.Bool && v.I != 0:
		return "true", nil
	case k == vector.Bool:
		return "false", nil
	case k == vector.JSONB:
		return v.Str, nil
	case k.IsText() && len(v.Str) > maxKey:
		return "", failed("string too long to represent as jsonb string")
	case k.IsText(), k == vector.Enum:
		return jsonQuoted(v.Str), nil
	case k == vector.Numeric:
		return v.Num.String(), nil
	case k.IsInt():
		return string(sqltype.Of(k).AppendText(nil, v.I)), nil
	case k == vector.UUID:
		return jsonQuoted(string(sqltype.Of(k).AppendString(nil, v.Str))), nil
	}
	text := string(sqltype.Of(k).AppendText(nil, v.I))
	if k == vector.Timestamp {
		text = strings.Replace(text, " ", "T", 1)
	}
	return jsonQuoted(text), nil
}

// InJSON reports whether values of a kind are written into documents: not those that settings decide on.
func InJSON(k vector.Kind) bool {
	switch k {
	case vector.Bool, vector.Numeric, vector.Text, vector.Varchar, vector.JSONB, vector.UUID, vector.Date, vector.Timestamp, vector.Time, vector.MACAddr:
		return true
	}
	return k.IsInt()
}

// documentKey names a function that pushdown asks for: of values of a kind, or of n arguments.
type documentKey struct {
	what string
	of   vector.Kind
	n    int
}

func jsonbMaker(key documentKey, args []Param, eval func(args []vector.Value) (string, error)) *Function {
	if f, ok := makers.Load(key); ok {
		return f.(*Function)
	}
	f := &Function{Name: key.what, OID: OIDToJSONB, Result: vector.JSONB, Args: args, CalledOnNull: key.of == vector.Invalid,
		Eval: func(args []vector.Value) (vector.Value, error) {
			s, err := eval(args)
			if err != nil {
				return vector.NullValue, err
			}
			return held(s, "")
		},
	}
	kept, _ := makers.LoadOrStore(key, f)
	return kept.(*Function)
}

// ToJSONB is to_jsonb() of values of a kind, which is InJSON.
func ToJSONB(k vector.Kind) *Function {
	return jsonbMaker(documentKey{"to_jsonb", k, 1}, []Param{{Kind: k}}, func(args []vector.Value) (string, error) { return datumToJSONB(k, args[0]) })
}

// BuildJSONBArray is jsonb_build_array() of n documents, of which null is one.
func BuildJSONBArray(n int) *Function {
	return jsonbMaker(documentKey{"jsonb_build_array", vector.Invalid, n}, slices.Repeat([]Param{{Kind: vector.JSONB}}, n), func(args []vector.Value) (string, error) {
		values := make([]string, n)
		for i, v := range args {
			values[i], _ = datumToJSONB(vector.JSONB, v)
		}
		return writeArray(values), nil
	})
}

// BuildJSONBObject is jsonb_build_object() of n pairs of a text and a document. Of equal keys the last one counts.
func BuildJSONBObject(n int) *Function {
	return jsonbMaker(documentKey{"jsonb_build_object", vector.Invalid, n}, slices.Repeat([]Param{{Kind: vector.Text}, {Kind: vector.JSONB}}, n), func(args []vector.Value) (string, error) {
		var list []jsonMember
		for i := 0; i < len(args); i += 2 {
			switch {
			case args[i].Null:
				return "", failed("key must not be null")
			case len(args[i].Str) > maxKey:
				return "", failed("string too long to represent as jsonb string")
			}
			v, _ := datumToJSONB(vector.JSONB, args[i+1])
			m := jsonMember{args[i].Str, jsonQuoted(args[i].Str), v}
			if at := slices.IndexFunc(list, func(o jsonMember) bool { return o.key == m.key }); at >= 0 {
				list[at] = m
			} else {
				list = append(list, m)
			}
		}
		slices.SortFunc(list, compareMembers)
		return writeObject(list), nil
	})
}

// ArrayOfJSONB is the document that has the elements of a jsonb[].
func ArrayOfJSONB() *Function {
	return jsonbMaker(documentKey{"jsonb_agg", vector.JSONB, 0}, []Param{{Kind: vector.ArrayOf(vector.JSONB)}}, func(args []vector.Value) (string, error) {
		var values []string
		sqltype.EachElement(args[0].Str, func(raw string, null bool) {
			if null {
				values = append(values, "null")
			} else {
				values = append(values, sqltype.ElementValue(vector.JSONB, raw).Str)
			}
		})
		return writeArray(values), nil
	})
}
