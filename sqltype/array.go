package sqltype

import (
	"encoding/binary"
	"strconv"

	"pgaccel/vector"
)

// Arrays are held as the string that array_send writes (src/backend/utils/adt/arrayfuncs.c):
//
//	int32 dimensions | int32 whether there are nulls | int32 OID of the elements' type
//	for each dimension: int32 length | int32 lower bound
//	for each element: int32 length, -1 for a null | its binary form
//
// which says everything of the value. An array without elements has no dimensions.

// arrayOIDs are the types of arrays, by that of their elements: pg_type.typarray.
var arrayOIDs = map[vector.Kind]uint32{
	vector.Bool: 1000, vector.Int2: 1005, vector.Int4: 1007, vector.Int8: 1016, vector.Numeric: 1231,
	vector.Date: 1182, vector.Time: 1183, vector.Timestamp: 1115, vector.TimestampTZ: 1185, vector.Float4: 1021, vector.Float8: 1022,
	vector.Text: 1009, vector.Varchar: 1015, vector.MACAddr: 1040, vector.UUID: 2951, vector.JSONB: 3807,
}

// arrayHeader is the size of what precedes the dimensions, maxDimensions how many there may be (MAXDIM).
const (
	arrayHeader   = 12
	maxDimensions = 6
)

// init adds the arrays, whose functions need the table.
func init() {
	for k, oid := range arrayOIDs {
		types[vector.ArrayOf(k)] = arrayType(k, oid)
	}
}

// ArrayOID returns the type of arrays of values of a type; 0 where none is known.
func ArrayOID(t vector.Type) uint32 {
	switch t.Kind {
	case vector.BPChar:
		return 1014
	case vector.Interval:
		return 1187
	case vector.Bytea:
		return 1001
	case vector.Inet:
		return 1041
	case vector.CIDR:
		return 651
	case vector.MACAddr8:
		return 775
	case vector.LSN:
		return 3221
	case vector.TimeTZ:
		return 1270
	case vector.OID:
		return 1028
	case vector.Name:
		return 1003
	case vector.Money:
		return 791
	case vector.Bit:
		return 1561
	case vector.VarBit:
		return 1563
	case vector.Opaque:
		return opaqueArrayOIDs[t.Collation.OID]
	}
	return arrayOIDs[t.Kind]
}

// HeldKind is KindOf of all types whose values are held, arrays included.
func HeldKind(oid uint32) vector.Kind {
	if k := KindOf(oid); k != vector.Invalid {
		return k
	}
	for k, array := range arrayOIDs {
		if array == oid {
			return vector.ArrayOf(k)
		}
	}
	return vector.Invalid
}

// arrayType is the type of arrays of a kind.
func arrayType(of vector.Kind, oid uint32) Type {
	elem := &types[of]
	t := vector.TypeOf(vector.ArrayOf(of))
	return Type{Kind: t.Kind, Name: "_" + elem.Name, OID: oid, Category: 'A', Binary: BinaryArray, Settings: elem.Settings,
		AppendString: func(dst []byte, s string) []byte {
			return AppendArray(dst, s, func(dst []byte, raw string) []byte { return appendElement(dst, elem, raw) })
		},
		Parse: func(s string) (vector.Datum, bool) {
			v, ok := parseArray(s, elem)
			return vector.Datum{Type: t, Str: v}, ok
		},
		Receive: func(raw []byte) (vector.Datum, bool) {
			return vector.Datum{Type: t, Str: string(raw)}, validArray(string(raw), elem)
		},
	}
}

// appendElement writes an element's text from its binary form, as under DateStyle ISO and the time zone UTC.
func appendElement(dst []byte, elem *Type, raw string) []byte {
	switch {
	case elem.Kind == vector.Numeric:
		return ElementDecimal(raw).AppendText(dst)
	case elem.Kind == vector.JSONB:
		return append(dst, raw[1:]...)
	case elem.AppendString != nil:
		return elem.AppendString(dst, raw)
	case elem.Kind.IsString():
		return append(dst, raw...)
	}
	return elem.AppendText(dst, elem.Word([]byte(raw)))
}

// ElementDecimal reads an element of an array of numeric.
func ElementDecimal(raw string) vector.Decimal {
	d, _ := numericFromBinary([]byte(raw))
	return d
}

// arrayReader goes through the elements of an array.
type arrayReader struct {
	lengths, lower [maxDimensions]int32
	dims           int
	rest           string
}

// int32 takes four bytes; ok is false where there are less.
func (r *arrayReader) int32() (v int32, ok bool) {
	if len(r.rest) < 4 {
		return 0, false
	}
	v = int32(uint32(r.rest[0])<<24 | uint32(r.rest[1])<<16 | uint32(r.rest[2])<<8 | uint32(r.rest[3]))
	r.rest = r.rest[4:]
	return v, true
}

