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

// results are those that are kept, the least recently used going first.
type results struct {
	limit  int64        // bytes; 0: none is kept
	reused atomic.Int64 // executions

	mu    sync.Mutex
	bytes int64
	lru   *simplelru.LRU[resultKey, *kept]
}

// resultMax is the most bytes of a result that is kept: who reads more takes longer over it than computing does.
const resultMax = 256 << 10

// resultOverhead is about what a kept result takes beside its columns, in bytes.
const resultOverhead = 512

// asked is what a result depends on beside the tables: the plan, its values and those settings that are bound into it.
type asked struct {
	query             *plan.Star
	params, constants []vector.Datum
	timeZone          string // "" where the plan does not read it
}

// resultKey is an asked's: different ones may have the same.
type resultKey struct {
	query *plan.Star
	hash  uint64
}

// kept is a result. Immutable.
type kept struct {
	asked    asked
	versions []colstore.Version
	columns  []vector.Column
	rows     int
	ties     bool
	device   string // that computed it
	at       time.Time
	bytes    int64
}

func newResults(limit int64) *results {
	r := &results{limit: limit}
	// Bytes bound it, not the number.
	r.lru = must(simplelru.NewLRU(1<<30, func(_ resultKey, k *kept) { r.bytes -= k.bytes }))
	return r
}

var resultSeed = maphash.MakeSeed()

func (a *asked) key() resultKey {
	var h maphash.Hash
	h.SetSeed(resultSeed)
	h.WriteString(a.timeZone)
	for _, v := range a.params {
		maphash.WriteComparable(&h, v)
	}
	for _, v := range a.constants {
		maphash.WriteComparable(&h, v)
	}
	return resultKey{a.query, h.Sum64()}
}

func (a *asked) equal(b *asked) bool {
	return a.query == b.query && a.timeZone == b.timeZone && slices.Equal(a.params, b.params) && slices.Equal(a.constants, b.constants)
}

// find returns the result of the same execution, nil where none is kept. Of which versions it is the caller looks at.
func (r *results) find(a *asked) *kept {
	if r.limit == 0 {
		return nil
	}
	key := a.key()
	r.mu.Lock()
	k, _ := r.lru.Get(key)
	r.mu.Unlock()
	// Rules of zones and of letters are asked for anew after that time, too: a result may have been made by them.
	if k == nil || !k.asked.equal(a) || time.Since(k.at) > rulesFresh {
		return nil
	}
	return k
}

// keep keeps a copy of a result of these versions, in place of an older one.
func (r *results) keep(a *asked, versions []colstore.Version, b *vector.Batch, device string) {
	if r.limit == 0 || b.Next != nil {
		return
	}
	bytes := int64(resultOverhead)
	for _, v := range slices.Concat(a.params, a.constants) {
		bytes += int64(len(v.Str)) + 128
	}
	if bytes += columnBytes(b.Columns, resultMax); bytes > min(resultMax, r.limit) {
		return
	}
	k := &kept{asked: asked{a.query, cloneData(a.params), cloneData(a.constants), strings.Clone(a.timeZone)},
		versions: versions, columns: cloneColumns(b.Columns), rows: b.Rows, ties: b.Ties, device: device, at: time.Now(), bytes: bytes}
	key := a.key()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lru.Remove(key)
	r.lru.Add(key, k)
	for r.bytes += bytes; r.bytes > r.limit; {
		r.lru.RemoveOldest()
	}
}

// batch returns the result. Its columns are not to be written to.
func (k *kept) batch() *vector.Batch {
	return &vector.Batch{Rows: k.rows, Columns: k.columns, Ties: k.ties}
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

// asks is what an execution of the decision depends on. ok is false where its result is never another's: it is
// explained, or the session wants it computed.
func (d *decision) asks(params, constants []vector.Datum, timeZone, setting string) (a asked, ok bool) {
	if d.explain != nil || setting == "off" || d.statement.engine.results.limit == 0 {
		return asked{}, false
	}
	a = asked{query: d.query, params: params, constants: constants}
	if d.inSessionZone(params) {
		a.timeZone = timeZone
	}
	return a, true
}

// kept returns the result of an execution that can be reused as far as versions go, which sees says.
func (e *Engine) kept(a *asked, snap colstore.Snapshot) *kept {
	if k := e.results.find(a); k != nil && e.unchanged(k.versions, snap) {
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

// Reused returns the number of executions that were answered by a kept result, and the bytes of those that are kept.
func (e *Engine) Reused() (executions, bytes int64) {
	e.results.mu.Lock()
	defer e.results.mu.Unlock()
	return e.results.reused.Load(), e.results.bytes
}
