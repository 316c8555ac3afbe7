package sqltype

import (
	"encoding/binary"
	"math"

	"pgaccel/vector"
)

const oidOID = 26

// oidType is held as the number, which has no sign.
var oidType = word(Type{Kind: vector.OID, Name: "oid", OID: oidOID, Category: 'N', Preferred: true,
	Binary: BinaryOther, Size: 4, Word: oidFromBinary, AppendBinary: AppendInt4Binary, AppendText: AppendInt,
	Least: 0, Greatest: math.MaxUint32,
	Samples: []string{"0", "1", "26", "16384", "2147483647", "2147483648", "4294967294", "4294967295"},
	Left:    []string{"", "-1", "+1", "010", "0x10", "1_000", "1.5", "1e3", "4294967296", "18446744073709551615", "1 2"},
}, parseOID)

// parseOID reads decimal digits. Signs, which wrap around, and numbers that begin with 0, which are octal from 16 on
// (uint32in_subr in src/backend/utils/adt/numutils.c), are for Postgres.
func parseOID(s string) (v int64, ok bool) {
	if s == "" || s[0] == '0' && s != "0" || s[0] == '+' || s[0] == '-' {
		return 0, false
	}
	v, ok = parseInt(s, 64)
	return v, ok && v <= math.MaxUint32
}

func oidFromBinary(raw []byte) int64 { return int64(binary.BigEndian.Uint32(raw)) }
