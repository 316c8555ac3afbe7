package sqltype

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"pgaccel/vector"
)

const (
	OIDFloat4 = 700
	OIDFloat8 = 701
)

var (
	float4Type = floatType(Type{Kind: vector.Float4, Name: "float4", OID: OIDFloat4, Implicit: []vector.Kind{vector.Float8}, Binary: BinaryFloat4,
		AppendText: func(dst []byte, v int64) []byte { return AppendFloat(dst, v, 32) },
		Samples: []string{"0", "-0", "1.5", "0.1", "1e5", "1e6", "123456", "1234567", "1e-4", "1e-5", "3.4028235e38", "-3.4028235e38", "1e-45", "1.17549435e-38", "16777216",
			"NaN", "Infinity", "-Infinity"}})
	float8Type = floatType(Type{Kind: vector.Float8, Name: "float8", OID: OIDFloat8, Preferred: true, Binary: BinaryInt8,
		AppendText: func(dst []byte, v int64) []byte { return AppendFloat(dst, v, 64) },
		Samples: []string{"0", "-0", "1.5", "0.1", "1e14", "1e15", "1e-4", "1e-5", "1e23", "9007199254740993", "1.7976931348623157e308", "-1.7976931348623157e308", "5e-324",
			"2.2250738585072014e-308", "NaN", "Infinity", "-Infinity"}})
)

func floatType(t Type) Type {
	t.Category = 'N'
	return word(t, func(s string) (int64, bool) { return parseFloat(s, 8*layouts[t.Binary].size) })
}

// parseFloat reads a double (width 64) or a real (32) and rounds once, as strtod and
// strtof do: plain decimals, infinities and NaN. Hexadecimal and overlong forms, overflow
// and underflow are for Postgres.
func parseFloat(s string, width int) (bits int64, ok bool) {
	nonzero := false
	switch body := strings.TrimLeft(s, "+-"); {
	case strings.EqualFold(s, "nan"), strings.EqualFold(body, "infinity"), strings.EqualFold(body, "inf"):
		if len(s)-len(body) > 1 {
			return 0, false
		}
		nonzero = true
	default:
		exponent := false
		for i := 0; i < len(body); i++ {
			switch c := body[i]; {
			case c >= '0' && c <= '9':
				nonzero = nonzero || c != '0' && !exponent
			case c == 'e' || c == 'E':
				exponent = true
			case c == '.' || c == '+' || c == '-':
			default:
				return 0, false
			}
		}
	}
	f, err := strconv.ParseFloat(s, width)
	if err != nil || f == 0 && nonzero {
		return 0, false
	}
	if f != f {
		return vector.NaNBits, true
	}
	return int64(math.Float64bits(f)), true
}

// Float4FromBinary reads a real and widens it. NaNs keep their sign and payload.
func Float4FromBinary(raw []byte) int64 { return WidenFloat4(binary.BigEndian.Uint32(raw)) }

// WidenFloat4 returns the bits of the float64 that is equal to a float4.
func WidenFloat4(b uint32) int64 {
	f := math.Float32frombits(b)
	if f != f {
		return int64(uint64(b>>31)<<63 | 0x7ff<<52 | uint64(b&0x7fffff)<<29)
	}
	return int64(math.Float64bits(float64(f)))
}

// AppendFloat4Binary appends a real. NaNs keep their sign and payload, which a conversion
// on the CPU need not.
func AppendFloat4Binary(dst []byte, v int64) []byte {
	u := uint64(v)
	f := math.Float64frombits(u)
	b := math.Float32bits(float32(f))
	if f != f {
		b = uint32(u>>63)<<31 | 0x7f800000 | uint32(u>>29)&0x7fffff
		if b&0x7fffff == 0 {
			b |= 0x400000
		}
	}
	return binary.BigEndian.AppendUint32(dst, b)
}