// readArray reads what precedes the elements; ok is false for what is no array.
func readArray(s string) (r arrayReader, ok bool) {
	r.rest = s
	dims, ok := r.int32()
	if !ok || dims < 0 || dims > maxDimensions || len(s) < arrayHeader {
		return r, false
	}
	r.dims, r.rest = int(dims), s[arrayHeader:]
	for i := range r.dims {
		r.lengths[i], _ = r.int32()
		if r.lower[i], ok = r.int32(); !ok || r.lengths[i] <= 0 {
			return r, false
		}
	}
	return r, true
}

// element takes the next element; ok is false where there is none.
func (r *arrayReader) element() (raw string, null, ok bool) {
	n, ok := r.int32()
	switch {
	case !ok || n < -1 || int64(n) > int64(len(r.rest)):
		return "", false, false
	case n == -1:
		return "", true, true
	}
	raw, r.rest = r.rest[:n], r.rest[n:]
	return raw, false, true
}

// EachElement calls f with the binary form of each element, of whatever dimension.
func EachElement(s string, f func(raw string, null bool)) {
	r, ok := readArray(s)
	for ok {
		var raw string
		var null bool
		if raw, null, ok = r.element(); ok {
			f(raw, null)
		}
	}
}

// Elements returns how many elements an array has, of all dimensions.
func Elements(s string) (n int64) {
	EachElement(s, func(string, bool) { n++ })
	return n
}

// validArray reports whether s is an array of elements that are held, as array_send writes it: of an array that
// had nulls once it says so still.
func validArray(s string, elem *Type) bool {
	return validArrayOf(s, elem.OID, func(raw string) bool {
		_, ok := elem.Receive([]byte(raw))
		return ok
	})
}

// validArrayOf is validArray of elements of the type with an OID.
func validArrayOf(s string, oid uint32, valid func(raw string) bool) bool {
	r, ok := readArray(s)
	if !ok || binary.BigEndian.Uint32([]byte(s[8:])) != oid {
		return false
	}
	count, nulls := int64(1), s[4:8] != "\x00\x00\x00\x00"
	if r.dims == 0 {
		count = 0
	}
	for _, n := range r.lengths[:r.dims] {
		if count *= int64(n); count > int64(len(s)) {
			return false
		}
	}
	some := false
	for ; count > 0; count-- {
		raw, null, ok := r.element()
		if !ok {
			return false
		}
		if null {
			some = true
		} else if !valid(raw) {
			return false
		}
	}
	return len(r.rest) == 0 && (nulls || !some)
}

// AppendArray writes an array as array_out does, its elements by text.
func AppendArray(dst []byte, s string, text func(dst []byte, raw string) []byte) []byte {
	return appendDelimited(dst, s, ',', text)
}

// appendDelimited is AppendArray of elements with a delimiter between (pg_type.typdelim).
func appendDelimited(dst []byte, s string, delimiter byte, text func(dst []byte, raw string) []byte) []byte {
	r, ok := readArray(s)
	if !ok || r.dims == 0 {
		return append(dst, "{}"...)
	}
	bounds := false
	for _, l := range r.lower[:r.dims] {
		bounds = bounds || l != 1
	}
	if bounds {
		for i, l := range r.lower[:r.dims] {
			dst = strconv.AppendInt(append(dst, '['), int64(l), 10)
			dst = strconv.AppendInt(append(dst, ':'), int64(l)+int64(r.lengths[i])-1, 10)
			dst = append(dst, ']')
		}
		dst = append(dst, '=')
	}
	return r.append(dst, 0, delimiter, text)
}

// append writes a slice of one dimension.
func (r *arrayReader) append(dst []byte, dim int, delimiter byte, text func(dst []byte, raw string) []byte) []byte {
	dst = append(dst, '{')
	for i := range r.lengths[dim] {
		if i > 0 {
			dst = append(dst, delimiter)
		}
		if dim+1 < r.dims {
			dst = r.append(dst, dim+1, delimiter, text)
			continue
		}
		raw, null, ok := r.element()
		switch {
		case !ok:
			return dst
		case null:
			dst = append(dst, "NULL"...)
		default:
			at := len(dst)
			dst = quoteElement(text(dst, raw), at, delimiter)
		}
	}
	return append(dst, '}')
}

// quoteElement puts the element that begins at a place into quotes, where array_out does.
func quoteElement(dst []byte, at int, delimiter byte) []byte {
	quoted := len(dst) == at || isNullWord(string(dst[at:]))
	escaped := 0
	for _, c := range dst[at:] {
		switch c {
		case '"', '\\':
			escaped++
			quoted = true
		case '{', '}', delimiter, ' ', '\t', '\n', '\r', '\v', '\f':
			quoted = true
		}
	}
	if !quoted {
		return dst
	}
	text := string(dst[at:])
	dst = append(dst[:at], '"')
	for i := range len(text) {
		if c := text[i]; escaped > 0 && (c == '"' || c == '\\') {
			dst = append(dst, '\\')
		}
		dst = append(dst, text[i])
	}
	return append(dst, '"')
}

