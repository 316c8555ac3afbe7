package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Format codes of Bind and RowDescription.
const (
	FormatText   int16 = 0
	FormatBinary int16 = 1
)

// TextSettings are the session's settings that decide how Postgres prints values,
// in the spelling of current_setting.
type TextSettings struct {
	DateStyle        string // such as "ISO, MDY"
	IntervalStyle    string // such as "postgres"
	TimeZone         string // such as "UTC"
	ExtraFloatDigits int
	ByteaOutput      string // such as "hex"
	Monetary         string // lc_monetary, such as "C"
	ClientEncoding   string // such as "UTF8"
	// Zones has the rules of time zones; nil: only UTC is known.
	Zones Zones
}

// Zones has the rules of time zones that a server has, nil of those that are not known. Its type must be comparable.
type Zones interface {
	Zone(timeZone string) *sqltype.Zone
}

// valueOp is what one column's fields need; chosen once per result.
type valueOp uint8

const (
	opText valueOp = iota // the string as it is, both formats
	opBoolText
	opIntText
	opNumericText
	opDateText
	opTimeText
	opTimestampText
	opTimestampTZText
	opIntervalText
	opFloat4Text
	opFloat8Text
	opBoolBinary
	opInt2Binary
	opInt4Binary       // dates, too
	opInt8Binary       // times, timestamps and doubles, too
	opIntNumericBinary // an integer that Postgres describes as numeric
	opNumericBinary
	opFloat4Binary
	opJSONBBinary
	opOther  // of one type alone: its function
	opString // likewise, of a string
	opStringBinary
	opByteaText
	opByteaEscape
	opOpaque // the text of an opaque value
	opBytes  // the string as it is, which is not text
	opArray  // the text of an array, whose elements have an operation of their own
)

// textOps are the operations of kinds whose text has one of its own.
var textOps = map[vector.Kind]valueOp{
	vector.Text: opText, vector.Varchar: opText, vector.BPChar: opText, vector.Bool: opBoolText, vector.Int2: opIntText, vector.Int4: opIntText, vector.Int8: opIntText,
	vector.Numeric: opNumericText, vector.Date: opDateText, vector.Time: opTimeText, vector.Timestamp: opTimestampText, vector.TimestampTZ: opTimestampTZText, vector.Interval: opIntervalText,
	vector.Float4: opFloat4Text, vector.Float8: opFloat8Text, vector.JSONB: opText, vector.JSON: opText, vector.Enum: opText, vector.Name: opText,
	vector.Bytea: opByteaText, vector.Opaque: opOpaque,
}

var binaryOps = map[sqltype.Binary]valueOp{
	sqltype.BinaryText: opText, sqltype.BinaryBytes: opBytes, sqltype.BinaryArray: opBytes, sqltype.BinaryBool: opBoolBinary, sqltype.BinaryInt2: opInt2Binary, sqltype.BinaryInt4: opInt4Binary, sqltype.BinaryInt8: opInt8Binary,
	sqltype.BinaryNumeric: opNumericBinary, sqltype.BinaryFloat4: opFloat4Binary, sqltype.BinaryJSONB: opJSONBBinary, sqltype.BinaryKey: opStringBinary,
}

type rowColumn struct {
	op       valueOp
	other    func(dst []byte, v int64) []byte  // opOther
	str      func(dst []byte, s string) []byte // opString
	element  *arrayElement                     // opArray
	ints     []int64
	decimals []vector.Decimal
	strs     []string
	nulls    []uint64
}

// RowEncoder writes the rows of one result as DataRow messages, byte for byte as
// Postgres would. It refers to the columns it was made of and holds no state
// between rows: several goroutines may use one at a time.
type RowEncoder struct {
	columns []rowColumn
	dates   sqltype.DateFormat
}

// NewRowEncoder prepares the encoding of columns. typeOIDs are the result types as
// Postgres described them: they decide the form, so that integers held wider or
// narrower than described come out as described. formats are Bind's result format
// codes: none (all text), one for all, or one for each column. The error says what
// cannot be written exactly under these settings; the caller forwards.
func NewRowEncoder(columns []vector.Column, typeOIDs []uint32, formats []int16, s TextSettings) (*RowEncoder, error) {
	n := len(columns)
	if len(typeOIDs) != n {
		return nil, fmt.Errorf("%d columns, but %d are described", n, len(typeOIDs))
	}
	if len(formats) > 1 && len(formats) != n {
		return nil, fmt.Errorf("%d result formats for %d columns", len(formats), n)
	}
	e := &RowEncoder{columns: make([]rowColumn, n)}
	for i := range columns {
		format := FormatText
		if len(formats) == 1 {
			format = formats[0]
		} else if len(formats) > 1 {
			format = formats[i]
		}
		c := &columns[i]
		op, other, err := chooseOp(c, typeOIDs[i], format)
		var element *arrayElement
		if op == opArray {
			element = elementOf(c.Type.Kind.Element())
		}
		if op == opByteaText && s.ByteaOutput == "escape" {
			op = opByteaEscape
		}
		if err == nil {
			err = e.checkSettings(op, element, c, s)
		}
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i+1, err)
		}
		e.columns[i] = rowColumn{op, other, stringWriter(op, c, typeOIDs[i]), element, c.Ints, c.Decimals, c.Strs, c.Nulls}
	}
	return e, nil
}

