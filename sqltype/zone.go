package sqltype

import (
	"slices"
	"strings"
)

// UTCAbbreviation returns what Postgres prints for a time zone that is UTC at all times;
// ok is false for all others, which would need the server's own time zone data. The name
// is TimeZone's as the server shows it: in the zone's own spelling, however it was set
// (pg_tzset in src/timezone/pgtz.c).
func UTCAbbreviation(timeZone string) (abbreviation string, ok bool) {
	switch timeZone {
	case "UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu":
		return "UTC", true
	case "GMT", "Etc/GMT", "GMT0", "Etc/GMT0", "GMT+0", "Etc/GMT+0", "GMT-0", "Etc/GMT-0", "Greenwich", "Etc/Greenwich":
		return "GMT", true
	}
	return "", false
}

// IsUTC reports whether moments are written in UTC under a value of TimeZone.
func IsUTC(timeZone string) bool {
	_, ok := UTCAbbreviation(timeZone)
	return ok
}

// NamesUTC reports whether a name of a time zone is one of UTC, whose rules are never others.
func NamesUTC(name string) bool {
	switch strings.ToLower(name) {
	case "utc", "etc/utc", "gmt", "etc/gmt":
		return true
	}
	return false
}

// Zone is a time zone: how far its clocks are ahead of UTC, and since when. Its rules are the server's
// (package engine asks for them).
type Zone struct {
	since  []int64 // microseconds since 2000-01-01 in UTC, ascending; the first is before all time
	offset []int64 // microseconds east of Greenwich, from since[i] on
	// period has the position of the last time of since before each period of 2^periodBits microseconds from
	// zoneFirst on.
	period []uint16
	// Years from zoneEnd on are as the year of that kind before it: its first weekday, and whether it is a
	// leap year, decide when clocks change.
	like [14]int64
}

// Rules are known one by one from zoneFirst, before which nothing changes, to zoneEnd, in days since
// 2000-01-01. Behind it they repeat: the 28 years before have every kind of year.
var (
	zoneFirst = DayOf(1840, 1, 1)
	zoneEnd   = DayOf(zoneEndYear, 1, 1)
)

// periodBits make periods of 203 days: clocks mostly change twice a year.
const periodBits = 44

const zoneEndYear = 2129 // the 28 years before begin behind 2100, which is no leap year, and behind the tables of zones

// zoneChange is a moment, in microseconds since 2000-01-01 in UTC, from which on clocks are Offset
// microseconds ahead of UTC.
type zoneChange struct{ Since, Offset int64 }

// newZone returns a zone whose clocks are ahead by offset before the first change. The changes, which
// ascend, go on to the end of the year of zoneEnd.
func newZone(offset int64, changes []zoneChange) *Zone {
	z := &Zone{since: []int64{TimestampNegInfinity}, offset: []int64{offset}}
	for _, c := range changes {
		z.since, z.offset = append(z.since, c.Since), append(z.offset, c.Offset)
	}
	for at := zoneFirst * MicrosPerDay; at < zoneEnd*MicrosPerDay; at += 1 << periodBits {
		i, exact := slices.BinarySearch(z.since, at)
		if !exact {
			i--
		}
		z.period = append(z.period, uint16(i))
	}
	for y := int64(zoneEndYear - 28); y < zoneEndYear; y++ {
		z.like[kindOfYear(y)] = y
	}
	return z
}

// kindOfYear numbers the 14 calendars.
func kindOfYear(y int64) int {
	first, next := DayOf(y, 1, 1), DayOf(y+1, 1, 1)
	return int((first%7+7)%7)*2 + int(next-first-365)
}

// shift returns what leads from a time behind zoneEnd to one before, of a year of the same kind, and the
// last time of which that holds. It is 0 for times before.
func (z *Zone) shift(micros int64) (by, last int64) {
	if micros < zoneEnd*MicrosPerDay {
		return 0, zoneEnd*MicrosPerDay - 1
	}
	y := yearOf(micros)
	return (DayOf(z.like[kindOfYear(y)], 1, 1) - DayOf(y, 1, 1)) * MicrosPerDay, DayOf(y+1, 1, 1)*MicrosPerDay - 1
}

