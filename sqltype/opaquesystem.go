package sqltype

import (
	"encoding/binary"
	"strconv"

	"pgaccel/vector"
)

// opaqueSystem are the types of the catalog and of transactions whose text is that of their numbers.
var opaqueSystem = []Opaque{
	unsigned(28, "xid"),
	unsigned(29, "cid"),
	{OID: 5069, Name: "xid8", valid: func(r *reader) { r.int64() }, Samples: []string{"0", "1", "9223372036854775808", "18446744073709551615"},
		AppendText: func(dst []byte, raw string) []byte {
			r := reader{rest: raw}
			return strconv.AppendUint(dst, uint64(r.int64()), 10)
		}},
	{OID: 27, Name: "tid", valid: func(r *reader) { r.int32(); r.int16() }, Samples: []string{"(0,0)", "(1,2)", "(4294967295,65535)"},
		AppendText: func(dst []byte, raw string) []byte {
			r := reader{rest: raw}
			dst = strconv.AppendUint(append(dst, '('), uint64(uint32(r.int32())), 10)
			return append(strconv.AppendUint(append(dst, ','), uint64(uint16(r.int16())), 10), ')')
		}},
	snapshot(5038, "pg_snapshot"),
	snapshot(2970, "txid_snapshot"),
	{OID: 18, Name: "char", valid: validChar, Samples: []string{"", "a", " ", `\`, "~", "7"},
		AppendText: func(dst []byte, raw string) []byte {
			if raw == "\x00" {
				return dst
			}
			return append(dst, raw...)
		}},
	vectorOf(vector.Int2, oidInt2, 22, "int2vector", "", "1", "1 2 -3", "32767 -32768"),
	vectorOf(vector.OID, oidOID, 30, "oidvector", "", "1", "1 2 4294967295"),
}

const oidInt2 = 21

// unsigned is a type of 32 bits without sign.
func unsigned(oid uint32, name string) Opaque {
	return Opaque{OID: oid, Name: name, valid: func(r *reader) { r.int32() }, Samples: []string{"0", "1", "2147483648", "4294967295"},
		AppendText: func(dst []byte, raw string) []byte {
			r := reader{rest: raw}
			return strconv.AppendUint(dst, uint64(uint32(r.int32())), 10)
		}}
}

// snapshot is a type of transactions under way (pg_snapshot_out in src/backend/utils/adt/xid8funcs.c).
func snapshot(oid uint32, name string) Opaque {
	return Opaque{OID: oid, Name: name, Samples: []string{"1:1:", "10:20:10,14,15", "1:9223372036854775807:9223372036854775806"},
		valid: func(r *reader) {
			n := int(r.int32())
			if n < 0 || n > len(r.rest) {
				r.short = true
				return
			}
			r.take((2 + n) * 8)
		},
		AppendText: func(dst []byte, raw string) []byte {
			r := reader{rest: raw}
			n := r.int32()
			dst = append(strconv.AppendUint(dst, uint64(r.int64()), 10), ':')
			dst = append(strconv.AppendUint(dst, uint64(r.int64()), 10), ':')
			for i := range n {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = strconv.AppendUint(dst, uint64(r.int64()), 10)
			}
			return dst
		}}
}

// validChar leaves bytes that are not of ASCII: 16 and later write them otherwise than 15.
func validChar(r *reader) {
	if c := r.byte(); c >= 0x80 {
		r.short = true
	}
}

// vectorOf is a type of arrays that are written with blanks between.
func vectorOf(of vector.Kind, element, oid uint32, name string, samples ...string) Opaque {
	size := types[of].Size
	return Opaque{OID: oid, Name: name, Samples: samples,
		valid: func(r *reader) {
			if len(r.rest) == arrayHeader+8 && r.rest[:arrayHeader+4] == emptyVector(element) {
				r.rest = ""
				return
			}
			a, ok := readArray(r.rest)
			if !ok || a.dims != 1 || !validArrayOf(r.rest, element, func(raw string) bool { return len(raw) == size }) {
				r.short = true
			}
			EachElement(r.rest, func(_ string, null bool) { r.short = r.short || null })
			r.rest = ""
		},
		AppendText: func(dst []byte, raw string) []byte {
			start := len(dst)
			EachElement(raw, func(raw string, _ bool) {
				if len(dst) > start {
					dst = append(dst, ' ')
				}
				dst = strconv.AppendInt(dst, types[of].Word([]byte(raw)), 10)
			})
			return dst
		}}
}

// emptyVector is how a vector without elements begins, which unlike other arrays has a dimension.
func emptyVector(element uint32) string {
	b := binary.BigEndian.AppendUint32(nil, 1)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, element)
	return string(binary.BigEndian.AppendUint32(b, 0))
}
