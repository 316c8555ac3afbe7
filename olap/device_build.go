package olap

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"pgaccel/colstore"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Lookups for a device. What a lookup holds follows from the versions of the tables that
// it joins and from what is asked of them, which is its description. By it
//
//   - a device keeps the lookup between queries (program.LookupData.ID),
//   - a large table is not even read by the processor: the device makes the lookup from
//     its columns (program.SinkBuild). An entry is then the number that the outputs make
//     as digits, and the outputs are written out for all such numbers;
//   - what comes again and again is made by the processor after all, and kept if it is not large: its entries number
//     the outputs that there are, so that groups are as few as can be.
//
// Small tables are read by the processor at once: the ranges of their keys exclude
// segments of the table that is scanned.

// knownLookup is what is remembered of lookups with one description.
type knownLookup struct {
	description [32]byte

	mu    sync.Mutex
	asked int
	made  *lookup // by the processor; nil where it is not kept
	large bool    // it was too large to be kept
	plan  *lookup // what buildOnDevice made of it: numbered outputs, and the query; nil where it did not
}

const (
	// keptLookups are remembered, of at most keptBytes each.
	keptLookups = 64
	keptBytes   = 4 << 20
	// deviceEntries bounds the entries of a lookup that a device makes: of small tables, and of those that have as many rows.
	deviceEntries, deviceEntriesMost = 1 << 16, 1 << 22
	// deviceKeys bounds its keys.
	deviceKeys = 1 << 28
)

// keepAfter is how often a lookup is made by a device, or found there, before the processor
// makes it: that takes milliseconds, and saves some microseconds of each query. Tests make it
// small.
var keepAfter = 32

// deviceBuild is the number of rows from which on a device makes the lookup of a table.
// Tests make it small.
var deviceBuild int64 = 1 << 13

var knownLookups = must(lru.New[[32]byte, *knownLookup](keptLookups))

// foresee looks at a probe before the joined table is read: what is known of its lookup,
// and whether an earlier query has made it.
func (p *pipeline) foresee(b *probe, outer []plan.Expr) error {
	if b.join.Kind == plan.Left && len(b.wanted) == 0 {
		return nil
	}
	for _, e := range b.join.Outer {
		if plan.Tables(e) != 1<<uint(p.table) {
			return nil // its bounds depend on other lookups
		}
	}
	if p.compileOuter(b, outer) != nil {
		b.outer, b.key = nil, nil // the joined table's rows say more
		return nil
	}
	d, ok := p.describeLookup(b)
	if !ok || slices.ContainsFunc(b.outer, func(o *node) bool { return o.dict.grows() }) {
		return nil // codes of a pool are this execution's
	}
	k, ok := knownLookups.Get(d)
	if !ok {
		k = &knownLookup{description: d}
		knownLookups.Add(d, k)
	}
	b.known = k
	k.mu.Lock()
	k.asked++
	made, planned, again := k.made, k.plan, k.again()
	k.mu.Unlock()
	if made == nil && planned != nil && !again && (len(b.wanted) == 0 || p.x.q.Grouped) {
		b.lut, b.kept = planned.clone(), true
		return nil
	}
	if made != nil {
		b.lut, b.kept = made.clone(), true
	}
	return nil
}

// again reports whether it is time for the processor to make a lookup. k.mu is held.
func (k *knownLookup) again() bool { return k.asked > keepAfter && !k.large }

// clone returns a lookup with the same content. What is computed for dictionaries when it
// is needed is each one's own.
func (l *lookup) clone() *lookup {
	c := *l
	c.outs = make([]lookupOut, len(l.outs))
	for i, o := range l.outs {
		if o.dict != nil {
			d := *o.dict
			d.index = nil
			o.dict = &d
		}
		c.outs[i] = o
	}
	return &c
}

// keep remembers a lookup that was just made.
func (b *probe) keep() {
	if b.known == nil {
		return
	}
	if b.lut.bytes > keptBytes || b.child.c.pool != nil { // whose strings may be many more bytes
		b.known.mu.Lock()
		b.known.large = true
		b.known.mu.Unlock()
		return
	}
	c := b.lut.clone()
	b.known.mu.Lock()
	b.known.made = c
	b.known.mu.Unlock()
}

// describer writes what a lookup follows from.
type describer struct {
	x  *execution
	b  []byte
	ok bool
}

func (d *describer) number(n int64) { d.b = binary.AppendVarint(d.b, n) }

func (d *describer) text(s string) {
	d.number(int64(len(s)))
	d.b = append(d.b, s...)
}

