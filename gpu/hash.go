package gpu

import (
	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// hashTable is a lookup's that a device makes before it scans: of the table's 24 to 48 bytes a key it brings 8 or 12, and the processor
// does not go to places all over memory.
type hashTable struct {
	d                 *program.LookupData
	keys, entries, to device.Pointer
}

// buildHash sees to the table of a lookup.
func (j *job) buildHash(d *program.LookupData, to *device.Pointer) error {
	h := &hashTable{d: d}
	var err error
	if h.to, err = j.alloc(program.HashBytes(d)); err != nil {
		return err
	}
	j.add(func(to []byte) []byte { return program.AppendSet(to, d.Keys) }, &h.keys)
	if d.Entries != nil {
		j.add(func(to []byte) []byte { return program.AppendList(to, d.Entries) }, &h.entries)
	}
	*to = h.to
	j.hashes = append(j.hashes, h)
	return nil
}

// appendHashRegions appends what is to be cleared of the tables.
func (j *job) appendHashRegions(r []program.Region) []program.Region {
	for _, h := range j.hashes {
		r = append(r, program.HashRegion(h.d, h.to))
	}
	return r
}

// appendHashes appends the launches that make the tables.
func (j *job) appendHashes(c []device.Command, sms int) []device.Command {
	for _, h := range j.hashes {
		c = append(c, program.BuildHash(j.lanes, h.d, h.keys, h.entries, h.to, sms))
	}
	return c
}
