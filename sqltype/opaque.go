package sqltype

import (
	"encoding/binary"
	"strconv"
	"strings"

	"pgaccel/vector"
)

// OpaqueSettings are those that the text depends on, with the values under which it is known here. Of the other built-in
// types the text depends on the catalog (reg*, aclitem), and extensions may do as they like, but for those of opaqueExtensions: these are not held.
type OpaqueSettings struct {
	Floats    bool // extra_float_digits above 0
	Dates     bool // DateStyle ISO
	Zones     bool // TimeZone UTC
	Intervals bool // IntervalStyle postgres
	Bytes     bool // bytea_output hex
	Money     bool // lc_monetary as MoneyIn has it
	// Encoded says that the client's encoding changes the binary form, too, which has text within.
	Encoded bool
}

// WritingSettings are a session's.
type WritingSettings struct {
	WholeFloats                                               bool // extra_float_digits is above 0
	DateStyle, TimeZone, IntervalStyle, ByteaOutput, Monetary string
}

// Unmet returns the setting that has a value under which the text is another one than is written here, and the value; "" for none.
func (o OpaqueSettings) Unmet(s WritingSettings) (setting, value string) {
	switch {
	case o.Floats && !s.WholeFloats:
		return "extra_float_digits", ""
	case o.Dates && !strings.HasPrefix(s.DateStyle, "ISO, "):
		return "DateStyle", s.DateStyle
	case o.Zones && !IsUTC(s.TimeZone):
		return "TimeZone", s.TimeZone
	case o.Intervals && s.IntervalStyle != "postgres":
		return "IntervalStyle", s.IntervalStyle
	case o.Bytes && s.ByteaOutput != "hex":
		return "bytea_output", s.ByteaOutput
	case o.Money && !MoneyIn(s.Monetary):
		return "lc_monetary", s.Monetary
	}
	return "", ""
}

// Opaque is a type whose values are held as the binary form, which is written as text and nothing else: they have
// no order here, are equal to none, and no literal is read as one.
type Opaque struct {
	OID  uint32
	Name string // pg_type.typname

	// AppendText writes a value that valid takes; where it depends on settings, under the following ones.
	AppendText func(dst []byte, raw string) []byte
	// valid takes the whole of a binary form.
	valid func(r *reader)

	OpaqueSettings

	Samples []string
}

// Receive reads a binary form: ok is false for what is not of this form.
func (t *Opaque) Receive(raw []byte) (d vector.Datum, ok bool) {
	r := reader{rest: string(raw)}
	t.valid(&r)
	return vector.Datum{Type: vector.OpaqueType(t.OID), Str: string(raw)}, !r.short && r.rest == ""
}

// opaques are built in: their OIDs are the same in every server.
var opaques = map[uint32]*Opaque{}

// opaqueArrayOIDs are the types of arrays of opaque ones, by these.
var opaqueArrayOIDs = map[uint32]uint32{}

// opaqueLists are the opaque types; those of arrays of others come last.
var opaqueLists = [][]Opaque{opaqueTimes, opaqueRanges, opaqueShapes, opaqueSystem, opaqueTexts, opaqueSearch}

func init() {
	opaqueLists = append(opaqueLists, opaqueArrays())
	for _, t := range Opaques() {
		opaques[t.OID] = t
	}
}

// SQL is the type's name in statements, in which "char" is another type than char. That of an extension is in any schema.
func (t *Opaque) SQL() string {
	if t.OID == 0 {
		return t.Name
	}
	return `pg_catalog."` + t.Name + `"`
}

// OpaqueOf returns the opaque type with an OID; nil where it is none.
func OpaqueOf(oid uint32) *Opaque { return opaques[oid] }

// Opaques returns all of them.
func Opaques() (list []*Opaque) {
	for _, part := range opaqueLists {
		for i := range part {
			list = append(list, &part[i])
		}
	}
	return list
}

