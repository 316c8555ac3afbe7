package olap

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"pgaccel/colstore"
	"pgaccel/gpu/program"
)

// strategy is how the groups of a grouping are found.
type strategy uint8

const (
	groupAuto        strategy = iota // Options: as estimated
	groupSingle                      // there is one group
	groupDense                       // numbers are digits and index arrays
	groupHash                        // a hash table for each worker, merged at the end
	groupPartitioned                 // radix partitions, which all workers fill
	groupListed                      // a device's result: digits' numbers, as they come
)

const (
	// denseGroups bounds the arrays that are indexed by groups' numbers whatever the
	// number of rows; beyond it they must be worth it.
	denseGroups = 1 << 17
	// denseSmall is so few groups that an array is always right.
	denseSmall = 1 << 12
	// denseMax bounds the arrays that rows must be worth: beyond it they leave the caches, and
	// rows are better brought in order first, by partitions.
	denseMax = 1 << 18
	// hashGroups bounds the groups of a worker's hash table: it and the groups stay in
	// the second-level cache.
	hashGroups = 1 << 15
	// sampleTiles is how many tiles are looked at for an estimate, sampleRows the fewest
	// rows of a scan for which that is worth while.
	sampleTiles = 24
)

// sampleRows is a variable so that tests can make it small.
var sampleRows = 1 << 18

// expectedRows estimates the rows that pass the scan's steps: by zone maps, then by
// the steps' own estimates.
func (p *pipeline) expectedRows() float64 {
	if p.expected == 0 {
		p.expected = p.expectRows(p.steps)
	}
	return p.expected
}

// expectedRows estimates the rows of which what is compiled now is computed: of all, before steps are known.
func (c *compiler) expectedRows() float64 {
	if c.known == nil {
		return float64(c.p.tab.Rows)
	}
	if c.expected == 0 {
		c.expected = c.p.expectRows(c.known)
	}
	return c.expected
}

// expectSegments is the number of segments of a large table that an estimate looks at, as
// long as it finds expectHits among them.
const (
	expectSegments = 64
	expectHits     = 16
)

func (p *pipeline) expectRows(steps []step) float64 {
	if p.never {
		return 0
	}
	if every := len(p.tab.Segments) / expectSegments; every > 1 {
		if n, hits := p.sumSegments(steps, every); hits >= expectHits {
			return n * float64(every)
		}
	}
	n, _ := p.sumSegments(steps, 1)
	return n
}

// sumSegments adds up the rows expected of every so many segments, and counts those that
// zone maps do not exclude.
func (p *pipeline) sumSegments(steps []step, every int) (n float64, hits int) {
	for k := 0; k < len(p.tab.Segments); k += every {
		seg := p.tab.Segments[k]
		skip, live := p.zoneOf(steps, seg)
		if skip {
			continue
		}
		hits++
		n += expectOf(steps, seg, live)
	}
	return n, hits
}

// expectOf estimates the rows of a segment that pass the steps that are left.
func expectOf(steps []step, seg *colstore.Segment, live uint64) float64 {
	rows := float64(seg.Rows)
	for i := range steps {
		if i >= 64 || live>>i&1 != 0 {
			rows *= steps[i].share
		}
	}
	return rows
}

// measure has a sample of the rows say what share of them has a partner in an intermediate relation: how
// many rows the relation has, of how many there might be, is not known.
func (p *pipeline) measure() {
	var unsure []*step
	for i := range p.steps {
		s := &p.steps[i]
		if s.kind != program.StepProbe || s.needs != 0 {
			continue
		}
		b := p.probes[s.probe]
		if s := p.x.q.Tables[b.join.Table]; s.Relation == nil || b.lut.left || b.lut.many != nil || b.lut.keys == 0 || b.key.kind != nodeColumn {
			continue
		}
		unsure = append(unsure, s)
	}
	if len(unsure) == 0 || p.device || !p.x.opt.enough(int(p.tab.Rows), sampleRows) {
		return
	}
	tiles := p.sampleTiles()
	var rows, next atomic.Int64
	found := make([]atomic.Int64, len(unsure))
	err := p.x.together(min(p.x.opt.Workers, (len(tiles)+workerTiles-1)/workerTiles), func(*member) error {
		w := newWorker(p)
		for k := int(next.Add(1) - 1); k < len(tiles); k = int(next.Add(1) - 1) {
			w.at(tiles[k])
			for i, s := range unsure {
				if !w.begin(tiles[k].start, min(tileRows, w.seg.Rows-tiles[k].start)) {
					break
				}
				w.settle()
				if i == 0 {
					rows.Add(int64(len(w.f.sel)))
				}
				w.step(s)
				found[i].Add(int64(len(w.f.sel)))
			}
			if w.err != nil {
				return w.err
			}
		}
		return nil
	})
	if err != nil || rows.Load() == 0 {
		return // the scan will come upon an error, too
	}
	for i, s := range unsure {
		s.share = min(s.share, float64(found[i].Load()+1)/float64(rows.Load()+1))
	}
}

