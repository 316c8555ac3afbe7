package wire

import (
	"fmt"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// DecodeParam reads a bound parameter of the type that Postgres reported for it;
// raw is nil for null. Text forms are taken only where their meaning depends on no
// setting: ISO dates, times with a zone for timestamptz. A timestamptz without a zone is
// returned as a timestamp: a time of the session's zone. Everything else is an
// error and no verdict: the caller forwards and lets Postgres decide.
//
// Text is taken as UTF-8. A session with another client_encoding must forward
// where raw is not ASCII.
//
// A type that somebody has made is taken for an enum: the value is compared with what is planned
// before anybody uses it.
//
// An interval that is none of vector.Interval is one of the opaque type.
//
// A numeric has its own number of decimals as Type.Scale, Num always, and I where
// the unscaled value fits 64 bits.
func DecodeParam(oid uint32, format int16, raw []byte) (vector.Datum, error) {
	kind := sqltype.KindOf(oid)
	if oid == sqltype.OIDUnknown {
		kind = vector.Text
	}
	if kind == vector.Invalid && oid >= sqltype.FirstUserOID {
		return decodeLabel(oid, format, raw)
	}
	if kind == vector.Invalid {
		return vector.Datum{}, fmt.Errorf("parameter of type %d", oid)
	}
	if raw == nil {
		return vector.Null(vector.TypeOf(kind)), nil
	}
	var d vector.Datum
	var ok bool
	switch t := sqltype.Of(kind); format {
	case FormatText:
		d, ok = t.Parse(string(raw))
		if m, moment := sqltype.ParseMoment(string(raw)); kind == vector.TimestampTZ && moment && !m.Zoned {
			d, ok = sqltype.Of(vector.Timestamp).Parse(string(raw))
		}
		if kind == vector.Interval && !ok {
			d, ok = sqltype.ParseOpaqueInterval(string(raw))
		}
	case FormatBinary:
		if d, ok = t.Receive(raw); kind == vector.Interval && !ok {
			d, ok = sqltype.OpaqueOf(oid).Receive(raw)
		}
	default:
		return d, fmt.Errorf("parameter format %d", format)
	}
	if !ok {
		return vector.Datum{}, fmt.Errorf("%s parameter in a form that Postgres must judge", kind)
	}
	return d, nil
}

// decodeLabel reads a value of an enum. Whether the type has the label is not known here.
func decodeLabel(oid uint32, format int16, raw []byte) (vector.Datum, error) {
	t := vector.EnumType(oid)
	if raw == nil {
		return vector.Null(t), nil
	}
	d, ok := sqltype.Of(vector.Enum).Parse(string(raw)) // both forms are the label
	if !ok || format != FormatText && format != FormatBinary {
		return d, fmt.Errorf("parameter of type %d in a form that Postgres must judge", oid)
	}
	d.Type = t
	return d, nil
}
