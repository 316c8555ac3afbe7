package replica

import (
	"slices"
	"strings"

	"pgaccel/catalog"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// attribute is what pg_attribute, pg_type and pg_collation say of a column.
type attribute struct {
	num           int16
	name          string
	typeOID       uint32
	base          uint32 // typeOID, or what the domain is over
	typeName      string // format_type's, for people
	extension     string // sqltype.OpaqueExtensionSQL's
	enum          *catalog.Enum
	typmod        int32
	notNull       bool
	generated     bool
	virtual       bool // generated, and not stored (18 and later)
	readable      bool // SELECT is granted
	supposed      bool // it is not, but taken to be (Survey)
	sendable      bool // its type has a binary form
	collation     uint32
	collProvider  string // pg_collation.collprovider; "" without collation
	collName      string // collcollate, or the locale of providers that have one
	collCtype     string // the locale of upper and lower case
	deterministic bool
}

// dbCollation is the database's default collation.
type dbCollation struct {
	provider, locale string
	ctype            string // the locale of upper and lower case
	utf8             bool   // server_encoding
}

// defaultCollationOID is the collation "default" (pg_collation.dat): the database's.
const defaultCollationOID = 100

// cCollationOID is the collation "C", which is the type name's.
const cCollationOID = 950

// typeReason begins what is said of a column whose type is none of ours.
const typeReason = "type "

// typeOf returns the type under which a column is copied, or why it is not.
func typeOf(a *attribute, db *dbCollation) (t vector.Type, unsupported string) {
	kind := sqltype.HeldKind(a.base)
	t = vector.TypeOf(kind)
	if a.enum != nil {
		t = vector.EnumType(a.typeOID)
		kind = t.Kind
	}
	if !kind.Valid() && sqltype.OpaqueOf(a.typeOID) != nil {
		t = vector.OpaqueType(a.typeOID)
		kind = t.Kind
	}
	if of, ok := sqltype.OpaqueExtensionType(a.extension, a.typeOID); ok && !kind.Valid() {
		t, kind = of, of.Kind
	}
	t.Typmod = a.typmod
	if t.Kind == vector.Opaque { // citext under another collation than the database's is not compared
		t.Collation.Deterministic = a.collation == 0 || a.collation == defaultCollationOID
	}
	switch {
	case !kind.Valid(), a.base != a.typeOID && !(domain{base: a.base}).kind().Valid():
		return t, typeReason + a.typeName
	case a.generated:
		return t, "generated column"
	case !a.readable:
		return t, "no SELECT privilege"
	case kind == vector.Numeric:
		t.Scale = vector.VaryingScale
		if precision, scale := sqltype.NumericModifier(a.typmod); a.typmod >= 0 && precision <= vector.NumericMaxPrecision && scale >= 0 && scale <= vector.NumericMaxPrecision {
			t.Scale = int16(scale)
		}
	case kind.IsArray() && kind.Element().IsText() && !a.deterministic:
		return t, "array of text under a nondeterministic collation"
	case kind.IsArray() && !db.utf8:
		return t, "array in a database whose encoding is not UTF8"
	case kind.IsArray() && kind.Element().IsText():
		t.Collation.OID = a.collation // of its elements; arrays themselves are bytes
	case (kind.IsDocument() || kind.IsMany()) && !db.utf8:
		return t, kind.String() + " in a database whose encoding is not UTF8"
	case kind == vector.Name && a.collation != cCollationOID:
		return t, "name under another collation than C"
	case kind == vector.Name && !db.utf8:
		return t, "text in a database whose encoding is not UTF8"
	case kind.IsText():
		// Values with and without trailing blanks are equal but print apart: one
		// dictionary code each would not do.
		if kind == vector.BPChar && a.typmod < 0 {
			return t, "char without declared length"
		}
		if !db.utf8 {
			return t, "text in a database whose encoding is not UTF8"
		}
		t.Collation = vector.Collation{OID: a.collation, Deterministic: a.deterministic, C: a.sortsBytewise(db), Turkic: a.turkic(db)}
	}
	return t, ""
}

// sortsBytewise reports whether the collation's order is memcmp of the UTF-8 bytes
// in every version of its provider.
func (a *attribute) sortsBytewise(db *dbCollation) bool {
	provider, locale := a.collProvider, a.collName
	if a.collation == defaultCollationOID {
		provider, locale = db.provider, db.locale
	}
	switch provider {
	case "c":
		return locale == "C" || locale == "POSIX"
	case "b": // builtin, 17 and later: all of its locales sort by code point
		return true
	}
	return false
}

// casesASCII reports whether only letters of ASCII have an upper and a lower case. Of the builtin
// provider's locales (17 and later) only C is so.
func (db *dbCollation) casesASCII() bool {
	return (db.provider == "c" || db.provider == "b") && (db.ctype == "C" || db.ctype == "POSIX")
}

// collation is the database's default one, which is deterministic.
func (db *dbCollation) collation() vector.Collation {
	a := attribute{collation: defaultCollationOID}
	return vector.Collation{OID: defaultCollationOID, Deterministic: true, C: a.sortsBytewise(db), Turkic: a.turkic(db)}
}

// turkicLanguages are those whose locales have a dotless i, as ICU, the C library and Windows
// name them.
var turkicLanguages = []string{"tr", "az", "crh", "ku", "tt", "turkish", "azerbaijani", "azeri"}

// turkic reports whether the lower case of I may not be i.
func (a *attribute) turkic(db *dbCollation) bool {
	ctype := a.collCtype
	if a.collation == defaultCollationOID {
		ctype = db.ctype
	}
	language := strings.ToLower(ctype)
	if end := strings.IndexAny(language, "_-.@"); end >= 0 {
		language = language[:end]
	}
	return slices.Contains(turkicLanguages, language)
}
