package sqltype

import "pgaccel/vector"

// Text is the text form of a value that is not null, of a kind that has one.
func Text(d vector.Datum) string {
	switch k := d.Type.Kind; {
	case k == vector.Numeric:
		return d.Decimal().String()
	case k == vector.Opaque:
		return string(OpaqueOfType(d.Type).AppendText(nil, d.Str))
	case k.HeldAsText():
		return d.Str
	case k.IsString():
		return string(Of(k).AppendString(nil, d.Str))
	default:
		return string(Of(k).AppendText(nil, d.I))
	}
}
