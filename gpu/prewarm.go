package gpu

import (
	"context"
	"sync"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// Prewarming brings columns before a query reads them, as pg_prewarm does with blocks: those that were there when
// the device's process ended.

// prewarm brings the columns of q, and the strings of dictionaries that it matches, to the devices.
func (m *Manager) prewarm(ctx context.Context, s *set, q *program.Query, opt RunOptions) (Stats, error) {
	opt.began = time.Now()
	list := m.formats.surviving(q, m.formats.of(q))
	lists := spread(q, list, len(s.devs))
	all := make([]Stats, len(s.devs))
	errs := make([]error, len(s.devs))
	var wg sync.WaitGroup
	for i, d := range s.devs {
		wg.Go(func() {
			if all[i], errs[i] = d.prewarm(ctx, q, lists[i], opt); errs[i] != nil && s.alive.Err() != nil && ctx.Err() == nil {
				errs[i] = &device.Fault{Kind: device.FaultLost, Text: errs[i].Error()} // detached meanwhile
			}
		})
	}
	wg.Wait()
	var stats Stats
	for i := range all {
		stats.BytesCopied += all[i].BytesCopied
		if errs[i] != nil {
			return stats, errs[i]
		}
	}
	return stats, nil
}

// prewarm brings the segments in list: all of them, or with ErrNoRoom none.
func (d *dev) prewarm(ctx context.Context, q *program.Query, list []uint32, opt RunOptions) (Stats, error) {
	j := &job{d: d, ctx: ctx, stats: Stats{Device: d.name}, since: opt.began}
	j.kernels = []kernel{{q: q, formats: d.m.formats.of(q)}}
	if !j.fits() {
		return j.stats, ErrNoRoom
	}
	var err error
	if j.lanes, err = d.transcode(ctx, anyWait); err != nil {
		return j.stats, err
	}
	stream, leave, err := j.enter(opt, -1)
	if err != nil {
		return j.stats, err
	}
	defer leave()
	d.gate.RLock()
	defer d.gate.RUnlock()
	if err = j.acquirePrewarm(q, list); err == nil {
		b := batch{j: j, stream: stream, commands: j.copies(nil, j.direct)}
		if err = b.bring(j.chunks); err == nil {
			j.settle(&j.own, nil)
			err = j.arrived()
		}
	}
	j.release(err)
	d.m.mu.Lock()
	d.m.counters[d.position].bytesCopied += uint64(j.stats.BytesCopied)
	d.m.mu.Unlock()
	if err == errNoRoom {
		err = ErrNoRoom
	}
	return j.stats, err
}

// acquirePrewarm makes room for what is not there, where nothing has to give way. After an error the job is released.
func (j *job) acquirePrewarm(q *program.Query, list []uint32) error {
	d := j.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone != nil {
		return d.gone
	}
	d.tick()
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
