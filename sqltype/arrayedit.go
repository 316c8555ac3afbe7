package sqltype

import (
	"encoding/binary"
	"unsafe"

	"pgaccel/vector"
)

// Arrays that are made of others, as PostgreSQL's arrayfuncs.c and array_userfuncs.c make them. That an array says it has nulls is
// part of its binary form: what is made of one that says so says so, too, where the server does not look again.

// ElementValue returns an element from its binary form.
func ElementValue(elem vector.Kind, raw string) vector.Value {
	switch t := Of(elem); {
	case elem == vector.Numeric:
		return vector.Value{Num: ElementDecimal(raw)}
	case elem == vector.JSONB:
		return vector.Value{Str: raw[1:]}
	case elem.IsString():
		return vector.Value{Str: raw}
	default:
		return vector.Value{I: t.Word(unsafe.Slice(unsafe.StringData(raw), len(raw)))} // which only reads it
	}
}

// ArrayElement returns the element of an array of one dimension that has a subscript; ok is false where none has.
func ArrayElement(s string, at int64) (raw string, null, ok bool) {
	r, ok := readArray(s)
	if !ok || r.dims != 1 || at < int64(r.lower[0]) || at >= int64(r.lower[0])+int64(r.lengths[0]) {
		return "", false, false
	}
	for range at - int64(r.lower[0]) {
		r.element()
	}
	return r.element()
}

// ArraySlice returns the slices of the first dimension from a subscript on up to another one; lower bounds become 1
// (array_get_slice).
func ArraySlice(s string, from, to int64) string {
	r, ok := readArray(s)
	none := make([]byte, arrayHeader)
	copy(none[8:], s[8:arrayHeader])
	if !ok || r.dims == 0 {
		return string(none)
	}
	first := int64(r.lower[0])
	from, to = max(from, first), min(to, first+int64(r.lengths[0])-1)
	if from > to {
		return string(none)
	}
	each := int64(1)
	b := []byte(s[:arrayHeader+8*r.dims])
	for i := range r.dims {
		binary.BigEndian.PutUint32(b[arrayHeader+8*i+4:], 1)
		if i > 0 {
			each *= int64(r.lengths[i])
		}
	}
	binary.BigEndian.PutUint32(b[arrayHeader:], uint32(to-from+1))
	for range (from - first) * each {
		r.element()
	}
	begin := r.rest
	for range (to - from + 1) * each {
		r.element()
	}
	return string(b) + begin[:len(begin)-len(r.rest)]
}

// ArrayJoined returns the elements of two arrays of one dimension or none, with the lower bound of the first; of one without elements
// it is the other (array_cat).
func ArrayJoined(a, b string) (s string, ok bool) {
	x, xok := readArray(a)
	y, yok := readArray(b)
	switch {
	case !xok || !yok || x.dims > 1 || y.dims > 1:
		return "", false
	case y.dims == 0:
		return a, true
	case x.dims == 0:
		return b, true
	}
	n := int64(x.lengths[0]) + int64(y.lengths[0])
	if n+int64(x.lower[0]) > 1<<31-1 {
		return "", false
	}
	head := []byte(a[:arrayHeader+8])
	head[7] |= b[7]
	binary.BigEndian.PutUint32(head[arrayHeader:], uint32(n))
	return string(head) + x.rest + y.rest, true
}

// ArrayReplaced returns an array in which a value stands for some elements; nothing is changed where there are none of these
// (array_replace_internal).
func ArrayReplaced(s string, replaced func(raw string, null bool) bool, elem vector.Kind, with vector.Value) string {
	r, ok := readArray(s)
	if !ok || r.dims == 0 {
		return s
	}
	b := []byte(s[:arrayHeader+8*r.dims])
	value := []byte{0xff, 0xff, 0xff, 0xff}
	if !with.Null {
		raw, _ := ElementBinary(elem, with)
		value = append(binary.BigEndian.AppendUint32(value[:0], uint32(len(raw))), raw...)
	}
	changed, nulls := false, false
	for {
		before := r.rest
		raw, null, ok := r.element()
		if !ok {
			break
		}
		if replaced(raw, null) {
			changed, nulls = true, nulls || with.Null
			b = append(b, value...)
			continue
		}
		nulls = nulls || null
		b = append(b, before[:len(before)-len(r.rest)]...)
	}
	if !changed {
		return s
	}
	if b[7] = 0; nulls {
		b[7] = 1
	}
	return string(b)
}

// ArrayWith returns an array of one dimension or none, which may be the empty string, with another element at its end or its beginning; its lower bound stays
// (array_append, array_prepend).
func ArrayWith(s string, elem vector.Kind, v vector.Value, first bool) (array string, ok bool) {
	one := NewArray(vector.TypeOf(elem))
	one.Add(v)
	other := one.String()
	if s == "" {
		return other, true
	}
	r, ok := readArray(s)
	if !ok || r.dims > 1 {
		return "", false
	}
	if r.dims == 0 || !first {
		return ArrayJoined(s, other)
	}
	if array, ok = ArrayJoined(other, s); !ok || r.lower[0] == -1<<31 {
		return "", false
	}
	bound := arrayHeader + 4
	return array[:bound] + s[bound:bound+4] + array[bound+4:], true
}