// workerTiles is how many tiles of a sample a goroutine is to look at, at least.
const workerTiles = 4

// sampledTile is a tile of a sample: its segment, its first row, and the steps that zone maps leave of it.
type sampledTile struct {
	segment, start int
	live           uint64
}

// sampleTiles returns sampleTiles tiles, about, from all over the table, but for those that zone maps exclude.
func (p *pipeline) sampleTiles() (sample []sampledTile) {
	tiles := 0
	for _, seg := range p.tab.Segments {
		tiles += (seg.Rows + tileRows - 1) / tileRows
	}
	every := max(tiles/sampleTiles, 1)
	serial := 0
	for i, seg := range p.tab.Segments {
		skip, live := p.zone(seg)
		for start := 0; start < seg.Rows; start += tileRows {
			if serial++; serial%every == 0 && !skip {
				sample = append(sample, sampledTile{i, start, live})
			}
		}
	}
	return sample
}

// at makes a tile's segment the worker's.
func (w *worker) at(t sampledTile) {
	w.segment, w.seg = t.segment, w.p.tab.Segments[t.segment]
	w.counts = w.seg.Live
}

// bound returns the most groups that a grouping can have, by its keys' bounds and the
// rows.
func (by *grouping) bound(rows float64) float64 {
	n := 1.0
	for i := range by.pack.parts {
		if c := by.pack.parts[i].card; c != 0 {
			n *= float64(c)
		} else {
			n *= 1 << 63
		}
	}
	return min(n, max(rows, 1))
}

// estimate sets the expected groups of groupings: by bounds where those are small,
// else by what a sample of the tiles shows.
func (g *grouper) estimate(list []*grouping, rows float64) {
	var unsure []*grouping
	for _, by := range list {
		by.expect = by.bound(rows)
		if by.expect > denseSmall && !by.denseByBounds(rows) {
			unsure = append(unsure, by)
		}
	}
	if len(unsure) == 0 || !g.p.x.opt.enough(int(rows), sampleRows) || g.device {
		return
	}
	s, ok := g.sample(unsure)
	if !ok {
		return
	}
	for i, by := range unsure {
		by.expect = min(by.expect, s.found[i].estimate(s.n, rows))
		by.clustered = 2*s.found[i].sum <= float64(s.n)
	}
}

// sampler looks up the keys of some rows. Rows of a group are often neighbours, as the lines of an
// order are: a key that a tile has several times says no more of the other tiles than one that it
// has once. So tiles are counted that have it (Chaudhuri, Das and Srivastava, Effective use of
// block-level sampling in statistics estimation, 2004).
type sampler struct {
	list  []*grouping
	found []sampled // by grouping
	keys  []uint64
	index []uint32
	n     int // rows
	at    int // the tile's number, from 1
}

// sampled is what the tiles so far have of a grouping's keys.
type sampled struct {
	keys    *wordTable
	seen    []sighting // by the key's number
	sum     float64    // of the tiles' numbers of different keys
	squares float64    // of these numbers
}

func newSampled(words int) sampled { return sampled{keys: newWordTable(words, 4*tileRows)} }

// sighting is of a key: the last tile that had it, and how many did.
type sighting struct{ last, tiles int32 }

// tile implements sink.
func (s *sampler) tile(w *worker) {
	s.at++
	for i, by := range s.list {
		words := by.pack.words
		s.keys = append(s.keys[:0], make([]uint64, words*len(w.f.sel))...)
		by.packKeys(w, s.keys)
		s.found[i].add(s.keys, s.index[:len(w.f.sel)], s.at)
	}
	s.n += len(w.f.sel)
}

// add adds the keys of a tile, of len(index) rows. index is written to.
func (c *sampled) add(keys []uint64, index []uint32, tile int) {
	c.keys.insertAll(keys, index)
	c.seen = append(c.seen, make([]sighting, c.keys.n-len(c.seen))...)
	different := 0.0
	for _, k := range index {
		if v := &c.seen[k]; v.last != int32(tile) {
			*v = sighting{int32(tile), v.tiles + 1}
			different++
		}
	}
	c.sum += different
	c.squares += different * different
}

// sample looks at tiles from all over the table. An error is left to the scan, which
// will come upon it.
func (g *grouper) sample(list []*grouping) (*sampler, bool) {
	p := g.p
	s := &sampler{list: list, index: make([]uint32, tileRows)}
	for _, by := range list {
		s.found = append(s.found, newSampled(by.pack.words))
	}
	w := newWorker(p)
	for _, t := range p.sampleTiles() {
		w.at(t)
		if w.scanTile(t.start, t.live, s); w.err != nil {
			break
		}
	}
	return s, w.err == nil && s.n > 0
}

