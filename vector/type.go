package vector

// Kind is the family of a type: what decides how a value is held and compared.
type Kind uint8

// The kinds that pgaccel stores and computes with. Anything else is Invalid:
// a column of such a type is not copied, and a query that reads it is forwarded.
const (
	Invalid Kind = iota
	Bool
	Int2
	Int4
	Int8
	Numeric
	Date
	Time
	Timestamp
	TimestampTZ
	Float4
	Float8
	Text
	Varchar
	BPChar
	MACAddr
	UUID
	Interval
	JSONB
	Enum // of any CREATE TYPE ... AS ENUM: Type.Collation.OID says of which
	JSON
	Bytea
	Inet
	CIDR
	Opaque // of any type of sqltype.OpaqueOfType, which nothing is computed of: Type.Collation.OID says of which, and Scale of which extension
	MACAddr8
	LSN
	TimeTZ
	OID
	Name
	Money
	Bit
	VarBit

	kinds // a new one comes just before: checkpoints hold the numbers
)

// kindNames are the SQL names; package sqltype has everything else about a kind.
var kindNames = [kinds]string{Invalid: "invalid", Bool: "boolean", Int2: "smallint", Int4: "integer", Int8: "bigint", Numeric: "numeric",
	Date: "date", Time: "time", Timestamp: "timestamp", TimestampTZ: "timestamptz", Float4: "real", Float8: "double precision",
	Text: "text", Varchar: "varchar", BPChar: "char",
	MACAddr: "macaddr", UUID: "uuid", Interval: "interval", JSONB: "jsonb", Enum: "enum", JSON: "json",
	Bytea: "bytea", Inet: "inet", CIDR: "cidr", Opaque: "opaque type",
	MACAddr8: "macaddr8", LSN: "pg_lsn", TimeTZ: "timetz",
	OID: "oid", Name: "name", Money: "money", Bit: "bit", VarBit: "bit varying",
}

// Kinds returns the kinds that can be held and are one type: all but Enum and Opaque.
func Kinds() []Kind {
	list := make([]Kind, 0, kinds-3)
	for k := Invalid + 1; k < kinds; k++ {
		if k != Enum && k != Opaque {
			list = append(list, k)
		}
	}
	return list
}

// arrayBit marks the kind of arrays of a kind.
const arrayBit Kind = 1 << 7

// ArrayOf returns the kind of arrays of a kind, of whatever dimensions: Invalid where none are held.
// Of char(n), values that are equal print apart where they have no length. How those of bytea are written depends on bytea_output.
func ArrayOf(k Kind) Kind {
	switch {
	case k == Invalid, k >= kinds, k == Interval, k == BPChar, k == Enum, k == JSON, k == Bytea, k == Inet, k == CIDR, k == Opaque,
		k == MACAddr8, k == LSN, k == TimeTZ, k == OID, k == Name, k == Money, k == Bit, k == VarBit:
		return Invalid
	}
	return k | arrayBit
}

// IsArray reports whether values are arrays, of Element. They are not among Kinds.
func (k Kind) IsArray() bool { return k&arrayBit != 0 }

// Element returns the kind of an array's elements, of others k itself.
func (k Kind) Element() Kind { return k &^ arrayBit }

// Valid reports whether k is one of the kinds that can be held, or of arrays of one.
func (k Kind) Valid() bool { return k != Invalid && (k < kinds || ArrayOf(k.Element()) == k) }

// String returns the SQL name of the kind.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	if k.IsArray() && k.Valid() {
		return kindNames[k.Element()] + "[]"
	}
	return "invalid"
}

// IsInt reports whether k is smallint, integer or bigint.
func (k Kind) IsInt() bool { return k == Int2 || k == Int4 || k == Int8 }

// IsFloat reports whether k is real or double precision.
func (k Kind) IsFloat() bool { return k == Float4 || k == Float8 }

// IsText reports whether k is text, varchar or char(n).
func (k Kind) IsText() bool { return k == Text || k == Varchar || k == BPChar }

// IsString reports whether values are held as strings, in columns as codes of a dictionary:
// those of text, of names, of enums, of types that sort as strings do, and of those that are not Ordered.
func (k Kind) IsString() bool {
	return k.IsText() || k.IsBytes() || k.IsDocument() || k == Name || k == Enum || k == Opaque || k.IsArray()
}

