package sqltype

import (
	"fmt"
	"strings"

	"pgaccel/vector"
)

// Space are the characters that input functions of all types but text skip at both ends.
const Space = " \t\n\r\v\f"

// TrimSpace takes the blanks off that the input function of a type skips before and behind a value, whatever its form: an
// interval such as P1D stands without.
func TrimSpace(k vector.Kind, s string) string {
	if k.IsString() || k == vector.Interval {
		return s
	}
	return strings.Trim(s, Space)
}

// Type is what is known of a kind beside how it is held; tests compare it with pg_type and
// pg_cast. Values of 64 bits must sort as Postgres sorts them, those of floats by
// vector.FloatKey.
type Type struct {
	Kind      vector.Kind
	Name      string // pg_type.typname; Kind.String is the SQL name
	OID       uint32
	Category  byte // pg_type.typcategory
	Preferred bool // pg_type.typispreferred
	// Implicit are the other kinds to which Postgres casts by itself (pg_cast.castcontext 'i').
	Implicit []vector.Kind

	// NoExtremes says that the server has no min and max of the type.
	NoExtremes bool

	// Binary is the layout of the binary form, Size its length in bytes, 0 where it varies.
	Binary Binary
	Size   int
	// Word reads the binary form of a kind held in 64 bits, of the right size and valid;
	// AppendBinary writes it. Loops over rows have functions of their own for most layouts.
	Word         func(raw []byte) int64
	AppendBinary func(dst []byte, v int64) []byte
	// AppendText writes the text form of a kind held in 64 bits, where it depends on
	// settings that of DateStyle ISO and the time zone UTC.
	AppendText func(dst []byte, v int64) []byte
	// AppendString writes the text form of a kind held as a string, where that is not the string
	// itself; else nil.
	AppendString func(dst []byte, s string) []byte
	// AppendStringBinary writes the binary form of a kind of BinaryKey; Receive reads it.
	AppendStringBinary func(dst []byte, s string) []byte
	// Parse reads the text form, without blanks around it; ParseWord is the same of a kind
	// held in 64 bits.
	Parse     func(s string) (d vector.Datum, ok bool)
	ParseWord func(s string) (v int64, ok bool)
	// Receive reads the binary form as the type's receive function does: ok is false for
	// what that refuses.
	Receive func(b []byte) (d vector.Datum, ok bool)
	// Settings says that the text form depends on DateStyle or TimeZone: it is written as
	// the settings say, and read only in forms that mean the same under all.
	Settings bool

	// Least and Greatest are the ends of the finite values; both are 0 for kinds without
	// such a range: floats and text.
	Least, Greatest int64
	// NegInfinity and Infinity are the infinite values, 0 where there are none. Of floats
	// they are not told.
	NegInfinity, Infinity int64

	// Samples are values in text form, as Postgres writes them or not, with those where the
	// type ends, turns or prints otherwise: tests take theirs from here. Left are texts that
	// Parse leaves to Postgres, which may refuse them.
	Samples, Left []string
}

var types = [1 << 8]Type{
	vector.Bool:        boolType,
	vector.Int2:        int2Type,
	vector.Int4:        int4Type,
	vector.Int8:        int8Type,
	vector.Numeric:     numericType,
	vector.Date:        dateType,
	vector.Time:        timeType,
	vector.Timestamp:   timestampType,
	vector.TimestampTZ: timestampTZType,
	vector.Float4:      float4Type,
	vector.Float8:      float8Type,
	vector.Text:        textType,
	vector.Varchar:     varcharType,
	vector.BPChar:      bpcharType,
	vector.MACAddr:     macaddrType,
	vector.UUID:        uuidType,
	vector.Interval:    intervalType,
	vector.JSONB:       jsonbType,
	vector.Enum:        enumType,
	vector.JSON:        jsonType,
	vector.Bytea:       byteaType,
	vector.Inet:        inetType,
	vector.CIDR:        cidrType,
	vector.MACAddr8:    macaddr8Type,
	vector.LSN:         lsnType,
	vector.TimeTZ:      timetzType,
	vector.OID:         oidType,
	vector.Name:        nameType,
	vector.Money:       moneyType,
	vector.Bit:         bitType,
	vector.VarBit:      varbitType,
	vector.Opaque:      {Kind: vector.Opaque, Name: "opaque", Category: 'U', NoExtremes: true, Binary: BinaryBytes},
}

