package sqltype

import "pgaccel/vector"

// opaqueExtensions are types of extensions. Their OIDs are of a database, so that a vector.Type says which it is by its scale. A
// type is one of these if its output and send functions are the ones that AppendText and valid are written after.
var opaqueExtensions = []Opaque{
	textual(0, "citext", "", "a", "Größe", "GRÖSSE", `"a"\`),
	// hstore_out and hstore_send in contrib/hstore/hstore_io.c: the number of pairs, then keys and values behind their lengths, -1 of null.
	{Name: "hstore", OpaqueSettings: OpaqueSettings{Encoded: true}, valid: func(r *reader) { readHstore(r, nil) }, AppendText: appendHstore,
		Samples: []string{"", "a=>1", `"a b"=>"x\"y\\z", ä=>NULL, c=>""`, `""=>"NULL"`}},
}

// OpaqueExtensionSQL is the name of an opaque type of extensions that the pg_type row y is, "" for none: 12 is the language internal, 13 is C.
const OpaqueExtensionSQL = `CASE WHEN y.oid < 16384 OR y.typtype <> 'b' THEN '' ELSE coalesce((SELECT CASE
	WHEN o.prolang = 12 AND s.prolang = 12 AND o.prosrc = 'textout' AND s.prosrc = 'textsend' THEN 'citext'
	WHEN o.prolang = 13 AND s.prolang = 13 AND o.prosrc = 'hstore_out' AND s.prosrc = 'hstore_send' AND o.probin = '$libdir/hstore' AND s.probin = o.probin THEN 'hstore' END
	FROM pg_catalog.pg_proc o, pg_catalog.pg_proc s WHERE o.oid = y.typoutput AND s.oid = y.typsend), '') END`

// OpaqueExtensions are the types of extensions, which have no OID here.
func OpaqueExtensions() (list []*Opaque) {
	for i := range opaqueExtensions {
		list = append(list, &opaqueExtensions[i])
	}
	return list
}

// OpaqueExtensionType returns the type of the extension's name with an OID of the database's.
func OpaqueExtensionType(name string, oid uint32) (t vector.Type, ok bool) {
	for i := range opaqueExtensions {
		if opaqueExtensions[i].Name == name {
			t = vector.OpaqueType(oid)
			t.Scale = int16(i + 1)
			return t, true
		}
	}
	return t, false
}

// OpaqueOfType returns the opaque type that t is; nil where it is none.
func OpaqueOfType(t vector.Type) *Opaque {
	switch n := int(t.Scale); {
	case t.Kind != vector.Opaque || n < 0 || n > len(opaqueExtensions):
		return nil
	case n > 0:
		return &opaqueExtensions[n-1]
	}
	return OpaqueOf(t.Collation.OID)
}

// readHstore calls f with each pair.
func readHstore(r *reader, f func(key, value string, null bool)) {
	n := r.int32()
	if n < 0 {
		r.short = true
	}
	for ; n > 0 && !r.short; n-- {
		key, value, null := r.take(int(r.int32())), "", false
		if size := r.int32(); size == -1 {
			null = true
		} else {
			value = r.take(int(size))
		}
		if !ValidText([]byte(key)) || !ValidText([]byte(value)) {
			r.short = true
		}
		if f != nil && !r.short {
			f(key, value, null)
		}
	}
}

func appendHstore(dst []byte, raw string) []byte {
	start := len(dst)
	quoted := func(s string) {
		dst = append(dst, '"')
		for i := range len(s) {
			if s[i] == '"' || s[i] == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, s[i])
		}
		dst = append(dst, '"')
	}
	readHstore(&reader{rest: raw}, func(key, value string, null bool) {
		if len(dst) > start {
			dst = append(dst, ", "...)
		}
		quoted(key)
		dst = append(dst, "=>"...)
		if null {
			dst = append(dst, "NULL"...)
			return
		}
		quoted(value)
	})
	return dst
}