// estimate returns about how many different keys so many rows have, of which n were looked at. It is
// the greater of two numbers that are rather too small.
//
// One is the GEE estimator of Charikar, Chaudhuri, Motwani and Narasayya (Towards estimation error
// guarantees for distinct values, 2000): values that are frequent have been seen, of those seen
// once, here in one tile, there are sqrt(rows/n) times as many.
//
// The other is by collisions: were all of d keys as frequent, one of d pairs of keys out of
// different tiles would be of equal ones, and the less alike their frequencies, the more are. So
// many as are met by chance are allowed for.
//
// No more keys are possible than if no tile had any of another's.
func (c *sampled) estimate(n int, rows float64) float64 {
	once, equal := 0.0, 0.0
	for _, k := range c.seen {
		once += float64(b2i(k.tiles == 1))
		equal += float64(k.tiles) * float64(k.tiles-1) / 2
	}
	more := max(rows/float64(n), 1)
	charikar := float64(len(c.seen)) - once + math.Sqrt(more)*once
	pairs := (c.sum*c.sum - c.squares) / 2
	collisions := pairs / (equal + 2*math.Sqrt(equal) + 1)
	return min(max(charikar, collisions), more*c.sum)
}

// groupBytes is the memory of one group's counts and states.
func (g *grouper) groupBytes() int64 {
	n := int64(8)
	for i := range g.accs {
		if n += 8; g.accs[i].kind == program.AccSum128 {
			n += 8
		}
	}
	return n
}

// choose decides how groups are found. rows are expected; by.expect is set.
func (by *grouping) choose(rows float64) {
	x := by.g.p.x
	forced := x.opt.grouping
	card := by.pack.card
	switch {
	case len(by.axes) == 0:
		by.how = groupSingle
	case x.spill != nil && (forced == groupPartitioned || x.opt.forceSpill || !by.fewGroups()):
		by.how = groupPartitioned
		by.choosePartitions()
		return
	case by.g.device:
		by.how = groupHash
		if by.denseByBounds(rows) {
			by.how = groupDense
		}
	case forced == groupDense && card != 0 && card <= 1<<24, forced == groupHash, forced == groupPartitioned:
		by.how = forced
	default:
		by.how = by.suited(rows)
	}
	if by.how != groupPartitioned {
		return
	}
	bytes := by.g.groupBytes()
	// Digits index a partition's arrays where these are not much more than the rows: to
	// clear them costs less than to hash every row, up to twice as many at least. The estimate
	// of groups, low where frequent values hide rare ones or a group's rows are neighbours,
	// decides beyond that only.
	by.sparse = float64(card) > max(8*by.expect, 2*rows) || int64(card) > x.opt.MemoryLimit/(4*bytes)
	// The estimate is often too low where most values occur once; more partitions cost
	// little.
	groups := max(min(4*by.expect, rows), 1)
	if by.directNumbers() {
		groups = float64(card)
	} else {
		bytes += 16*2 + 8
	}
	parts := groups * float64(bytes) / partitionBytes
	parts = min(max(parts, float64(8*x.opt.Workers)), maxPartitions)
	workers := int64(x.opt.Workers)
	by.radix = newRadix(by, int(parts), min(partitionBuffers, x.opt.MemoryLimit/(4*workers)))
	// A buffer need not hold more than there is.
	fill := int(1.5*rows) / int(workers) / len(by.radix.parts)
	by.radix.rows = max(min(by.radix.rows, 1<<bits.Len(uint(fill))), 2*tileRows)
}

// denseByBounds reports whether an array is right whatever the number of groups.
func (by *grouping) denseByBounds(rows float64) bool {
	card := by.pack.card
	return card != 0 && (card <= denseSmall || card <= denseGroups && float64(card) <= 4*rows)
}

// suited returns the strategy for the expected groups and rows.
func (by *grouping) suited(rows float64) strategy {
	x := by.g.p.x
	partitions := by.expect > hashGroups && !slices.ContainsFunc(by.g.accs, func(a acc) bool { return a.computed() }) &&
		rows >= float64(sampleRows) && x.opt.MemoryLimit/(4*int64(x.opt.Workers)) >= 4<<20
	switch {
	case by.dense(rows, partitions):
		return groupDense
	case partitions:
		return groupPartitioned
	}
	return groupHash
}

// dense reports whether arrays are better than partitions, or than hash tables.
func (by *grouping) dense(rows float64, partitions bool) bool {
	x, card := by.g.p.x, by.pack.card
	if card == 0 || card <= denseSmall {
		return card != 0
	}
	segments, _ := by.g.p.read(math.MaxInt)
	if n := min(x.opt.Workers, segments); n > 1 {
		// Each worker's array is cleared and merged: an element costs about as much as a row does
		// in an array. A hash table takes several times as long for a row, partitions do not.
		worth := 2 * rows
		if partitions {
			worth = rows / 2
		}
		if float64(card)*float64(n) > worth {
			return false
		}
	}
	return by.denseByBounds(rows) || card <= denseMax && float64(card) <= rows/2 && float64(card) <= 8*by.expect &&
		int64(card)*by.g.groupBytes()*int64(x.opt.Workers) <= x.opt.MemoryLimit/8
}