// Of returns the type of a kind, which must not be Invalid.
func Of(k vector.Kind) *Type {
	if types[k].Kind == vector.Invalid {
		noType(k)
	}
	return &types[k]
}

// noType stands apart so that Of is inlined: loops call it.
//
//go:noinline
func noType(k vector.Kind) { panic(fmt.Sprintf("BUG: no type of kind %d (%s)", k, k)) }

// ReadsText reports whether text that is cast to a kind, held in 64 bits, is read here: in the forms that Parse
// knows, which mean the same under every setting and to every version of the server.
func ReadsText(k vector.Kind) bool {
	switch k {
	case vector.Bool, vector.Date, vector.Time, vector.Timestamp, vector.TimestampTZ, vector.Float4, vector.Float8:
		return true
	}
	return k.IsInt()
}

// FromText casts text to a kind that ReadsText, or to numeric, of its own scale: blanks at both ends are skipped. ok
// is false for what Postgres may read, or refuse.
func FromText(s string, k vector.Kind) (v vector.Value, ok bool) {
	for s != "" && isSpace[s[0]] {
		s = s[1:]
	}
	for s != "" && isSpace[s[len(s)-1]] {
		s = s[:len(s)-1]
	}
	if k == vector.Numeric {
		v.Num, ok = ParseNumeric(s)
	} else {
		v.I, ok = types[k].ParseWord(s)
	}
	return v, ok
}

// isSpace are the bytes of Space.
var isSpace = [256]bool{' ': true, '\t': true, '\n': true, '\r': true, '\v': true, '\f': true}

// OIDUnknown is the type of literals and parameters that have none yet.
const OIDUnknown = 705

var kindsByOID = func() map[uint32]vector.Kind {
	m := make(map[uint32]vector.Kind, len(types))
	for _, k := range vector.Kinds() {
		m[types[k].OID] = k
	}
	return m
}()

// KindOf returns the kind of a pg_type OID, Invalid where pgaccel has none; arrays are left to HeldKind.
func KindOf(oid uint32) vector.Kind { return kindsByOID[oid] }

// OIDOf returns the pg_type OID of a type, 0 for Invalid.
func OIDOf(t vector.Type) uint32 {
	if t.Kind.IsMany() {
		return t.Collation.OID
	}
	return OID(t.Kind)
}

// OID returns the pg_type OID of a kind, 0 for Invalid and of enums, which have one each.
func OID(k vector.Kind) uint32 {
	if !k.Valid() {
		return 0
	}
	return types[k].OID
}

// Ranged reports whether the finite values are those from Least to Greatest.
func (t *Type) Ranged() bool { return t.Least < t.Greatest }

// IsInfinite reports whether v is one of the infinite values; floats have none here.
func (t *Type) IsInfinite(v int64) bool {
	return t.Infinity != 0 && (v == t.Infinity || v == t.NegInfinity)
}

// valid reports whether v is a value.
func (t *Type) valid(v int64) bool {
	return !t.Ranged() || t.Least <= v && v <= t.Greatest || t.IsInfinite(v)
}

// word completes the Type of a kind that is held in 64 bits: with the functions of its
// layout, and those that read both forms.
func word(t Type, parse func(s string) (int64, bool)) Type {
	if t.Binary != BinaryOther {
		l := layouts[t.Binary]
		t.Size, t.Word, t.AppendBinary = l.size, l.word, l.append
	}
	t.ParseWord = parse
	t.Parse = func(s string) (vector.Datum, bool) {
		v, ok := parse(s)
		return vector.Int(t.Kind, v), ok
	}
	t.Receive = func(raw []byte) (vector.Datum, bool) {
		if len(raw) != t.Size {
			return vector.Datum{}, false
		}
		v := t.Word(raw)
		return vector.Int(t.Kind, v), t.valid(v)
	}
	return t
}
