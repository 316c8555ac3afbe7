package gpu

import (
	"math"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"pgaccel/gpu/device"
)

// itemKind says what an item is.
type itemKind uint8

const (
	itemColumn itemKind = iota // a column of a segment, as a device has it
	itemLive                   // live rows of a segment
	itemBits                   // query data that has an ID
	itemTable
	itemLookup
	itemStrings // of a dictionary
	itemIndex   // of a column in a segment, by bitmaps
	itemImage   // the descriptors of a column in all segments of a table's part
	itemIndexes // where the indexes of a column lie in all of them
	itemRows    // the descriptors of the segments of a table's part themselves
	itemLayout
	itemKinds
)

var itemNames = [itemKinds]string{"column", "live rows", "bits", "table", "lookup", "strings", "index", "image", "image", "image", "buffers"}

// itemKey names an item. IDs are never used again for other content.
type itemKey struct {
	kind  itemKind
	id    uint64
	table uint64 // images: of the table; n and part as well
	n     int32
}

// item is what is kept in a device's memory.
type item struct {
	key   itemKey
	span  *span   // nil where it needs no memory
	spans []*span // of a layout, likewise
	refs  int     // running queries that read it, and images that it is part of
	tick  uint64
	// load is the batch that brings it, which has ended when its channel is closed; nil
	// where that was seen.
	load  *load
	parts []*item // of an image, or a layout
	image bool    // it has been part of one
	// listed is the list that it is in; nil for none. All with refs == 0 are in one.
	listed *simplelru.LRU[itemKey, *item]
	stamp  uint64   // tick, of when it took its place in the list
	dead   bool     // its load failed, or it was evicted: nobody finds it any more
	of     *stocked // of a column of a table that does not fit
	data   any      // what a descriptor of it says
}

// load is what one query brings, for others that it is there for as well.
type load struct {
	done   chan struct{}
	err    error // after done
	items  []*item
	images []*image // that describe some of it
}

// cache keeps items in a device's memory under a budget. What running queries read is pinned
// (refs); the rest waits in one of three LRU lists to be evicted: single items, whole images
// (so that a query touches columns, not segments), and what was part of an image that was
// evicted. The oldest of the three goes first. To be used again costs an item nothing: what was
// used since it took its place gets another one when evict comes upon it. It is not safe for
// concurrent use.
type cache struct {
	arena   *arena
	items   map[itemKey]*item
	lists   [3]*simplelru.LRU[itemKey, *item] // idle, images, orphans
	tick    uint64                            // of queries
	bytes   [itemKinds]int64                  // by kind
	columns map[uint64]int64                  // bytes of columns, of all widths that they are kept in, and of dictionaries' strings
	evicted uint64
	loose   int    // items that nobody has pinned: evict has a choice of so many
	epoch   uint64 // columns that were put
	noEvict bool   // nothing gives way
}

const (
	idle = iota
	images
	orphans
)

func newCache(a *arena) *cache {
	c := &cache{arena: a, items: map[itemKey]*item{}, columns: map[uint64]int64{}}
	for i := range c.lists {
		l, err := simplelru.NewLRU[itemKey, *item](math.MaxInt, nil) // weighed here, in bytes
		if err != nil {
			panic("BUG: " + err.Error())
		}
		c.lists[i] = l
	}
	return c
}

// get returns the item of that name pinned, or nil.
func (c *cache) get(key itemKey) *item {
	it := c.items[key]
	if it != nil {
		c.pin(it)
	}
	return it
}

// pin keeps an item from being evicted. It stays in its list until evict comes upon it: most
// pins are short.
func (c *cache) pin(it *item) {
	if it.refs == 0 {
		c.loose--
	}
	it.refs++
	it.tick = c.tick
}

func (it *item) list() int {
	switch {
	case it.parts != nil:
		return images
	case it.image:
		return orphans
	}
	return idle
}

// unpin undoes a pin.
func (c *cache) unpin(it *item) {
	it.refs--
	switch {
	case it.refs > 0:
		return
	case it.refs < 0:
		panic("BUG: an item was unpinned twice")
	case it.dead:
		c.free(it)
		return
	case it.listed == nil:
		it.listed, it.stamp = c.lists[it.list()], it.tick
		it.listed.Add(it.key, it)
	}
	c.loose++
}

// unlist takes an item out of the list that it is in.
func (it *item) unlist() {
	if it.listed != nil {
		it.listed.Remove(it.key)
		it.listed = nil
	}
}

// put adds an item of that many bytes, pinned, to be filled by l. nil: there is no room.
func (c *cache) put(key itemKey, bytes int64, l *load) (*item, error) {
	var s *span
	if bytes > 0 {
		var err error
		if s, err = c.alloc(bytes); s == nil {
			return nil, err
		}
	}
	return c.add(key, s, l), nil
}

