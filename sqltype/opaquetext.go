package sqltype

import (
	"cmp"
	"slices"
	"strings"

	"pgaccel/vector"
)

// opaqueTexts are the types whose binary form is their text, or has it within.
var opaqueTexts = []Opaque{
	textual(1790, "refcursor", "", "a", "<unnamed portal 1>", "é"),
	// xml_send writes what xml_out does where the client's encoding is UTF8 (src/backend/utils/adt/xml.c).
	textual(142, "xml", "<a/>", "x", `<a b="1">&amp;é</a>`, `<?xml version="1.0" encoding="UTF-8"?><a/>`, `<?xml version="1.0" standalone="yes"?><a/>`, "<!-- - --> <a/>"),
	{OID: 4072, Name: "jsonpath", OpaqueSettings: OpaqueSettings{Encoded: true}, Samples: []string{"$", "lax $.a[*] ? (@.b > 1)", "strict $.\"größe\"", "$.a.type()", "1 + 2"},
		valid: func(r *reader) {
			if r.byte() != jsonpathVersion {
				r.short = true
			}
			validString(r)
		},
		AppendText: func(dst []byte, raw string) []byte { return append(dst, raw[1:]...) }},
}

// jsonpathVersion is what jsonpath_send writes before the text.
const jsonpathVersion = 1

// textual is a type whose binary form is its text.
func textual(oid uint32, name string, samples ...string) Opaque {
	return Opaque{OID: oid, Name: name, OpaqueSettings: OpaqueSettings{Encoded: true}, Samples: samples, valid: validString,
		AppendText: func(dst []byte, raw string) []byte { return append(dst, raw...) }}
}

// validString takes the rest.
func validString(r *reader) {
	if !ValidText([]byte(r.rest)) {
		r.short = true
	}
	r.rest = ""
}

// opaqueArray is a type of arrays: of an opaque type, or of a kind of which no arrays are held as such.
type opaqueArray struct {
	oid, element uint32
	kind         vector.Kind
	delimiter    byte
	settings     OpaqueSettings
}

// opaqueArrays are the types of arrays, by pg_type.typarray. Those of opaque types are noted in opaqueArrayOIDs.
func opaqueArrays() (list []Opaque) {
	arrays := []opaqueArray{{oid: 1014, kind: vector.BPChar, settings: OpaqueSettings{Encoded: true}}, {oid: 199, kind: vector.JSON, settings: OpaqueSettings{Encoded: true}},
		{oid: 1001, kind: vector.Bytea, settings: OpaqueSettings{Bytes: true}}, {oid: 1041, kind: vector.Inet}, {oid: 651, kind: vector.CIDR}, {oid: 775, kind: vector.MACAddr8}, {oid: 3221, kind: vector.LSN}, {oid: 1270, kind: vector.TimeTZ}, {oid: 1028, kind: vector.OID}, {oid: 791, kind: vector.Money, settings: OpaqueSettings{Money: true}}, {oid: 1561, kind: vector.Bit}, {oid: 1563, kind: vector.VarBit}, {oid: 1003, kind: vector.Name, settings: OpaqueSettings{Encoded: true}}, {oid: 1020, element: 603, delimiter: ';'}}
	opaqueArrayOIDs[603] = 1020
	for oid, element := range map[uint32]uint32{1187: 1186, 3905: 3904, 6150: 4451, 3927: 3926, 6157: 4536, 3907: 3906, 6151: 4532, 3913: 3912, 6155: 4535,
		3909: 3908, 6152: 4533, 3911: 3910, 6153: 4534, 1017: 600, 1018: 601, 629: 628, 719: 718, 1019: 602, 1027: 604, 1011: 28, 1012: 29, 271: 5069, 1010: 27,
		5039: 5038, 2949: 2970, 1002: 18, 1006: 22, 1013: 30, 2201: 1790, 143: 142, 4073: 4072, 3643: 3614, 3645: 3615} {
		arrays = append(arrays, opaqueArray{oid: oid, element: element})
		opaqueArrayOIDs[element] = oid
	}
	elements := map[uint32]*Opaque{}
	for _, t := range Opaques() {
		elements[t.OID] = t
	}
	for _, a := range arrays {
		if a.element == 0 {
			list = append(list, a.of(arrayElementType(a)))
			continue
		}
		list = append(list, a.of(elements[a.element]))
	}
	slices.SortFunc(list, func(a, b Opaque) int { return cmp.Compare(a.OID, b.OID) })
	return list
}

// arrayElementType is the type of the elements of a kind.
func arrayElementType(a opaqueArray) *Opaque {
	t := &types[a.kind]
	return &Opaque{OID: t.OID, Name: t.Name, OpaqueSettings: a.settings, Samples: t.Samples,
		valid: func(r *reader) {
			if t.Binary == BinaryText {
				validString(r)
				return
			}
			_, ok := t.Receive([]byte(r.rest))
			r.short, r.rest = !ok, ""
		},
		AppendText: func(dst []byte, raw string) []byte {
			if t.AppendString == nil {
				return appendElement(dst, t, raw)
			}
			d, _ := t.Receive([]byte(raw))
			return t.AppendString(dst, d.Str)
		}}
}

// of completes the type of arrays of elements.
func (a opaqueArray) of(element *Opaque) Opaque {
	if a.delimiter == 0 {
		a.delimiter = ','
	}
	return Opaque{OID: a.oid, Name: "_" + element.Name, OpaqueSettings: element.OpaqueSettings, Samples: a.samples(element.Samples),
		valid: func(r *reader) {
			if !validArrayOf(r.rest, element.OID, func(raw string) bool {
				_, ok := element.Receive([]byte(raw))
				return ok
			}) {
				r.short = true
			}
			r.rest = ""
		},
		AppendText: func(dst []byte, raw string) []byte {
			return appendDelimited(dst, raw, a.delimiter, element.AppendText)
		}}
}

// samples are arrays of the samples of the elements.
func (a opaqueArray) samples(elements []string) []string {
	var quoted []string
	for _, s := range elements {
		quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)+`"`)
	}
	d := string(a.delimiter)
	return []string{"{}", "{" + strings.Join(quoted, d) + "}", "{NULL" + d + quoted[0] + "}", "[0:0]={" + quoted[len(quoted)-1] + "}", "{{" + quoted[0] + d + quoted[1] + "}" + d + "{NULL" + d + quoted[0] + "}}"}
}
