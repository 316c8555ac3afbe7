package wire

import (
	"fmt"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// arrayElement is how the text of an array's elements is written, from their binary form.
type arrayElement struct {
	of *sqltype.Type
	op valueOp
}

func elementOf(k vector.Kind) *arrayElement {
	e := &arrayElement{of: sqltype.Of(k)}
	op, known := textOps[k]
	switch {
	case known:
		e.op = op
	case k.IsString():
		e.op = opString
	default:
		e.op = opOther
	}
	return e
}

// appendArray writes the text of an array under the session's settings.
func (e *RowEncoder) appendArray(dst []byte, x *arrayElement, array string) []byte {
	return sqltype.AppendArray(dst, array, func(dst []byte, raw string) []byte {
		switch x.op {
		case opText:
			if x.of.Kind == vector.JSONB {
				raw = raw[1:] // behind the version
			}
			return append(dst, raw...)
		case opString:
			return x.of.AppendString(dst, raw)
		case opNumericText:
			return sqltype.ElementDecimal(raw).AppendText(dst)
		}
		v := x.of.Word([]byte(raw))
		switch x.op {
		case opBoolText:
			return sqltype.AppendBool(dst, v)
		case opIntText:
			return sqltype.AppendInt(dst, v)
		case opDateText:
			return e.dates.AppendDate(dst, v)
		case opTimeText:
			return sqltype.AppendTime(dst, v)
		case opTimestampText:
			return e.dates.AppendTimestamp(dst, v)
		case opTimestampTZText:
			return e.dates.AppendTimestampTZ(dst, v)
		case opFloat4Text:
			return sqltype.AppendFloat(dst, v, 32)
		case opFloat8Text:
			return sqltype.AppendFloat(dst, v, 64)
		case opOther:
			return x.of.AppendText(dst, v)
		}
		panic(fmt.Sprintf("BUG: value operation %d of an element", x.op))
	})
}