func (d *describer) typ(t vector.Type) {
	d.number(int64(t.Kind))
	d.number(int64(t.Scale))
	d.number(int64(t.Typmod))
	d.number(int64(t.Collation.OID))
	d.number(b2i(t.Collation.C)*2 + b2i(t.Collation.Deterministic))
}

// exprs writes trees: each node before what it is of.
func (d *describer) exprs(list []plan.Expr) {
	d.number(int64(len(list)))
	for _, e := range list {
		plan.Walk(e, func(e plan.Expr) bool {
			d.typ(e.Type())
			switch e := e.(type) {
			case plan.Const:
				d.number(-1)
				d.number(b2i(e.Null))
				d.number(e.I)
				d.text(e.Str)
				d.number(e.Num.Unscaled.Hi)
				d.number(int64(e.Num.Unscaled.Lo))
				d.number(int64(e.Num.Scale))
			case plan.Column:
				d.number(-2)
				d.number(int64(e.Table))
				d.number(int64(e.Column))
			case *plan.Call:
				d.number(int64(len(e.Args)))
				d.number(int64(e.Op))
				if e.Func != nil {
					d.ok = d.ok && e.Func.InZone == nil && e.Func.Cases == nil // whose OID says too little
					d.number(int64(e.Func.OID))
				}
				d.number(b2i(e.Insensitive))
			default:
				d.ok = false
			}
			return true
		})
	}
}

// table writes a table, its conditions and, one after the other, the tables joined to it.
func (d *describer) table(t int) {
	id := d.x.tabs[t].ID
	d.ok = d.ok && id != 0 && d.x.q.Tables[t].Relation == nil // which is this execution's
	d.number(int64(t))
	d.number(int64(id))
	d.exprs(d.x.conds[t])
	for _, j := range d.x.q.Joins {
		if d.x.parent[j.Table] == t {
			d.join(j)
		}
	}
	d.number(-1)
}

func (d *describer) join(j plan.StarJoin) {
	d.number(int64(d.x.kinds[j.Table]))
	d.number(b2i(j.Many))
	d.number(b2i(j.Exists))
	d.exprs(j.Outer)
	for _, k := range j.Key {
		d.number(int64(k))
	}
	d.table(j.Table)
}

// describeLookup returns the description of a probe's lookup; ok is false where there is
// none.
func (p *pipeline) describeLookup(b *probe) (key [32]byte, ok bool) {
	// What a relation has is this execution's.
	d := &describer{x: p.x, ok: p.tab.ID != 0 && p.x.q.Tables[p.table].Relation == nil, b: make([]byte, 0, 512)}
	d.number(int64(p.tab.ID)) // the bounds and the strings of the keys that are looked up
	d.join(b.join)
	d.number(b2i(b.dedupe))
	d.exprs(b.wanted)
	return sha256.Sum256(d.b), d.ok
}

// lookupID returns the number of a lookup's content, with these outputs, by its
// description; 0 for one that has none.
func (l *lowering) lookupID(b *probe, outs []outKey) uint64 {
	if b.known == nil {
		return 0
	}
	d := &describer{b: append(make([]byte, 0, 128), b.known.description[:]...)}
	d.number(b2i(b.builds()))
	for _, o := range outs {
		if o.of == nil {
			d.number(int64(o.out))
			continue
		}
		d.number(-int64(len(o.of.outs)))
		for _, k := range o.of.outs {
			d.number(int64(k))
		}
	}
	key := sha256.Sum256(d.b)
	id, ok := deviceLookups.Get(key)
	if !ok {
		id = colstore.NewID()
		deviceLookups.Add(key, id)
	}
	return id
}

