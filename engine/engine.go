package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/gpu"
	"pgaccel/internal/processors"
	"pgaccel/internal/temp"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/syntax"
)

// Options sets up an Engine.
type Options struct {
	Store *colstore.Store
	// Workers is the number of goroutines that one query uses; 0 is one a core. All queries
	// together use no more than there are cores (olap.Slots).
	Workers int
	// QueryMemory bounds, in bytes, what all executions hold together: hash tables,
	// intermediate results, and results until they are let go (vector.Batch.Release). One of
	// them may have half of it, and 1 GiB in any case. 0 is 1 GiB.
	QueryMemory int64
	// ReuseMemory bounds, in bytes, the results that are kept for executions that ask the same again, beside
	// QueryMemory. 0 keeps none.
	ReuseMemory int64
	// Shared is what executions share with those of other engines; nil: this one has its own, by Workers, QueryMemory and ReuseMemory.
	Shared *Shared
	// Temp has what that does not hold; nil: it is forwarded.
	Temp *temp.Space
	// WaitLimit bounds the wait for the stream to reach a query's position; then the
	// query is forwarded. 0 is 50 ms.
	WaitLimit time.Duration
	// CheckDefinition is told of a table whose definition differs from its copy's, so
	// that it is looked at soon. May be nil.
	CheckDefinition func(oid uint32)
	// CheckServer is told of a server that a session is on, another than the stream comes
	// from, so that it is looked at soon whether the stream is still where it should be. May
	// be nil.
	CheckServer func(server string)
	// Look runs a SELECT with parameters and results in text form in a snapshot of its
	// own, on a session that belongs to no client. Without it, what has changed since a
	// REPEATABLE READ transaction began is noticed only when the catalog is read again.
	Look func(ctx context.Context, sql string, params []string) ([][]*string, error)
	// Waited is told how long each gate waited for the stream, most not at all. May be
	// nil; it must be quick.
	Waited func(time.Duration)
	// Passed is told how long it took, from before the gate was sent, until the wait was
	// over. May be nil; it must be quick.
	Passed func(time.Duration)
	// Device computes what it can of queries; nil where there is none, which is not the
	// same as one that does not work now. DeviceKind is what pgaccel.device calls it:
	// cuda or emu.
	Device     gpu.Runner
	DeviceKind string
	// Resident returns the bytes of device memory that columns have, by
	// colstore.Column.ID. May be nil.
	Resident func(ids []uint64) int64
	// Devices describes the devices, for pgaccel.devices. May be nil.
	Devices func() []gpu.DeviceStatus
	// Status and Sessions are what pgaccel.status and pgaccel.sessions show beside what the engine knows. May be nil.
	Status   func() Status
	Sessions func() []SessionInfo
	// Choices are the tables that were chosen by what statements need, and those that were left, for pgaccel.tables. May be nil.
	Choices func() []Choice
	Logger  *slog.Logger
	// Trials has executions routed by what they took: PostgreSQL answers shapes that it was found to answer faster
	// (routing.go), and executions like one that was computed in vain (latefailure.go).
	Trials bool
	// TrialFloor is, for tests, the least time of a shape that is worth a trial; 0 is 5 ms.
	TrialFloor time.Duration
	// Eager is olap.Options.Eager. For tests.
	Eager bool
}

// Engine decides and executes. It is safe for concurrent use.
type Engine struct {
	*Shared
	opt   Options
	store *colstore.Store
	log   *slog.Logger
	cache *lru.Cache[string, *statement]
	// refused remembers by text without constants what is not taken.
	refused *lru.Cache[string, *statement]
	other   *statement // everything that is no SELECT
	names   atomic.Pointer[nameSet]
	sized   atomic.Pointer[sized]
	known   atomic.Pointer[known]
	stats   stats

	satisfied    atomic.Pointer[satisfied]
	share        *olap.Sharer
	collations   sync.Map // names by OID, of rank
	zones        *ruleCache[zoneKey, *sqltype.Zone]
	cases        *ruleCache[caseKey, *sqltype.Cases]
	waitLimit    atomic.Int64 // Options.WaitLimit
	pins         atomic.Int64
	badStaleness atomic.Int64
	verdicts     verdicts
	devices      deviceStats
	speculations speculations
	trials       trials
	seen         seen
}

