package gpu

import (
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"pgaccel/gpu/program"
)

// hint remembers, for a column that does not fit, which of its segments were there: where
// nothing was put since, a query that streams the others need not look for each again.
type hint struct {
	epoch uint64 // cache.epoch when it was right
	width int8   // the format's
	items []*item
}

// unknown stands for what is to be looked for.
var unknown = new(item)

// hintsMax is how many columns have hints.
const hintsMax = 256

func newHints() *simplelru.LRU[itemKey, *hint] {
	l, err := simplelru.NewLRU[itemKey, *hint](hintsMax, nil)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return l
}

// hint returns that of a column, nil for one without a name.
func (d *dev) hint(q *program.Query, column int, width int8) *hint {
	key, named := imageKey(q, column)
	if !named {
		return nil
	}
	h, ok := d.hints.Get(key)
	if !ok {
		h = &hint{items: make([]*item, len(q.Segments))}
		d.hints.Add(key, h)
	}
	if !ok || h.epoch != d.cache.epoch || h.width != width {
		h.epoch, h.width = d.cache.epoch, width
		for i := range h.items {
			h.items[i] = unknown
		}
	}
	return h
}

// recall is find with a hint.
func (j *job) recall(f fill, h *hint) fill {
	if h == nil {
		return j.find(f)
	}
	it := h.items[f.pos]
	if it == unknown {
		f = j.find(f)
		if f.it != nil || j.d.cache.items[f.key] == nil {
			h.items[f.pos] = f.it
		}
		return f
	}
	f.key, f.bytes = f.item()
	if it == nil || it.dead || it.key != f.key || j.strange(it) {
		return f
	}
	f.it = it
	j.d.cache.pin(it)
	if it.load != nil {
		j.await(it.load)
	}
	j.pins = append(j.pins, it)
	return f
}