// buildOnDevice sees to it that the device makes the lookup of a probe; false where the
// processor has to, or had better: it reads rows itself. exprs are the keys and then the outputs, over the
// joined table.
func (p *pipeline) buildOnDevice(b *probe, exprs []plan.Expr) bool {
	t := b.join.Table
	if b.known == nil || b.many || len(b.outer) != 1 || len(b.wanted) > 0 && !p.x.q.Grouped || p.x.tabs[t].Rows < deviceBuild {
		return false
	}
	b.known.mu.Lock()
	again := b.known.again()
	b.known.mu.Unlock()
	if again {
		return false
	}
	child, lowered, err := p.x.prepareFor(t, exprs, nil, true)
	if err != nil || child.never || child.many >= 0 {
		return false // the processor tells what is wrong
	}
	nodes, err := child.c.list(lowered)
	if err != nil {
		return false
	}
	key, outs := nodes[0], nodes[1:]
	o := b.outer[0]
	if to, err := keyMap(o, key); err != nil || to != nil || o.kind == nodeFloatKey || key.risky {
		return false
	}
	size, ok := width(key.lo, key.hi)
	if !ok || size > deviceKeys || size > 64*p.x.tabs[t].Rows {
		return false
	}
	pack := newPacker()
	for _, n := range outs {
		if n.risky {
			return false
		}
		at := child.narrowed(n)
		if at.lo > at.hi {
			return false
		}
		pack.add(at, 0)
	}
	if pack.card == 0 || pack.card > max(deviceEntries, min(deviceEntriesMost, uint64(p.x.tabs[t].Rows))) {
		return false
	}
	lut := &lookup{LookupData: program.LookupData{Lo: key.lo, Size: size}, left: b.join.Kind == plan.Left, keyLo: key.lo, keyHi: key.hi, wide: true,
		rows: int(pack.card), keys: int(max(child.expectedRows(), 1)), share: 1}
	if !lut.left {
		lut.share = min(child.expectedRows()/float64(child.tab.Rows), 1)
	}
	if lut.left {
		lut.Null = uint32(lut.rows)
		lut.rows++
	}
	for i := range outs {
		out, err := b.enumerate(i, outs[i], &pack.parts[i], lut)
		if err != nil {
			return false
		}
		lut.outs = append(lut.outs, out)
		lut.bytes += int64(9 * lut.rows)
	}
	l := newLowering(child)
	l.steps()
	sink := &l.prog.Sink
	sink.Kind, sink.Key = program.SinkBuild, l.node(key)
	for i, n := range outs {
		part := &pack.parts[i]
		sink.Digits = append(sink.Digits, program.Digit{Node: l.node(n), Nullable: part.nullable})
		l.q.Digits = append(l.q.Digits, program.DigitData{Lo: part.lo, Stride: part.stride})
	}
	if lut.kind = entryKind(lut.rows); len(outs) == 0 {
		lut.kind = program.LookupBits
	}
	sink.Build = lut.kind
	if sink.Repeats = b.join.Exists; sink.Repeats && lut.kind != program.LookupBits {
		return false
	}
	if l.why != "" {
		return false
	}
	l.q.Groups, l.q.BuildLo, l.q.BuildSize = pack.card, key.lo, size
	b.child, b.lut, lut.Build = child, lut, l.query()
	if lut.bytes <= keptBytes {
		b.known.mu.Lock()
		b.known.plan = lut.clone()
		b.known.mu.Unlock()
	}
	return true
}

// narrowed returns the bounds that a column's values have in the rows that pass the
// pipeline's steps, where these say so: sets have a range, too, unless it is the whole column.
func (p *pipeline) narrowed(n *node) *node {
	at := &node{lo: n.lo, hi: n.hi, nullable: n.nullable}
	if n.kind != nodeColumn {
		return at
	}
	at.nullable = n.nullable && (p.strict == nil || !p.strict[n.col])
	for i := range p.steps {
		if s := &p.steps[i]; s.kind == program.StepRange && s.n != nil && s.n.col == n.col {
			at.lo, at.hi, at.nullable = max(at.lo, s.lo), min(at.hi, s.hi), false
		}
	}
	return at
}

// enumerate writes output i out for all entries: each is the digits' number.
func (b *probe) enumerate(i int, n *node, part *part, l *lookup) (lookupOut, error) {
	o := lookupOut{OutData: program.OutData{Values: make([]int64, max(l.rows, 1))}, lo: part.lo, hi: n.hi, t: n.t, dict: n.dict}
	if card := int64(part.card); part.nullable {
		o.hi = part.lo + card - 2
	} else {
		o.hi = part.lo + card - 1
	}
	if part.nullable || l.left {
		o.Nulls = make([]uint8, len(o.Values))
	}
	for e := range o.Values {
		v, null := part.undigit(uint64(e) / part.stride % part.card)
		if o.Values[e] = v; null {
			o.Nulls[e] = 1
		}
	}
	if l.left {
		if err := b.nullRow(i, n, &o, l.Null); err != nil {
			return o, err
		}
	}
	return o, nil
}

// builds reports whether a device is to make some lookup of the pipeline's, a set or a table: the processor cannot go on with it.
func (p *pipeline) builds() bool {
	if p.c.deviceTables || slices.ContainsFunc(p.steps, func(s step) bool { return s.match != nil }) {
		return true
	}
	for _, b := range p.probes {
		if b.builds() {
			return true
		}
	}
	return false
}