// putStale is put, but leaves so many bytes free, and evicts nothing that was used in the last so many
// queries.
func (c *cache) putStale(key itemKey, bytes, leave int64, l *load, ticks uint64) *item {
	before := c.tick - min(ticks, c.tick)
	for c.arena.limit-c.arena.used < leave+roundUp(bytes) {
		if !c.evictBefore(before) {
			return nil
		}
	}
	s, _ := c.allocFor(bytes, before)
	if s == nil {
		return nil
	}
	return c.add(key, s, l)
}

func (c *cache) add(key itemKey, s *span, l *load) *item {
	it := &item{key: key, span: s, refs: 1, load: l, tick: c.tick}
	if s != nil {
		c.count(it, s.bytes)
	}
	c.items[key] = it
	if key.kind == itemColumn {
		c.epoch++
	}
	return it
}

// hold adds an item that has memory already, pinned.
func (c *cache) hold(key itemKey, spans []*span) *item {
	it := &item{key: key, refs: 1, tick: c.tick, spans: spans}
	for _, s := range spans {
		c.count(it, s.bytes)
	}
	c.items[key] = it
	return it
}

func (c *cache) count(it *item, bytes int64) {
	c.bytes[it.key.kind] += bytes
	if it.key.kind != itemColumn && it.key.kind != itemStrings {
		return
	}
	if n := c.columns[it.key.id] + bytes; n != 0 {
		c.columns[it.key.id] = n
	} else {
		delete(c.columns, it.key.id)
	}
}

// room is how many bytes nothing is kept in, whatever running queries have of them.
func (c *cache) room() int64 {
	n := c.arena.limit
	for _, bytes := range c.bytes {
		n -= bytes
	}
	return n
}

// setParts makes an image of an item. The parts stay pinned by it.
func (c *cache) setParts(it *item, parts []*item) {
	it.parts = parts
	for _, p := range parts {
		if p != nil {
			p.image = true
		}
	}
}

// alloc returns memory, and evicts for it what is not pinned. nil: there is no room.
func (c *cache) alloc(bytes int64) (*span, error) { return c.allocFor(bytes, math.MaxUint64) }

// allocFor is alloc, but evicts only what was used last before a tick.
func (c *cache) allocFor(bytes int64, before uint64) (*span, error) {
	for {
		s, err := c.arena.alloc(bytes)
		if s != nil {
			return s, nil
		}
		if err != nil {
			if device.KindOf(err) != device.FaultMemory {
				return nil, err
			}
			// Others use the device, too. What there is must do from here on.
			c.arena.limit = c.arena.held
		}
		if !c.evictBefore(before) {
			return nil, nil
		}
	}
}

// evict drops the oldest item that is not pinned; false where all are.
func (c *cache) evict() bool { return c.evictBefore(math.MaxUint64) }

// evictBefore is evict where that item was used last before a tick.
func (c *cache) evictBefore(tick uint64) bool {
	if c.loose == 0 || c.noEvict {
		return false
	}
	var oldest *item
	for _, l := range c.lists {
		_, it, ok := l.GetOldest()
		for ok && (it.refs > 0 || it.tick != it.stamp) {
			if it.refs > 0 {
				it.unlist()
			} else { // used since: a second chance
				it.stamp = it.tick
				l.Get(it.key)
			}
			_, it, ok = l.GetOldest()
		}
		if ok && (oldest == nil || it.tick < oldest.tick) {
			oldest = it
		}
	}
	if oldest == nil || oldest.tick >= tick {
		return false
	}
	c.evicted++
	c.remove(oldest)
	return true
}

// remove drops an item that nobody has pinned.
func (c *cache) remove(it *item) {
	delete(c.items, it.key)
	c.loose--
	c.free(it)
}

// drop forgets an item that was not filled. Who has it pinned still unpins it.
func (c *cache) drop(it *item) {
	if it.dead {
		return
	}
	it.dead = true
	it.unlist()
	delete(c.items, it.key)
	if it.refs == 0 {
		c.loose--
		c.free(it)
	}
}

// free gives the memory of an item back that nobody finds any more.
func (c *cache) free(it *item) {
	it.dead = true
	it.unlist()
	if it.span != nil {
		c.count(it, -it.span.bytes)
		if it.of != nil {
			it.of.kept -= it.span.bytes
		}
		c.arena.dealloc(it.span)
		it.span = nil
	}
	for _, s := range it.spans {
		c.count(it, -s.bytes)
		c.arena.dealloc(s)
	}
	parts := it.parts
	it.spans, it.parts = nil, nil
	for _, p := range parts {
		if p == nil {
			continue
		}
		if p.refs == 1 { // as old as the image, which was the last to have it
			p.tick = max(p.tick, it.tick)
			if p.listed != nil {
				p.unlist() // its place is among what images had
			}
		}
		c.unpin(p)
	}
}

// addr is where an item lies.
func (it *item) addr() device.Pointer {
	if it.span == nil {
		return 0
	}
	return it.span.addr
}