// reader takes binary forms apart. What is read behind the end is 0, and said by short.
type reader struct {
	rest  string
	short bool
}

func (r *reader) take(n int) string {
	if n < 0 || n > len(r.rest) {
		r.short, r.rest = true, ""
		return strings.Repeat("\x00", 8)
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *reader) byte() byte   { return r.take(1)[0] }
func (r *reader) int16() int16 { return int16(binary.BigEndian.Uint16([]byte(r.take(2)))) }
func (r *reader) int32() int32 { return int32(binary.BigEndian.Uint32([]byte(r.take(4)))) }
func (r *reader) int64() int64 { return int64(binary.BigEndian.Uint64([]byte(r.take(8)))) }

// opaqueTimes: interval, as columns have it that hold others than those of vector.Interval.
var opaqueTimes = []Opaque{
	{OID: 1186, Name: "interval", AppendText: appendAnyInterval, valid: validInterval, OpaqueSettings: OpaqueSettings{Intervals: true}, Samples: []string{"0", "1 day", "24:00:00", "1 mon", "30 days", "-1 mon +1 day", "1 mon -1 day 00:00:01", "-1 year -2 mons +3 days -04:05:06.7",
		"1 year -00:00:00.000001", "-1 day +25:00:00", "100:00:00", "-00:00:01", "1 year 1 mon 1 day 01:01:01.5", "178956970 years 7 mons", "-178956970 years -8 mons", "2562047788:00:54.775807", "-2562047788:00:54.775807", "2147483647 days"}},
}

// validInterval leaves the ends of all three parts, which are infinity in 17 and later, and not before.
func validInterval(r *reader) {
	micros, days, months := r.int64(), r.int32(), r.int32()
	if micros == 1<<63-1 && days == 1<<31-1 && months == 1<<31-1 || micros == -1<<63 && days == -1<<31 && months == -1<<31 {
		r.short = true
	}
}

// appendAnyInterval is EncodeInterval of IntervalStyle postgres (src/backend/utils/adt/datetime.c): a part behind a
// negative one has a plus where it is not negative.
func appendAnyInterval(dst []byte, raw string) []byte {
	r := reader{rest: raw}
	micros, days, months := r.int64(), r.int32(), r.int32()
	start, negative := len(dst), false
	for _, part := range []struct {
		n    int32
		unit string
	}{{months / 12, "year"}, {months % 12, "mon"}, {days, "day"}} {
		if part.n == 0 {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		if negative && part.n > 0 {
			dst = append(dst, '+')
		}
		dst = append(append(strconv.AppendInt(dst, int64(part.n), 10), ' '), part.unit...)
		if part.n != 1 {
			dst = append(dst, 's')
		}
		negative = part.n < 0
	}
	if micros == 0 && len(dst) > start {
		return dst
	}
	if len(dst) > start {
		dst = append(dst, ' ')
	}
	size := uint64(micros)
	switch {
	case micros < 0:
		dst, size = append(dst, '-'), -size
	case negative:
		dst = append(dst, '+')
	}
	hours := size / (3600 * MicrosPerSecond)
	if hours < 10 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendUint(dst, hours, 10)
	return append(dst, AppendTime(nil, int64(size%(3600*MicrosPerSecond)))[2:]...)
}

// appendTimeTZ is timetz_out: the zone is held as seconds west of UTC.
func appendTimeTZ(dst []byte, raw string) []byte {
	r := reader{rest: raw}
	dst = AppendTime(dst, r.int64())
	zone, sign := int(r.int32()), byte('+')
	if zone > 0 {
		sign = '-'
	} else {
		zone = -zone
	}
	dst = appendTwoDigits(append(dst, sign), zone/3600)
	if zone%3600 == 0 {
		return dst
	}
	dst = appendTwoDigits(append(dst, ':'), zone/60%60)
	if zone%60 == 0 {
		return dst
	}
	return appendTwoDigits(append(dst, ':'), zone%60)
}
