package sqltype

import (
	"errors"
	"slices"
)

// ZoneServer asks a server about a time zone. Times are seconds since 2000-01-01.
type ZoneServer interface {
	// Offsets returns by how many seconds clocks are ahead of UTC at times in UTC.
	Offsets(utc []int64) ([]int64, error)
	// UTC returns when it is local times.
	UTC(local []int64) ([]int64, error)
}

const secondsPerDay = 86400

// AskZone returns a time zone as the server has it. Clocks do not change twice within a day and stay as they
// were before. What the server makes of local times around changes, and of times far away, must be what Zone
// does.
func AskZone(server ZoneServer) (*Zone, error) {
	days := make([]int64, 0, zoneEnd-zoneFirst+1)
	for day := zoneFirst; day <= zoneEnd; day++ {
		days = append(days, day*secondsPerDay)
	}
	offsets, err := server.Offsets(days)
	if err != nil {
		return nil, err
	}
	if len(offsets) != len(days) {
		return nil, errZone
	}
	changes, err := zoneChanges(server, days, offsets)
	if err != nil {
		return nil, err
	}
	z := newZone(offsets[0]*MicrosPerSecond, changes)
	if err := z.check(server); err != nil {
		return nil, err
	}
	return z, nil
}

var errZone = errors.New("the rules of the time zone are not known in full")

// zoneChanges finds the second at which the offset changes between two days, of all changes at once.
func zoneChanges(server ZoneServer, days, offsets []int64) ([]zoneChange, error) {
	type span struct{ lo, hi, before, after int64 } // the offset at lo is before, at hi it is not
	var spans []span
	for i := 1; i < len(days); i++ {
		if offsets[i] != offsets[i-1] {
			spans = append(spans, span{days[i-1], days[i], offsets[i-1], offsets[i]})
		}
	}
	for step := 0; step < 17 && len(spans) > 0; step++ { // halves a day to a second
		middles := make([]int64, len(spans))
		for i, s := range spans {
			middles[i] = (s.lo + s.hi) / 2
		}
		found, err := server.Offsets(middles)
		if err != nil {
			return nil, err
		}
		if len(found) != len(spans) {
			return nil, errZone
		}
		for i := range spans {
			switch s := &spans[i]; found[i] {
			case s.before:
				s.lo = middles[i]
			case s.after:
				s.hi = middles[i]
			default:
				return nil, errZone
			}
		}
	}
	changes := make([]zoneChange, len(spans))
	for i, s := range spans {
		if s.hi-s.lo != 1 {
			return nil, errZone
		}
		changes[i] = zoneChange{s.hi * MicrosPerSecond, s.after * MicrosPerSecond}
	}
	return changes, nil
}

// check compares a zone with the server's: what becomes of local times in the hours around each change, and
// of times throughout the range of timestamps.
func (z *Zone) check(server ZoneServer) error {
	var utc, local []int64
	for i := 1; i < len(z.since); i++ {
		at := z.since[i] / MicrosPerSecond
		for _, offset := range z.offset[i-1 : i+1] {
			for d := int64(-1); d <= 1; d++ {
				local = append(local, at+offset/MicrosPerSecond+d)
			}
		}
		for minutes := int64(-27 * 60); minutes <= 51*60; minutes += 45 {
			local = append(local, at+minutes*60)
		}
	}
	const step int64 = 36_524_219 * 61 // some 70 years and an odd time of the year
	for at := int64(TimestampFirst/MicrosPerSecond + 3*secondsPerDay); at < TimestampLast/MicrosPerSecond-3*secondsPerDay; at += step {
		utc, local = append(utc, at), append(local, at)
	}
	for day := zoneEnd; day < zoneEnd+450*365; day += 7 {
		utc = append(utc, day*secondsPerDay+day%secondsPerDay)
	}
	offsets, err := server.Offsets(utc)
	if err != nil {
		return err
	}
	times, err := server.UTC(local)
	if err != nil {
		return err
	}
	ours := func(times []int64, f func(micros int64) int64) []int64 {
		out := make([]int64, len(times))
		for i, t := range times {
			out[i] = f(t*MicrosPerSecond) / MicrosPerSecond
		}
		return out
	}
	if !slices.Equal(offsets, ours(utc, func(t int64) int64 { offset, _, _ := z.Offset(t); return offset })) ||
		!slices.Equal(times, ours(local, func(t int64) int64 { u, _ := z.UTC(t); return u })) {
		return errZone
	}
	return nil
}
