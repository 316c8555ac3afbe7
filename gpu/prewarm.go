package gpu

import "pgaccel/gpu/program"

// Prewarming brings columns before a query reads them, as pg_prewarm does with blocks: those that were there when
// the device's process ended.

// prewarm brings the columns of q in the segments in list, and the strings of dictionaries that it matches: all of them, or
// with ErrNoRoom none.
func (j *job) prewarm(q *program.Query, list []uint32, opt RunOptions) error {
	d := j.d
	j.kernels = []kernel{{q: q, formats: d.m.formats.of(q)}}
	if !j.fits() {
		return ErrNoRoom
	}
	var err error
	if j.lanes, err = d.transcode(j.ctx, anyWait); err != nil {
		return err
	}
	stream, leave, err := j.enter(opt, -1)
	if err != nil {
		return err
	}
	defer leave()
	d.gate.RLock()
	defer d.gate.RUnlock()
	if err = j.acquirePrewarm(q, list); err == nil {
		if err = j.bringOwn(stream); err == nil {
			err = j.arrived()
		}
	}
	if j.release(err); err == errNoRoom {
		err = ErrNoRoom
	}
	return err
}

// acquirePrewarm makes room for what is not there, where nothing has to give way. After an error the job is released.
func (j *job) acquirePrewarm(q *program.Query, list []uint32) error {
	d := j.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin(); err != nil {
		return err
	}
	need := d.budget / stockShare // of the room for queries' own
	for _, f := range j.kernels[0].formats {
		need += f.bytes / int64(max(len(q.Segments), 1)) * int64(len(list)) // what is this device's
	}
	for i := range q.Bits {
		size, _ := program.StringsBytes(&q.Bits[i].Match.Strings)
		need += size
	}
	if a := d.cache.arena; a.used+need > a.limit {
		return errNoRoom
	}
	d.cache.noEvict = true
	defer func() { d.cache.noEvict = false }()
	for i := range q.Bits {
		if _, err := j.strings(&q.Bits[i].Match.Strings); err != nil {
			return err
		}
	}
	if len(q.Columns) == 0 {
		return nil
	}
	j.parts = append(j.parts, &part{kernel: &j.kernels[0], j: j, list: list, resident: list})
	return j.columns()
}