// stringWriter is the function of an operation that writes strings by one of the type's.
func stringWriter(op valueOp, c *vector.Column, oid uint32) func(dst []byte, s string) []byte {
	t := sqltype.Of(describedKind(c, oid))
	switch op {
	case opStringBinary:
		return t.AppendStringBinary
	case opByteaEscape:
		return sqltype.AppendByteaEscape
	case opOpaque:
		return sqltype.OpaqueOfType(c.Type).AppendText
	}
	return t.AppendString
}

// chooseOp returns how a column of the given described type is written: for opOther, by
// what function.
func chooseOp(c *vector.Column, oid uint32, format int16) (op valueOp, other func([]byte, int64) []byte, err error) {
	if format != FormatText && format != FormatBinary {
		return 0, nil, fmt.Errorf("result format %d", format)
	}
	held, kind := c.Type.Kind, describedKind(c, oid)
	switch {
	case kind == vector.Invalid, !writable(held, kind):
		return 0, nil, fmt.Errorf("%s cannot be written as type %d", held, oid)
	case kind.IsInt() && !intsFit(c, 8*sqltype.Of(kind).Size):
		return 0, nil, fmt.Errorf("a value does not fit %s", kind)
	case kind == vector.Numeric && held.IsInt():
		if format == FormatText {
			return opIntText, nil, nil
		}
		return opIntNumericBinary, nil, nil
	}
	t := sqltype.Of(kind)
	op, known := textOps[kind]
	other = t.AppendText
	if format == FormatBinary {
		op, known = binaryOps[t.Binary]
		other = t.AppendBinary
	}
	switch {
	case known:
	case kind.IsArray():
		op = opArray
	case kind.IsString():
		op = opString
	default:
		op = opOther
	}
	return op, other, nil
}

// describedKind is the kind of a described type; only the type of c itself is taken for an enum, or one that is opaque.
func describedKind(c *vector.Column, oid uint32) vector.Kind {
	if c.Type.Kind.IsMany() && sqltype.OIDOf(c.Type) == oid {
		return c.Type.Kind
	}
	return sqltype.HeldKind(oid)
}

// writable reports whether values held as one kind can be written as another.
func writable(held, as vector.Kind) bool {
	switch {
	case as.IsText():
		return held.IsText()
	case as.IsInt():
		return held.IsInt()
	case as == vector.Numeric:
		return held == as || held.IsInt()
	case as == vector.Float8:
		return held.IsFloat()
	}
	return held == as
}

// intsFit reports whether every value fits a signed integer of width bits.
func intsFit(c *vector.Column, width int) bool {
	if 8*sqltype.Of(c.Type.Kind).Size <= width {
		return true
	}
	shift := uint(64 - width)
	for i, v := range c.Ints {
		if v<<shift>>shift != v && !c.IsNull(i) {
			return false
		}
	}
	return true
}

// checkSettings refuses what the settings make print otherwise than is known here.
func (e *RowEncoder) checkSettings(op valueOp, element *arrayElement, c *vector.Column, s TextSettings) error {
	if k := c.Type.Kind; k.IsArray() {
		if k = k.Element(); (k.IsText() || k == vector.JSONB) && s.ClientEncoding != "UTF8" {
			return fmt.Errorf("client encoding %s of arrays of %s", s.ClientEncoding, k)
		}
		if element != nil {
			op = element.op
		}
	}
	if c.Type.Kind == vector.Opaque && sqltype.OpaqueOfType(c.Type).Encoded && s.ClientEncoding != "UTF8" {
		return fmt.Errorf("client encoding %s of values with text within", s.ClientEncoding)
	}
	if c.Type.Kind == vector.Money && op == opOther && !sqltype.MoneyIn(s.Monetary) {
		return fmt.Errorf("lc_monetary %q", s.Monetary)
	}
	switch op {
	case opText, opJSONBBinary:
		// All client encodings agree on ASCII; the strings here are UTF-8.
		if s.ClientEncoding != "UTF8" {
			for _, str := range c.Strs {
				if !IsASCII(str) {
					return fmt.Errorf("client encoding %s", s.ClientEncoding)
				}
			}
		}
	case opFloat4Text, opFloat8Text:
		if !s.wholeFloats() {
			return fmt.Errorf("extra_float_digits %d", s.ExtraFloatDigits)
		}
	case opByteaText:
		if s.ByteaOutput != "hex" {
			return fmt.Errorf("bytea_output %q", s.ByteaOutput)
		}
	case opOpaque:
		return checkOpaque(sqltype.OpaqueOfType(c.Type), s)
	case opIntervalText:
		if s.IntervalStyle != "postgres" {
			return fmt.Errorf("IntervalStyle %q", s.IntervalStyle)
		}
	case opDateText, opTimestampText, opTimestampTZText:
		if !e.dates.SetStyle(s.DateStyle) {
			return fmt.Errorf("DateStyle %q", s.DateStyle)
		}
		if op != opTimestampTZText {
			return nil
		}
		var utc bool
		if e.dates.Zone, utc = sqltype.UTCAbbreviation(s.TimeZone); utc {
			return nil
		}
		if s.Zones != nil && e.dates.IsISO() { // other styles print the zone's abbreviation
			e.dates.Rules = s.Zones.Zone(s.TimeZone)
		}
		if e.dates.Rules == nil {
			return fmt.Errorf("TimeZone %q", s.TimeZone)
		}
	}
	return nil
}