// at returns the position of a time before zoneEnd.
func (z *Zone) at(utc int64) int {
	p := (utc - zoneFirst*MicrosPerDay) >> periodBits
	if p < 0 {
		return 0
	}
	i := int(z.period[min(p, int64(len(z.period)-1))])
	for i+1 < len(z.since) && z.since[i+1] <= utc {
		i++
	}
	return i
}

// Offset returns by how many microseconds clocks are ahead at a finite time, and the first and the last
// time around it for which they are.
func (z *Zone) Offset(utc int64) (offset, first, last int64) {
	by, last := z.shift(utc)
	i := z.at(utc + by)
	if i+1 < len(z.since) && z.since[i+1] <= last+by {
		last = z.since[i+1] - by - 1
	}
	first = z.since[i]
	if by != 0 { // not beyond the year, which alone is of that kind
		first = max(first, DayOf(yearOf(utc+by), 1, 1)*MicrosPerDay) - by
	}
	return z.offset[i], first, last
}

func yearOf(micros int64) int64 {
	y, _, _ := Civil(FloorDiv(micros, MicrosPerDay))
	return y
}

// Local returns the time that clocks show; infinite times are what they are. ok is false beyond the range of
// timestamps, and close to its ends.
func (z *Zone) Local(utc int64) (local int64, ok bool) {
	if utc == TimestampInfinity || utc == TimestampNegInfinity {
		return utc, true
	}
	offset, _, _ := z.Offset(utc)
	return utc + offset, InZones(utc)
}

// UTC returns when clocks show a time. One that they leave out, when they are put forward, is read by the
// offset before; one that they show twice, when they are put back, by the offset after
// (DetermineTimeZoneOffsetInternal in datetime.c).
func (z *Zone) UTC(local int64) (utc int64, ok bool) {
	if local == TimestampInfinity || local == TimestampNegInfinity {
		return local, true
	}
	by, _ := z.shift(local)
	return local - z.offsetOf(local+by), InZones(local)
}

// offsetOf returns the offset by which a local time before zoneEnd, or of that year, is read.
func (z *Zone) offsetOf(local int64) int64 {
	second := FloorDiv(local, MicrosPerSecond) * MicrosPerSecond
	i := z.at(second - MicrosPerDay)
	before := z.offset[i]
	if i+1 == len(z.since) {
		return before
	}
	boundary, after := z.since[i+1], z.offset[i+1]
	switch early, late := second-before, second-after; {
	case early < boundary && late < boundary:
		return before
	case early > boundary && late >= boundary:
		return after
	case early > late: // put forward
		return before
	}
	return after
}

// InZones reports whether a finite time is so far from the ends of the range of timestamps that it has a
// local time and a UTC in every zone.
func InZones(micros int64) bool {
	return TimestampFirst+2*MicrosPerDay <= micros && micros <= TimestampLast-2*MicrosPerDay
}

// Offsets returns the least and the greatest offset of the times first to last, and a time of which all
// of them, and all times between them at which clocks change, are multiples.
func (z *Zone) Offsets(first, last int64) (least, greatest, every int64) {
	i := z.at(min(first, zoneEnd*MicrosPerDay-1))
	if first >= zoneEnd*MicrosPerDay || last >= zoneEnd*MicrosPerDay { // the years that repeat, too
		i, last = min(i, z.at(DayOf(zoneEndYear-29, 1, 1)*MicrosPerDay)), TimestampLast
	}
	least, greatest, every = z.offset[i], z.offset[i], z.offset[i]
	for i++; i < len(z.since) && z.since[i] <= last; i++ {
		least, greatest = min(least, z.offset[i]), max(greatest, z.offset[i])
		every = GCD(GCD(every, z.offset[i]), z.since[i])
	}
	return least, greatest, every
}

// GCD returns the greatest common divisor, which is not negative; of 0 and 0 it is 0.
func GCD(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}