// isNullWord reports whether a text without quotes means null, in any case of its letters.
func isNullWord(s string) bool {
	return len(s) == 4 && s[0]|0x20 == 'n' && s[1]|0x20 == 'u' && s[2]|0x20 == 'l' && s[3]|0x20 == 'l'
}

// appendElementBinary writes a value's binary form.
func appendElementBinary(dst []byte, elem *Type, v vector.Value) []byte {
	switch {
	case elem.Kind == vector.Numeric:
		return AppendNumericBinary(dst, v.Num)
	case elem.Kind == vector.JSONB:
		return AppendJSONBBinary(dst, v.Str)
	case elem.Kind.IsString():
		return append(dst, v.Str...)
	}
	return elem.AppendBinary(dst, v.I)
}

// ElementBinary returns the binary form that a value has as an element of a kind, which may be a smaller
// integer: ok is false where that does not hold it.
func ElementBinary(elem vector.Kind, v vector.Value) (raw string, ok bool) {
	t := Of(elem)
	b := appendElementBinary(nil, t, v)
	return string(b), !elem.IsInt() || t.Word(b) == v.I
}

// ArrayLength returns the length of a dimension, counted from 1; ok is false where there is none.
func ArrayLength(s string, dim int64) (n int64, ok bool) {
	r, ok := readArray(s)
	if !ok || dim < 1 || dim > int64(r.dims) {
		return 0, false
	}
	return int64(r.lengths[dim-1]), true
}

// Array collects the elements of an array of one dimension.
type Array struct {
	elem  vector.Type
	b     []byte
	n     int
	nulls bool
}

// NewArray begins an array of elements of a type.
func NewArray(elem vector.Type) *Array {
	return &Array{elem: elem, b: make([]byte, arrayHeader+8)}
}

// Add appends an element.
func (a *Array) Add(v vector.Value) {
	a.n++
	if v.Null {
		a.nulls = true
		a.b = append(a.b, 0xff, 0xff, 0xff, 0xff)
		return
	}
	at := len(a.b)
	a.b = appendElementBinary(append(a.b, 0, 0, 0, 0), Of(a.elem.Kind), v)
	binary.BigEndian.PutUint32(a.b[at:], uint32(len(a.b)-at-4))
}

// Size is the number of bytes so far, Len that of elements.
func (a *Array) Size() int { return len(a.b) }

// Len returns the number of elements.
func (a *Array) Len() int { return a.n }

// String returns the array, which is not used any more.
func (a *Array) String() string {
	if a.n == 0 {
		a.b = a.b[:arrayHeader]
	} else {
		a.b[3], a.b[arrayHeader+7] = 1, 1
		binary.BigEndian.PutUint32(a.b[arrayHeader:], uint32(a.n))
	}
	if a.nulls {
		a.b[7] = 1
	}
	binary.BigEndian.PutUint32(a.b[8:], OID(a.elem.Kind))
	return string(a.b)
}

// ElementText returns the text of an element of a kind from its binary form, as under DateStyle ISO and the time zone UTC.
func ElementText(elem vector.Kind, raw string) string {
	return string(appendElement(nil, Of(elem), raw))
}

// ArrayBounds returns the first and the last subscript of each dimension.
func ArrayBounds(s string) (bounds [][2]int64) {
	r, ok := readArray(s)
	for i := 0; ok && i < r.dims; i++ {
		bounds = append(bounds, [2]int64{int64(r.lower[i]), int64(r.lower[i]) + int64(r.lengths[i]) - 1})
	}
	return bounds
}

// ArraysEqual reports whether two arrays of elements of one type, equal ones of which have the same binary form, have the same
// bounds and equal elements; nulls are equal (array_eq). That one had nulls once is no matter.
func ArraysEqual(a, b string) bool { return a[:4] == b[:4] && a[arrayHeader:] == b[arrayHeader:] }

// ArrayWithout returns an array of one dimension without some of its elements; its lower bound stays, as in the server.
func ArrayWithout(s string, drop func(raw string, null bool) bool) string {
	r, ok := readArray(s)
	if !ok || r.dims == 0 {
		return s
	}
	b := []byte(s[:arrayHeader+8])
	kept, nulls, dropped := 0, false, false
	for {
		before := r.rest
		raw, null, ok := r.element()
		if !ok {
			break
		}
		if drop(raw, null) {
			dropped = true
			continue
		}
		kept, nulls = kept+1, nulls || null
		b = append(b, before[:len(before)-len(r.rest)]...)
	}
	switch {
	case !dropped:
		return s
	case kept == 0:
		b, b[3] = b[:arrayHeader], 0
	default:
		binary.BigEndian.PutUint32(b[arrayHeader:], uint32(kept))
	}
	if b[7] = 0; nulls {
		b[7] = 1
	}
	return string(b)
}
