package engine

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"pgaccel/colstore"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/vector"
)

// resultCache holds results, and what is kept of segments (reusesegments.go), of which the least recently used go first.
type resultCache struct {
	limit          int64        // bytes; 0: none is kept
	reused         atomic.Int64 // executions
	segmentsReused atomic.Int64 // segments, by others

	mu    sync.Mutex
	bytes int64
	lru   *simplelru.LRU[resultKey, *cachedResult]
}

// resultMax is the most bytes of a result that is kept: who reads more takes longer over it than computing does.
const resultMax = 256 << 10

// resultOverhead is about what a kept result takes beside its columns, in bytes.
const resultOverhead = 512

// resultInputs is what a result depends on beside the tables: the plan, its values and those settings that are bound into it.
type resultInputs struct {
	query             *plan.Star
	params, constants []vector.Datum
	timeZone          string // "" where the plan does not read it
	explained         bool   // the execution is explained: its result is no other's, only what it makes of segments
}

// resultKey is that of resultInputs: different ones may have the same.
type resultKey struct {
	query    *plan.Star
	hash     uint64
	segments bool
}

// cachedResult is a result, or what is kept of segments. A result is immutable.
type cachedResult struct {
	inputs   resultInputs
	segments *olap.SegmentCache // nil for a result
	versions []colstore.Version
	result   vector.Batch
	device   string // that computed it
	at       time.Time
	bytes    int64
}

func newResultCache(limit int64) *resultCache {
	r := &resultCache{limit: limit}
	// Bytes bound it, not the number.
	r.lru = must(simplelru.NewLRU(1<<30, func(_ resultKey, k *cachedResult) { r.bytes -= k.bytes }))
	return r
}

var resultSeed = maphash.MakeSeed()

func (a *resultInputs) key() resultKey {
	var h maphash.Hash
	h.SetSeed(resultSeed)
	h.WriteString(a.timeZone)
	for _, v := range a.params {
		maphash.WriteComparable(&h, v)
	}
	for _, v := range a.constants {
		maphash.WriteComparable(&h, v)
	}
	return resultKey{query: a.query, hash: h.Sum64()}
}

func (a *resultInputs) equal(b *resultInputs) bool {
	return a.query == b.query && a.timeZone == b.timeZone && slices.Equal(a.params, b.params) && slices.Equal(a.constants, b.constants)
}

// clone copies the inputs with their strings.
func (a *resultInputs) clone() resultInputs {
	return resultInputs{query: a.query, params: cloneData(a.params), constants: cloneData(a.constants), timeZone: strings.Clone(a.timeZone)}
}

// bytes is about what the inputs take.
func (a *resultInputs) bytes() int64 {
	bytes := int64(resultOverhead)
	for _, v := range slices.Concat(a.params, a.constants) {
		bytes += int64(len(v.Str)) + 128
	}
	return bytes
}

// get returns the result of the same execution, nil where none is kept. Of which versions it is the caller looks at.
func (r *resultCache) get(a *resultInputs) *cachedResult {
	key := a.key()
	r.mu.Lock()
	k, _ := r.lru.Get(key)
	r.mu.Unlock()
	// Rules of zones and of letters are asked for anew after that time, too: a result may have been made by them.
	if k == nil || !k.inputs.equal(a) || time.Since(k.at) > rulesFresh {
		return nil
	}
	return k
}

// put keeps a copy of a result of these versions, in place of an older one.
func (r *resultCache) put(a *resultInputs, versions []colstore.Version, b *vector.Batch, device string) {
	if b.Next != nil {
		return
	}
	bytes := a.bytes()
	if bytes += columnBytes(b.Columns, resultMax); bytes > min(resultMax, r.limit) {
		return
	}
	k := &cachedResult{inputs: a.clone(), versions: versions,
		result: vector.Batch{Rows: b.Rows, Columns: cloneColumns(b.Columns), Ties: b.Ties}, device: device, at: time.Now(), bytes: bytes}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(a.key(), k)
}

// add adds something, in place of what was there. r.mu is held.
func (r *resultCache) add(key resultKey, k *cachedResult) {
	r.lru.Remove(key)
	r.lru.Add(key, k)
	r.bytes += k.bytes
	r.shrink()
}

// shrink removes what was used least recently, as long as there is too much. r.mu is held.
func (r *resultCache) shrink() {
	for r.bytes > r.limit {
		r.lru.RemoveOldest()
	}
}

// batch returns the result. Its columns are not to be written to.
func (k *cachedResult) batch() *vector.Batch {
	b := k.result
	return &b
}

// columnBytes is the memory of columns, or something more than most.
func columnBytes(columns []vector.Column, most int64) (n int64) {
	for i := range columns {
		c := &columns[i]
		n += int64(64 + 8*len(c.Ints) + 32*len(c.Decimals) + 16*len(c.Strs) + 8*len(c.Nulls))
		if n > most {
			return n
		}
		for _, s := range c.Strs {
			n += int64(len(s))
		}
	}
	return n
}

// cloneColumns copies columns with their strings, which may be parts of much longer ones.
func cloneColumns(columns []vector.Column) []vector.Column {
	out := make([]vector.Column, len(columns))
	for i, c := range columns {
		out[i] = vector.Column{Type: c.Type, Ints: slices.Clone(c.Ints), Decimals: slices.Clone(c.Decimals), Strs: slices.Clone(c.Strs), Nulls: slices.Clone(c.Nulls)}
		for j, s := range out[i].Strs {
			out[i].Strs[j] = strings.Clone(s)
		}
	}
	return out
}

func cloneData(data []vector.Datum) []vector.Datum {
	out := slices.Clone(data)
	for i := range out {
		out[i].Str = strings.Clone(out[i].Str)
	}
	return out
}

// resultInputs is what an execution of the decision depends on; nil where nothing of it is another's: the session
// wants it computed, or it is explained and was not asked before.
func (d *decision) resultInputs(params, constants []vector.Datum, timeZone, setting string) *resultInputs {
	if setting == "off" || d.statement.engine.results.limit == 0 {
		return nil
	}
	a := &resultInputs{query: d.query, params: params, constants: constants, explained: d.explain != nil}
	if a.explained {
		if a.query = d.asked(); a.query == nil {
			return nil
		}
	}
	if d.inSessionZone(params) {
		a.timeZone = timeZone
	}
	return a
}

// cached returns the result of an execution with the same inputs that read what the snapshot sees; nil where none is kept.
func (e *Engine) cached(a *resultInputs, snap colstore.Snapshot) *cachedResult {
	if a == nil || a.explained {
		return nil
	}
	if k := e.results.get(a); k != nil && e.unchanged(k.versions, snap) {
		return k
	}
	return nil
}

// unchanged reports whether a snapshot whose position the stream has passed sees exactly these versions.
func (e *Engine) unchanged(versions []colstore.Version, snap colstore.Snapshot) bool {
	return !slices.ContainsFunc(versions, func(v colstore.Version) bool { return !e.store.Same(v, snap) })
}

func versionsOf(in olap.Input) []colstore.Version {
	out := make([]colstore.Version, len(in.Tables))
	for i, t := range in.Tables {
		out[i] = t.Version()
	}
	return out
}

// Reused returns the number of executions that were answered by a kept result, that of segments of which others had what was
// kept, and the bytes of all that is kept.
func (s *Shared) Reused() (executions, segments, bytes int64) {
	s.results.mu.Lock()
	defer s.results.mu.Unlock()
	return s.results.reused.Load(), s.results.segmentsReused.Load(), s.results.bytes
}
