package gpu

import (
	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// Conditions on the strings of dictionaries. The strings are kept as columns are; what a query asks of
// them is found before it scans.

// match finds or makes room for the strings of a condition, and for the bits that come of it.
func (j *job) match(d *program.Bits, to *device.Pointer) error {
	s := &d.Match.Strings
	m := &program.Matching{Of: d}
	key := itemKey{kind: itemStrings, id: s.ID}
	it := j.get(key)
	if it == nil {
		bytes, starts := program.StringsBytes(s)
		var err error
		if it, err = j.put(key, bytes, &j.own); err != nil {
			return err
		}
		j.write(it.addr(), s.Data)
		j.write(it.addr()+device.Pointer(starts), bytesOf(s.Starts))
	}
	j.pins = append(j.pins, it)
	m.Strings = it.addr()
	var err error
	if m.To, err = j.alloc(program.BitsBytes(d)); err != nil {
		return err
	}
	*to = m.To
	j.add(d.Match.Next, &m.Next)
	j.add(bytesOf(d.Match.Rest), &m.Rest)
	j.matches = append(j.matches, m)
	return nil
}

// matched appends the launches that find the bits.
func (j *job) matched(c []device.Command) []device.Command {
	for _, m := range j.matches {
		c = append(c, m.Launch(j.lanes))
		j.stats.BytesRead += int64(len(m.Of.Match.Strings.Data))
	}
	return c
}