// IsMany reports whether the kind is of many types, which Type.Collation.OID tells apart.
func (k Kind) IsMany() bool { return k == Enum || k == Opaque }

// IsBytes reports whether values are held as strings that are not text and sort as the values do.
func (k Kind) IsBytes() bool {
	return k == UUID || k == Bytea || k == Inet || k == CIDR || k == MACAddr8 || k == LSN || k == TimeTZ || k.IsBits()
}

// IsBits reports whether k is bit or bit varying.
func (k Kind) IsBits() bool { return k == Bit || k == VarBit }

// IsDocument reports whether k is json or jsonb.
func (k Kind) IsDocument() bool { return k == JSONB || k == JSON }

// Ordered reports whether values are compared, ordered and grouped here. Documents of jsonb and arrays may be
// equal and print apart; those of json have no equality; of opaque ones nothing is known.
func (k Kind) Ordered() bool { return !k.IsDocument() && !k.IsArray() && k != Opaque }

// HeldAsText reports whether values are held as strings that are their text form.
func (k Kind) HeldAsText() bool { return k.IsString() && !k.IsBytes() && k != Opaque && !k.IsArray() }

// IsCastToText reports whether the cast to text is the text form, under DateStyle ISO and the like. Of bytea it depends
// on bytea_output, of money on lc_monetary, of addresses it always has the bits of the network.
func (k Kind) IsCastToText() bool {
	return !k.IsFloat() && k != Bytea && k != Inet && k != CIDR && k != Opaque && k != Money
}

// NumericMaxPrecision is the largest declared precision whose values always
// fit 64 bits unscaled.
const NumericMaxPrecision = 18

// Collation says how the text of a column sorts. Equality is bytewise under
// every deterministic collation; only order depends on it.
type Collation struct {
	OID           uint32 // pg_collation.oid, or pg_type.oid of an enum; 0 for types without either
	Deterministic bool
	// C is true where order is memcmp of the bytes: collations "C", "POSIX",
	// "ucs_basic", or the database default when that is C or POSIX.
	C bool
	// Turkic is true where the lower case of I is not i, as in Turkish.
	Turkic bool
}

// Type is the type of a column or an expression.
type Type struct {
	Kind      Kind
	Scale     int16 // Numeric: digits after the decimal point of the unscaled integer; VaryingScale for results whose scale is per value
	Typmod    int32 // as Postgres' atttypmod, -1 for none
	Collation Collation
}

// VaryingScale marks a Numeric type whose values carry their own display scale: columns whose
// values need not fit 64 bits, results of avg and of numeric division.
const VaryingScale int16 = -1

// Varying reports whether the values are numerics that carry their own display scale.
func (t Type) Varying() bool { return t.Kind == Numeric && t.Scale == VaryingScale }

// Coded reports whether columns hold codes of a dictionary in place of values: of strings, and of
// numerics that carry their own display scale.
func (t Type) Coded() bool { return t.Kind.IsString() || t.Varying() }

// Bytewise is the collation "C" (pg_collation.dat): strings sort by their bytes.
var Bytewise = Collation{OID: 950, Deterministic: true, C: true}

// TypeOf returns the plain type of a kind, without modifiers. Strings that are not text sort by
// their bytes.
func TypeOf(k Kind) Type {
	t := Type{Kind: k, Typmod: -1}
	if k.IsBytes() || k.IsArray() || k == Name {
		t.Collation = Bytewise
	}
	return t
}

// EnumType returns the type of the enum whose OID in pg_type is given. Its labels sort as the catalog
// says, which stands in the place of a collation.
func EnumType(oid uint32) Type {
	return Type{Kind: Enum, Typmod: -1, Collation: Collation{OID: oid, Deterministic: true}}
}

// OpaqueType returns the type of kind Opaque whose OID in pg_type is given.
func OpaqueType(oid uint32) Type {
	return Type{Kind: Opaque, Typmod: -1, Collation: Collation{OID: oid, Deterministic: true, C: true}}
}

// NumericType returns the type of exact numerics held with the given scale.
func NumericType(scale int16) Type { return Type{Kind: Numeric, Scale: scale, Typmod: -1} }