// checkOpaque is checkSettings of the text of opaque values.
func checkOpaque(t *sqltype.Opaque, s TextSettings) error {
	setting, value := t.Unmet(sqltype.WritingSettings{WholeFloats: s.wholeFloats(), DateStyle: s.DateStyle, TimeZone: s.TimeZone,
		IntervalStyle: s.IntervalStyle, ByteaOutput: s.ByteaOutput, Monetary: s.Monetary})
	switch {
	case setting == "":
		return nil
	case value == "":
		return errors.New(setting)
	}
	return fmt.Errorf("%s %q", setting, value)
}

// wholeFloats reports whether floats are written in the shortest exact form, as 1, 2 and 3 all say; 0 and less round.
func (s *TextSettings) wholeFloats() bool { return s.ExtraFloatDigits >= 1 && s.ExtraFloatDigits <= 3 }

// IsASCII reports whether s means the same in every client encoding.
func IsASCII[T string | []byte](s T) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// Append appends one row as a whole DataRow message and returns the extended
// slice. It allocates nothing but the growth of dst.
func (e *RowEncoder) Append(dst []byte, row int) []byte {
	start := len(dst)
	dst = append(dst, 'D', 0, 0, 0, 0, byte(len(e.columns)>>8), byte(len(e.columns)))
	word, bit := row>>6, uint(row)&63
	for i := range e.columns {
		c := &e.columns[i]
		if c.nulls != nil && c.nulls[word]>>bit&1 != 0 {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		switch c.op {
		case opText, opBytes:
			dst = append(dst, c.strs[row]...)
		case opString, opStringBinary, opByteaText, opByteaEscape, opOpaque:
			dst = c.str(dst, c.strs[row])
		case opBoolText:
			dst = sqltype.AppendBool(dst, c.ints[row])
		case opIntText:
			dst = sqltype.AppendInt(dst, c.ints[row])
		case opNumericText:
			dst = c.decimals[row].AppendText(dst)
		case opDateText:
			dst = e.dates.AppendDate(dst, c.ints[row])
		case opTimeText:
			dst = sqltype.AppendTime(dst, c.ints[row])
		case opTimestampText:
			dst = e.dates.AppendTimestamp(dst, c.ints[row])
		case opIntervalText:
			dst = sqltype.AppendInterval(dst, c.ints[row])
		case opTimestampTZText:
			dst = e.dates.AppendTimestampTZ(dst, c.ints[row])
		case opFloat4Text:
			dst = sqltype.AppendFloat(dst, c.ints[row], 32)
		case opFloat8Text:
			dst = sqltype.AppendFloat(dst, c.ints[row], 64)
		case opBoolBinary:
			dst = sqltype.AppendBoolBinary(dst, c.ints[row])
		case opInt2Binary:
			dst = sqltype.AppendInt2Binary(dst, c.ints[row])
		case opInt4Binary:
			dst = sqltype.AppendInt4Binary(dst, c.ints[row])
		case opInt8Binary:
			dst = sqltype.AppendInt8Binary(dst, c.ints[row])
		case opIntNumericBinary:
			dst = sqltype.AppendNumericBinary(dst, vector.Decimal{Unscaled: vector.Int128Of(c.ints[row])})
		case opNumericBinary:
			dst = sqltype.AppendNumericBinary(dst, c.decimals[row])
		case opFloat4Binary:
			dst = sqltype.AppendFloat4Binary(dst, c.ints[row])
		case opJSONBBinary:
			dst = sqltype.AppendJSONBBinary(dst, c.strs[row])
		case opArray:
			dst = e.appendArray(dst, c.element, c.strs[row])
		case opOther:
			dst = c.other(dst, c.ints[row])
		default:
			panic(fmt.Sprintf("BUG: value operation %d", c.op))
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst
}