// cachedTextMax is the longest SQL text that is kept with its decision.
const cachedTextMax = 64 << 10

// executionMemory is what one execution may have whatever others have, in bytes.
const executionMemory = 1 << 30

func must[T any](v T, err error) T {
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return v
}

// New returns an engine over the tables of o.Store.
func New(o Options) *Engine {
	if o.WaitLimit == 0 {
		o.WaitLimit = 50 * time.Millisecond
	}
	if o.QueryMemory == 0 {
		o.QueryMemory = 1 << 30
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Shared == nil {
		o.Shared = NewShared(o.Workers, o.QueryMemory, o.ReuseMemory)
	}
	e := &Engine{Shared: o.Shared, opt: o, store: o.Store, log: o.Logger, cache: must(lru.New[string, *statement](4096)), refused: must(lru.New[string, *statement](4096)),
		zones: newRuleCache[zoneKey, *sqltype.Zone](zonesMax), cases: newRuleCache[caseKey, *sqltype.Cases](casesMax), share: olap.NewSharer()}
	e.waitLimit.Store(int64(o.WaitLimit))
	e.seen.init()
	e.stats.init()
	e.other = &statement{engine: e}
	e.other.fixed = &decision{statement: e.other, forward: forward(plan.ReasonNotSelect, ""), shape: &shape{}}
	e.refresh()
	o.Store.OnCatalog(e.refresh)
	return e
}

var _ Decider = (*Engine)(nil)

// execution returns how queries are executed.
func (e *Engine) execution() olap.Options {
	limit := e.memory.limit.Load()
	o := olap.Options{Workers: cmp.Or(e.opt.Workers, processors.Count()), Slots: e.slots, MemoryLimit: min(limit, max(executionMemory, limit/2)), Share: e.share, Eager: e.opt.Eager}
	if e.opt.Look != nil {
		o.Rank = e.rank
	}
	return o
}

// SetWaitLimit changes Options.WaitLimit.
func (e *Engine) SetWaitLimit(d time.Duration) { e.waitLimit.Store(int64(d)) }

// SharedScans returns the number of executions that joined another's scan of a table.
func (e *Engine) SharedScans() int64 { return e.share.Joined() }

// refresh follows a change of the catalog: the set of names that Mentions looks
// for is made anew. Statements notice by themselves that they are out of date.
func (e *Engine) refresh() {
	cat := e.store.Catalog()
	if old := e.names.Load(); old != nil && old.catalog == cat {
		return
	}
	e.names.Store(newNameSet(cat))
}

// Mentions implements Decider.
func (e *Engine) Mentions(sql []byte) bool { return e.names.Load().in(sql) }

// BadStaleness returns the number of gates whose pgaccel.max_staleness was no duration.
func (e *Engine) BadStaleness() int64 { return e.badStaleness.Load() }

// Prepare implements Decider.
func (e *Engine) Prepare(sql string, paramOIDs []uint32) Statement {
	return e.prepare(sql, paramOIDs, nil)
}

// plansLong is the least length, in bytes, of a text that Plans has planned aside: shorter ones are within a millisecond or so.
const plansLong = 512

// Plans implements Decider.
func (e *Engine) Plans(sql string, paramOIDs []uint32) bool {
	if len(sql) < plansLong || !selects(sql) || e.cache.Contains(cacheKey(sql, paramOIDs)) {
		return false
	}
	var buf [1024]byte
	stripped, ok := stripConstants(buf[:0], sql)
	return !ok || !e.refused.Contains(string(stripped))
}

// prepare is Prepare. text is sql where that is parsed, else nil.
func (e *Engine) prepare(sql string, paramOIDs []uint32, text *syntax.Text) *statement {
	if !selects(sql) {
		return e.other
	}
	if firstWord(sql) == "explain" {
		return e.explainOf(sql, paramOIDs)
	}
	key := cacheKey(sql, paramOIDs)
	if st, ok := e.cache.Get(key); ok {
		return st
	}
	st := &statement{engine: e, sql: sql, paramOIDs: slices.Clone(paramOIDs)}
	var buf [1024]byte
	stripped, canStrip := stripConstants(buf[:0], sql)
	if canStrip {
		if like, ok := e.refused.Get(string(stripped)); ok {
			if d := like.current(); d.refused() {
				// The text that was decided may hold other values than this one: only what
				// does not depend on them is taken over, and planned anew if forced.
				st.like = like
				if bytes.IndexByte(stripped, '?') < 0 && len(sql) <= cachedTextMax {
					e.cache.Add(key, st)
				}
				return st
			}
			e.refused.Remove(string(stripped))
		}
	}
	if text == nil {
		text = syntax.Parse(sql)
	}
	if strings.Contains(strings.ToLower(sql), syntax.VirtualSchema) {
		if v := e.viewOf(text, len(paramOIDs)); v != nil {
			st.fixed = &decision{statement: e.other, forward: e.other.fixed.forward, shape: e.other.fixed.shape, view: v}
		}
	}
	if isCopy(sql) {
		if st.copyOf(text); st.copy == nil {
			st = e.other
		}
	} else if st.cursorOf(text); st.cursor == nil && firstWord(sql) == "declare" {
		st = e.other
	} else if word := firstWord(sql); (word == "create" || word == "insert") && text.Written() == nil {
		st = e.other
	} else if prefix, begins, last := text.Split(); last != nil && len(paramOIDs) == 0 {
		// Only a simple Query, which has no parameter types, can hold several statements.
		if s := e.prepare(last.SQL, nil, last); s.fixed == nil {
			st.split, st.last = &Split{Prefix: prefix, Begins: begins, SQL: last.SQL}, s
		}
	}
	if st.fixed == nil && st.last == nil {
		if d := st.decide(e.catalog(), text); d.refused() && canStrip {
			e.refused.Add(string(stripped), st)
			if bytes.IndexByte(stripped, '?') >= 0 {
				return st // the next text has other constants
			}
		}
	}
	if len(sql) <= cachedTextMax {
		e.cache.Add(key, st)
	}
	return st
}

func cacheKey(sql string, paramOIDs []uint32) string {
	if len(paramOIDs) == 0 {
		return sql
	}
	b := make([]byte, 0, len(sql)+1+4*len(paramOIDs))
	b = append(append(b, sql...), 0)
	for _, o := range paramOIDs {
		b = binary.LittleEndian.AppendUint32(b, o)
	}
	return string(b)
}

// nameSet holds, in lower case, one identifier of the name of each accelerated table, and of
// each view over them: all of it where it is a plain identifier.
type nameSet struct {
	catalog *catalog.Catalog
	names   map[string]bool
	lengths [65]bool // of names: most identifiers need not be looked up
	// ambiguous is true where tables or views of several schemas have one name.
	ambiguous bool
}

func newNameSet(cat *catalog.Catalog) *nameSet {
	s := &nameSet{catalog: cat, names: map[string]bool{syntax.VirtualSchema: true, "pg_prepared_statements": true}}
	whole := map[string]bool{}
	for _, t := range slices.Concat(cat.Tables, cat.Views) {
		s.ambiguous = s.ambiguous || whole[t.Name]
		whole[t.Name] = true
		longest := ""
		for id := range identifiers([]byte(t.Name)) {
			if len(id) > len(longest) {
				longest = string(id)
			}
		}
		s.names[string(lowerASCII([]byte(longest)))] = true
	}
	for name := range s.names {
		if len(name) < len(s.lengths) {
			s.lengths[len(name)] = true
		}
	}
	return s
}

// in reports whether one of the names occurs in sql as an identifier, be it in a
// comment or a string.
func (s *nameSet) in(sql []byte) bool {
	var lower [64]byte
	for id := range identifiers(sql) {
		if len(id) > len(lower) || !s.lengths[len(id)] {
			continue
		}
		lowerASCII(lower[:copy(lower[:], id)])
		if s.names[string(lower[:len(id)])] {
			return true
		}
	}
	return false
}

// lowerASCII folds A to Z only, in place, and returns b.
func lowerASCII(b []byte) []byte {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}

// identifiers yields the runs of identifier characters in sql.
func identifiers(sql []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := 0; i < len(sql); {
			if !identifierByte[sql[i]] {
				i++
				continue
			}
			start := i
			for i < len(sql) && identifierByte[sql[i]] {
				i++
			}
			if !yield(sql[start:i]) {
				return
			}
		}
	}
}

var identifierByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x80 || c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	return
}()

// forward is shorthand for a *plan.Forward.
func forward(r plan.Reason, detail string) *plan.Forward {
	return &plan.Forward{Reason: r, Detail: detail}
}
