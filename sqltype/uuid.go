package sqltype

import "pgaccel/vector"

// oidUUID is uuid's in pg_type.dat.
const oidUUID = 2950

const uuidSize = 16

// uuidType is held as a string of its 16 bytes, by which it sorts (uuid_internal_cmp in
// src/backend/utils/adt/uuid.c). 18 has min and max of it, earlier servers have not.
var uuidType = Type{Kind: vector.UUID, Name: "uuid", OID: oidUUID, Category: 'U', NoExtremes: true,
	Binary: BinaryBytes, Size: uuidSize, AppendString: appendUUID,
	Parse: func(s string) (vector.Datum, bool) {
		b, ok := parseUUID(s)
		return vector.Datum{Type: vector.TypeOf(vector.UUID), Str: string(b[:])}, ok
	},
	Receive: func(raw []byte) (vector.Datum, bool) {
		return vector.Datum{Type: vector.TypeOf(vector.UUID), Str: string(raw)}, len(raw) == uuidSize
	},
	Samples: []string{"00000000-0000-0000-0000-000000000000", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a12}", "a0eebc999c0b4ef8bb6d6bb9bd380a13", "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a14", "{a0eebc999c0b4ef8bb6d6bb9bd380a15}",
		"7fffffff-ffff-ffff-ffff-ffffffffffff", "80000000-0000-0000-0000-000000000000", "61000000-0000-0000-0000-000000000000", "61000000-0000-0000-0000-000000000001", "00ff0000-0000-0000-0000-0000000000ff", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
	Left: []string{"", "{}", "a", " a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 ", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111",
		"a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11", "a0e-ebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0-eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "-a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-}", "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "0xeebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
}

// parseUUID reads what string_to_uuid does (uuid.c): 32 hexadecimal digits, with or without a hyphen
// behind each four of them, all of it with or without braces. It skips no blanks.
func parseUUID(s string) (b [uuidSize]byte, ok bool) {
	if len(s) > 1 && s[0] == '{' && s[len(s)-1] == '}' {
		s = s[1 : len(s)-1]
	}
	for i := range b {
		if len(s) < 2 {
			return b, false
		}
		v, good := hexDigits(s[:2], 2, 2)
		if !good {
			return b, false
		}
		b[i], s = byte(v), s[2:]
		if i%2 == 1 && i < uuidSize-1 && s != "" && s[0] == '-' {
			s = s[1:]
		}
	}
	return b, s == ""
}

// appendUUID appends the text form of 16 bytes: five groups of digits in lower case.
func appendUUID(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	for i := range len(s) {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, digits[s[i]>>4], digits[s[i]&15])
	}
	return dst
}
