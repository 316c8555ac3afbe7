package sqltype

import (
	"strings"

	"pgaccel/vector"
)

// Flags of the binary form of ranges (utils/rangetypes.h).
const (
	rangeEmpty         = 0x01
	rangeLowerIncluded = 0x02
	rangeUpperIncluded = 0x04
	rangeLowerInfinite = 0x08
	rangeUpperInfinite = 0x10
)

// opaqueRanges are the built-in ones.
var opaqueRanges = []Opaque{
	rangeOf(vector.Int4, 3904, "int4range", "empty", "[1,3)", "(,)", "[-5,)", "(,7]"),
	multirangeOf(vector.Int4, 4451, "int4multirange", "{}", "{[1,3),[5,7)}", "{(,)}"),
	rangeOf(vector.Int8, 3926, "int8range", "empty", "[1,9223372036854775807)", "(,)"),
	multirangeOf(vector.Int8, 4536, "int8multirange", "{}", "{[1,3),[5,)}"),
	rangeOf(vector.Numeric, 3906, "numrange", "empty", "[1.50,3)", "(1.0,1.00]", "(-Infinity,NaN]", "[-0.10,)", "(,1e10]"),
	multirangeOf(vector.Numeric, 4532, "nummultirange", "{}", "{(1.0,2.50],[3,)}"),
	rangeOf(vector.Date, 3912, "daterange", "empty", "[2020-01-01,2020-02-29)", "(,infinity)", "[-infinity,infinity]", "[0044-03-15 BC,10000-01-01)", "(,)"),
	multirangeOf(vector.Date, 4535, "datemultirange", "{}", "{[2020-01-01,2020-02-29),[2021-01-01,)}"),
	rangeOf(vector.Timestamp, 3908, "tsrange", "empty", `["2020-01-01 00:00:00","2020-02-29 12:34:56.789"]`, "(,infinity)", "[0044-03-15 01:00 BC,)"),
	multirangeOf(vector.Timestamp, 4533, "tsmultirange", "{}", `{["2020-01-01 00:00:00","2020-02-29 12:34:56.789"],[2021-01-01,)}`),
	rangeOf(vector.TimestampTZ, 3910, "tstzrange", "empty", `["2020-01-01 00:00:00+00","2020-02-29 12:34:56.789+02"]`, "(,infinity)", "[0044-03-15 01:00+00 BC,)"),
	multirangeOf(vector.TimestampTZ, 4534, "tstzmultirange", "{}", `{["2020-01-01 00:00:00+00","2020-02-29 12:34:56.789+02"],[2021-01-01,)}`),
}

// rangeOf is the type of ranges of a kind (range_send and range_out in src/backend/utils/adt/rangetypes.c): flags, then
// the ends that there are, each behind its length.
func rangeOf(k vector.Kind, oid uint32, name string, samples ...string) Opaque {
	return Opaque{OID: oid, Name: name, OpaqueSettings: OpaqueSettings{Dates: types[k].Settings, Zones: k == vector.TimestampTZ}, Samples: samples,
		AppendText: func(dst []byte, raw string) []byte { return appendRange(dst, raw, &types[k]) },
		valid:      func(r *reader) { validRange(r, &types[k]) }}
}

// multirangeOf is the type of several (multirangetypes.c): their number, then each behind its length.
func multirangeOf(k vector.Kind, oid uint32, name string, samples ...string) Opaque {
	t := rangeOf(k, oid, name, samples...)
	t.valid = func(r *reader) {
		for range r.int32() {
			one := reader{rest: r.take(int(r.int32()))}
			if r.short {
				return
			}
			validRange(&one, &types[k])
			r.short = one.short || one.rest != ""
		}
	}
	t.AppendText = func(dst []byte, raw string) []byte {
		r := reader{rest: raw}
		dst = append(dst, '{')
		for i := range r.int32() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendRange(dst, r.take(int(r.int32())), &types[k])
		}
		return append(dst, '}')
	}
	return t
}

func validRange(r *reader, of *Type) {
	flags := r.byte()
	for _, without := range []byte{rangeLowerInfinite, rangeUpperInfinite} {
		if flags&(rangeEmpty|without) == 0 {
			end := r.take(int(r.int32()))
			_, ok := of.Receive([]byte(end))
			r.short = r.short || !ok && (of.Kind != vector.Numeric || unboundedNumeric(end) == "")
		}
	}
}

func appendRange(dst []byte, raw string, of *Type) []byte {
	r := reader{rest: raw}
	flags := r.byte()
	if flags&rangeEmpty != 0 {
		return append(dst, "empty"...)
	}
	open, closed := byte('('), byte(')')
	if flags&rangeLowerIncluded != 0 {
		open = '['
	}
	if flags&rangeUpperIncluded != 0 {
		closed = ']'
	}
	dst = append(dst, open)
	if flags&rangeLowerInfinite == 0 {
		dst = appendRangeEnd(dst, r.take(int(r.int32())), of)
	}
	dst = append(dst, ',')
	if flags&rangeUpperInfinite == 0 {
		dst = appendRangeEnd(dst, r.take(int(r.int32())), of)
	}
	return append(dst, closed)
}

// appendRangeEnd writes an end, in quotes where it has blanks: moments, and those before Christ.
func appendRangeEnd(dst []byte, raw string, of *Type) []byte {
	if of.Kind == vector.Numeric {
		if text := unboundedNumeric(raw); text != "" {
			return append(dst, text...)
		}
	}
	text := string(appendElement(nil, of, raw))
	if !strings.Contains(text, " ") {
		return append(dst, text...)
	}
	return append(append(append(dst, '"'), text...), '"')
}

// unboundedNumeric is the text of the binary form of a numeric that is no number, "" of others.
func unboundedNumeric(raw string) string {
	if len(raw) != 8 {
		return ""
	}
	return map[string]string{"\xc0\x00": "NaN", "\xd0\x00": "Infinity", "\xf0\x00": "-Infinity"}[raw[4:6]]
}
