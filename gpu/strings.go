package gpu

import (
	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// Conditions on the strings of dictionaries, and their lengths. Strings are kept as columns are; what a query asks of them is
// found before it scans.

// stringsScan is a launch that goes over the strings of a dictionary.
type stringsScan struct {
	program.StringsAt
	bytes  int64
	launch func(module device.Module, at *program.StringsAt) device.Command
}

// scanStrings finds or makes room for strings, and for bytes that come of them.
func (j *job) scanStrings(s *program.Strings, steps, rest []byte, bytes int64) (*stringsScan, error) {
	w := &stringsScan{bytes: int64(len(s.Data))}
	var err error
	if w.Strings, err = j.strings(s); err != nil {
		return nil, err
	}
	if w.To, err = j.alloc(bytes); err != nil {
		return nil, err
	}
	j.add(func(to []byte) []byte { return program.AppendBytes(to, steps) }, &w.Steps)
	j.add(func(to []byte) []byte { return program.AppendBytes(to, rest) }, &w.Rest)
	j.stringScans = append(j.stringScans, w)
	return w, nil
}

// strings finds or makes room for the strings of a dictionary.
func (j *job) strings(s *program.Strings) (device.Pointer, error) {
	key := itemKey{kind: itemStrings, id: s.ID}
	it := j.get(key)
	if it == nil {
		size, starts := program.StringsBytes(s)
		var err error
		if it, err = j.put(key, size, &j.own); err != nil {
			return 0, err
		}
		j.write(it.addr(), s.Data)
		j.write(it.addr()+device.Pointer(starts), bytesOf(s.Starts))
	}
	j.pins = append(j.pins, it)
	return it.addr(), nil
}

// match sees to a set that a condition on strings makes.
func (j *job) match(d *program.Bits, to *device.Pointer) error {
	m := d.Match
	w, err := j.scanStrings(&m.Strings, m.Next, bytesOf(m.Rest), program.BitsBytes(d))
	if err == nil {
		*to = w.To
		w.launch = func(module device.Module, at *program.StringsAt) device.Command { return m.Launch(module, d, at) }
	}
	return err
}

// measure sees to a table of lengths of strings.
func (j *job) measure(d *program.TableData, to *device.Pointer) error {
	l := d.Lengths
	w, err := j.scanStrings(&l.Strings, l.CodeLengths, bytesOf(l.Rest), program.LengthsBytes(d))
	if err == nil {
		*to = w.To
		w.launch = func(module device.Module, at *program.StringsAt) device.Command { return l.Launch(module, d, at) }
	}
	return err
}

// appendStringScans appends the launches.
func (j *job) appendStringScans(c []device.Command) []device.Command {
	for _, w := range j.stringScans {
		c = append(c, w.launch(j.lanes, &w.StringsAt))
		j.stats.BytesRead += w.bytes
	}
	return c
}
