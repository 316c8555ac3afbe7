// Package vector holds the vocabulary in which pgaccel's packages speak of
// values: types, single values (Datum), exact numerics, and batches of result
// columns. It imports nothing of pgaccel.
//
// # Representation
//
// Every value that is no string is held in 64 bits, so that decoding, filters,
// lookups and grouping have one form each:
//
//	Bool                    0 or 1
//	Int2, Int4, Int8        the integer
//	OID                     the number, which has no sign
//	Money                   hundredths
//	Numeric(p,s), p <= 18   unscaled integer: value * 10^s (Type.Scale = s)
//	other Numerics          code in the column's dictionary, or a Decimal (Batch, Datum)
//	Date                    days since 2000-01-01, as in Postgres' binary format
//	Timestamp, TimestampTZ  microseconds since 2000-01-01 00:00 (UTC), likewise
//	Time                    microseconds since midnight
//	Interval                microseconds, of no months and as many days of 24 hours as they make
//	Float4, Float8          IEEE 754 bits of the float64 (float4 widened, exact)
//	Text, Varchar, BPChar   code in the column's dictionary (storage) or the
//	                        string itself (Batch, Datum)
//	Name                    likewise; it sorts by its bytes
//	UUID, Bytea             likewise; the string are the bytes
//	MACAddr8, LSN           likewise
//	Bit, VarBit             code in the column's dictionary: of a character 0 or 1 for each bit
//	Inet, CIDR, TimeTZ      likewise; the string is a key by which they sort (package sqltype)
//	Opaque                  likewise: the binary form; Type.Collation.OID is the type's,
//	                        and Type.Scale says which of an extension's it is
//	JSON, JSONB             likewise: the text that Postgres writes
//	arrays                  likewise: the bytes that array_send writes
//	Enum                    likewise: the label; Type.Collation.OID is the type's
//
// The others are described where package sqltype has their forms. All but floats, which
// have FloatKey, and JSON, JSONB, arrays and opaque ones, which have no order here, sort as Postgres sorts them.
//
// Infinite dates and timestamps are Postgres' own sentinels: the smallest and
// largest int32 (Date) and int64 (Timestamp, TimestampTZ).
package vector
