package engine

import (
	"reflect"
	"time"

	"pgaccel/olap"
	"pgaccel/plan"
)

// A result is of use while nothing is written to its tables. For tables to which rows come all the time, what
// executions have made of segments is kept (olap.SegmentCache), under the same inputs, in the same memory.

// segmentsShare: what is kept of segments for one plan with its values takes 1/segmentsShare of the memory at the most.
const segmentsShare = 4

// segments returns what is kept of segments for executions with these inputs: nothing, at first. It is nil where none is.
func (r *resultCache) segments(a *resultInputs) *olap.SegmentCache {
	if a == nil || !a.query.Grouped {
		return nil
	}
	key := a.key()
	key.segments = true
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, _ := r.lru.Get(key); k != nil && k.inputs.equal(a) && time.Since(k.at) <= rulesFresh {
		return k.segments
	}
	k := &cachedResult{inputs: a.clone(), segments: olap.NewSegmentCache(r.limit/segmentsShare, &r.segmentsReused), at: time.Now(), bytes: a.bytes()}
	r.add(key, k)
	return k.segments
}

// segmentsKept accounts for what an execution has left.
func (r *resultCache) segmentsKept(a *resultInputs, used *olap.SegmentCache) {
	if used == nil {
		return
	}
	bytes := a.bytes() + used.Bytes()
	key := a.key()
	key.segments = true
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, _ := r.lru.Peek(key); k != nil && k.segments == used {
		r.bytes += bytes - k.bytes
		k.bytes = bytes
		r.shrink()
	}
}

// asked is the plan under which others ask what is explained: it was made for itself, and is the same. Nil where
// nobody has asked.
func (d *decision) asked() *plan.Star {
	st, _ := d.statement.engine.cache.Peek(cacheKey(d.statement.sql, d.statement.paramOIDs))
	if st == nil {
		return nil
	}
	if o := st.decided.Load(); o != nil && o.catalog == d.catalog && reflect.DeepEqual(o.query, d.query) {
		return o.query
	}
	return nil
}
