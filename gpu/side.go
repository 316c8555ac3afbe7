package gpu

import (
	"time"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// acquire finds or makes room for all that a query reads and writes, and lists what must be
// copied for it. After an error the job is released.
func (j *job) acquire(q *program.Query, list []uint32) error {
	d := j.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin(); err != nil {
		return err
	}
	for j.exclusive && d.cache.evict() {
		// What is kept lies scattered about: the memory is to be one.
	}
	if j.explicit {
		d.note(q, j.kernels[0].formats)
	}
	j.pinSet()
	found := j.findLayout(q, list) // pinned before anything is evicted
	if err := j.query(q, list); err != nil {
		return err
	}
	if found != nil && len(j.parts) == 1 {
		j.take(found, j.parts[0])
		return nil
	}
	if found != nil {
		j.giveBack(found)
	}
	return j.columns() // last: they take what room there is
}

// begin begins a query, or a lap of several. The error says that the device is gone.
func (d *dev) begin() error {
	if d.gone != nil {
		return d.gone
	}
	d.cache.tick++
	if a := d.cache.arena; a.limit < d.budget {
		// Memory was short: others use the device, too. They may stop soon, or never.
		switch now := time.Now(); {
		case d.short.IsZero():
			d.short = now
			if d.shortFor = min(2*d.shortFor, shortMost); now.Sub(d.lifted) > shortMost {
				d.shortFor = shortLeast
			}
		case now.Sub(d.short) > d.shortFor:
			a.limit, d.short, d.lifted = d.budget, time.Time{}, now
		}
	}
	return nil
}

// query sees to all that a query needs but its columns, which are to come after.
func (j *job) query(q *program.Query, list []uint32) error {
	if _, err := j.part(q, list, 0); err != nil {
		return err
	}
	if len(j.blob) > 0 {
		at, err := j.alloc(int64(len(j.blob)))
		if err != nil {
			return err
		}
		for _, f := range j.fixups {
			*f.to = at + device.Pointer(f.at)
		}
		j.direct = append(j.direct, direct{dst: at, data: j.blob})
	}
	return nil
}

// part adds a query, after the lookups that it builds. built is where a SinkBuild leaves its
// lookup.
func (j *job) part(q *program.Query, list []uint32, built device.Pointer) (*part, error) {
	p := &part{kernel: j.kernelOf(q), j: j, list: list, resident: list}
	if p.kernel == nil {
		return nil, errKernels
	}
	b := &p.b
	b.Built = built
	b.Bits = make([]device.Pointer, len(q.Bits))
	for i := range q.Bits {
		d := &q.Bits[i]
		if d.Match != nil {
			if err := j.match(d, &b.Bits[i]); err != nil {
				return nil, err
			}
			continue
		}
		if err := j.side(itemKey{kind: itemBits, id: d.ID}, func(to []byte) []byte { return program.AppendBits(to, d) }, &b.Bits[i]); err != nil {
			return nil, err
		}
	}
	b.Sets = make([]device.Pointer, len(q.Sets))
	for i := range q.Sets {
		if err := j.side(itemKey{}, func(to []byte) []byte { return program.AppendSet(to, q.Sets[i]) }, &b.Sets[i]); err != nil {
			return nil, err
		}
	}
	b.Tables = make([]device.Pointer, len(q.Tables))
	for i := range q.Tables {
		d, t := &q.Tables[i], q.Program.Tables[i]
		if d.Lengths != nil {
			if err := j.measure(d, &b.Tables[i]); err != nil {
				return nil, err
			}
			continue
		}
		key := itemKey{kind: itemTable, id: d.ID, n: int32(flags(t.Nulls, t.Faults, t.Wide))}
		if err := j.side(key, func(to []byte) []byte { return program.AppendTable(to, t, d) }, &b.Tables[i]); err != nil {
			return nil, err
		}
	}
	b.Lookups = make([]device.Pointer, len(q.Lookups))
	b.Outs = make([]device.Pointer, len(q.Lookups))
	for i := range q.Lookups {
		if err := j.lookup(&q.Program.Lookups[i], &q.Lookups[i], &b.Lookups[i], &b.Outs[i]); err != nil {
			return nil, err
		}
	}
	scratch, err := j.alloc(max(p.shape.g.ScratchBytes(q, len(list)), 16))
	if err != nil {
		return nil, err
	}
	b.Scratch = scratch
	if err := j.indexed(p); err != nil {
		return nil, err
	}
	j.parts = append(j.parts, p)
	return p, nil
}

// side sees to packed data: kept where it has an ID, else in the blob.
func (j *job) side(key itemKey, pack func(b []byte) []byte, to *device.Pointer) error {
	if key.id == 0 {
		j.add(pack, to)
		return nil
	}
	it := j.get(key)
	if it == nil {
		data := pack(nil)
		var err error
		if it, err = j.put(key, max(int64(len(data)), 16), &j.own); err != nil {
			return err
		}
		j.write(it.addr(), data)
	}
	j.pins = append(j.pins, it)
	*to = it.addr()
	return nil
}

// add has data packed, which it appends to the blob.
func (j *job) add(pack func(b []byte) []byte, to *device.Pointer) {
	j.fixups = append(j.fixups, fixup{to, len(j.blob)})
	j.blob = pack(j.blob)
}

func (j *job) write(dst device.Pointer, data []byte) {
	if len(data) > 0 {
		j.direct = append(j.direct, direct{dst: dst, data: data})
	}
}

// lookupKey names a lookup's content as one program has it laid out.
func lookupKey(l *program.Lookup, d *program.LookupData) itemKey {
	n := int32(l.Kind) + 1
	n = n*31 + 1 + int32(flags(l.Many))
	for _, o := range l.Outs {
		n = n*31 + 1 + int32(flags(o.Nullable, o.Wide))
	}
	return itemKey{kind: itemLookup, id: d.ID, n: n}
}

// lookup sees to a lookup: kept, made by the host, or to be built. In memory what it delivers
// comes after it; item.data says where.
func (j *job) lookup(l *program.Lookup, d *program.LookupData, to, outs *device.Pointer) error {
	key := lookupKey(l, d)
	if key.id != 0 {
		if it := j.d.cache.items[key]; it != nil && (d.Build == nil || it.load == nil || j.brings(it.load)) {
			j.get(key)
			j.pins = append(j.pins, it)
			*to, *outs = it.addr(), it.addr()+device.Pointer(it.data.(int64))
			return nil
		}
	}
	if d.Build == nil && (key.id == 0 || d.Keys != nil) { // tables that are made here are not kept
		if d.Keys == nil {
			j.add(func(b []byte) []byte { return program.AppendLookup(b, l, d) }, to)
		} else if err := j.buildHash(d, to); err != nil {
			return err
		}
		j.add(func(b []byte) []byte { return program.AppendOuts(b, l, d) }, outs)
		return nil
	}
	var delivers []byte // of what a build leaves as it is: nothing, not an address of nothing
	if d.Build == nil || len(l.Outs) > 0 {
		delivers = program.AppendOuts(nil, l, d)
	}
	if d.Build == nil {
		made := program.AppendLookup(nil, l, d)
		at := int64(len(made)+15) &^ 15
		it, err := j.put(key, max(at+int64(len(delivers)), 16), &j.own)
		if err != nil {
			return err
		}
		it.data = at
		j.pins = append(j.pins, it)
		*to, *outs = it.addr(), it.addr()+device.Pointer(at)
		j.write(*to, made)
		j.write(*outs, delivers)
		return nil
	}

	at := (program.BuiltBytes(d.Build) + 15) &^ 15
	bytes := max(at+int64(len(delivers)), 16)
	var it *item
	var addr device.Pointer
	var err error
	if key.id != 0 && j.d.cache.items[key] == nil {
		if it, err = j.put(key, bytes, &j.built); err != nil {
			return err
		}
		it.data = at
		j.pins = append(j.pins, it)
		addr = it.addr()
	} else if addr, err = j.alloc(bytes); err != nil {
		// Another query builds the same: to wait for it could be to wait for oneself.
		return err
	}
	*to, *outs = addr, addr+device.Pointer(at)
	j.write(*outs, delivers)
	k := j.kernelOf(d.Build)
	if k == nil {
		return errKernels
	}
	p, err := j.part(d.Build, j.d.m.formats.surviving(d.Build, k.formats), addr)
	if err == nil {
		p.item = it
	}
	return err
}
