package advise

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"pgaccel/catalog"
	"pgaccel/replica"
)

// A Chooser chooses tables while pgaccel runs, by the statements that came lately. Not safe for concurrent use.
type Chooser struct {
	upstream string
	began    time.Time
	dropped  time.Time             // when a table was last left that was copied
	told     map[string]Executions // what Note was told last
	load     map[string]*load      // by text
	decayed  time.Time             // when load was last aged
	newMS    float64               // of load, since Choose
	samples  map[uint32]sampled    // by OID
	refused  map[uint32]refusal    // likewise
}

// NewChooser returns one that knows no statements.
func NewChooser(upstream string, now time.Time) *Chooser {
	return &Chooser{upstream: upstream, began: now, decayed: now, told: map[string]Executions{}, load: map[string]*load{}, samples: map[uint32]sampled{}, refused: map[uint32]refusal{}}
}

// Executions are those of a statement, which has parameters in place of its constants.
type Executions struct {
	Text   string
	Calls  int64         // so far
	Server time.Duration // what PostgreSQL takes for one; 0 where that is not known
	Here   time.Duration // what one takes that is answered here; 0 where none was
}

// Held is a table that is copied, or was to be.
type Held struct {
	OID     uint32
	Bytes   int64  // 0 where it is about to be copied again
	Fixed   bool   // a pattern names it
	Refused string // why there is no copy
}

// Choice is a table that is to be copied, or why it is not.
type Choice struct {
	Table *catalog.Table
	Take  bool
	Why   string
	Load  string // what statements that read it take; "" for none
	Bytes int64  // that its copy takes, or about would
}

// load is what a statement needs: executions count the less the longer ago they were.
type load struct {
	calls            float64
	serverMS, hereMS float64 // of one; 0 where it is not known
}

func (l *load) ms() float64 { return l.calls * l.serverMS }

// sampled is an estimate, and the size on the server that it is for.
type sampled struct {
	memory memory
	server int64
}

// refusal is a copy that failed for something that was not foreseen.
type refusal struct {
	why   string
	until time.Time // when it is tried again
}

const (
	// halfLife is the time after which an execution counts half: long enough for what runs by day and by night.
	halfLife = 12 * time.Hour
	// holdFor is the time that tables stay which are copied, from the start of the process, and after one was dropped.
	holdFor = time.Hour
	// loadMax bounds the statements that are remembered, and plannedMax those of them that are planned: by their time.
	loadMax, plannedMax = 500, 100
	// copyRowsPerSecond and copyStartMS are what a copy takes of the server's time, about: by its rows, and to begin.
	copyRowsPerSecond = 1e6
	copyStartMS       = 100
	// unknownServer is how much longer PostgreSQL is supposed to take where it has never been asked: trials, which are made of what takes
	// long, would have found that it does not.
	unknownServer = 2
)

// newShare is the part of all time that has to be new for another look, which asks the server a while for each statement.
const newShare = 0.01

// Note takes what has been executed since it was last called, and reports whether there is enough since Choose that it may choose otherwise.
func (c *Chooser) Note(now time.Time, list []Executions) (more bool) {
	c.age(now)
	told := map[string]Executions{}
	for _, x := range list {
		told[x.Text] = x
		calls := x.Calls
		if before := c.told[x.Text].Calls; before <= calls { // else its counts were forgotten
			calls -= before
		}
		if calls > 0 {
			c.add(x.Text, float64(calls), x.Server, x.Here)
		}
	}
	c.told = told
	c.prune()
	total := 0.0
	for _, l := range c.load {
		total += l.ms()
	}
	return c.newMS > newShare*total
}

func (c *Chooser) age(now time.Time) {
	factor := math.Pow(0.5, now.Sub(c.decayed).Seconds()/halfLife.Seconds())
	for _, l := range c.load {
		l.calls *= factor
	}
	c.decayed = now
}

func (c *Chooser) add(text string, calls float64, server, here time.Duration) {
	l := c.load[text]
	if l == nil {
		l = &load{}
		c.load[text] = l
	}
	l.calls += calls
	if here > 0 {
		l.hereMS = here.Seconds() * 1000
	}
	if server > 0 {
		l.serverMS = server.Seconds() * 1000
	} else if l.serverMS == 0 {
		l.serverMS = unknownServer * l.hereMS
	}
	c.newMS += calls * l.serverMS
}

// texts are the statements, those of most time first.
func (c *Chooser) texts() []string {
	return slices.SortedFunc(maps.Keys(c.load), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.load[b].ms(), c.load[a].ms()), cmp.Compare(a, b))
	})
}

func (c *Chooser) prune() {
	if all := c.texts(); len(all) > loadMax {
		for _, text := range all[loadMax:] {
			delete(c.load, text)
		}
	}
}

// NoteServer takes what the server's pg_stat_statements has, where the role may read it: as if it had gone on as long as it counts.
// Its error says why it may not.
func (c *Chooser) NoteServer(ctx context.Context) error {
	s, err := replica.NewSurvey(ctx, c.upstream, []string{"*"})
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := readStatements(ctx, s, plannedMax)
	if err != nil {
		return err
	}
	var age float64 // seconds
	if err := s.Conn.QueryRow(ctx, "SELECT extract(epoch FROM pg_catalog.now() - i.stats_reset)::pg_catalog.float8 FROM "+all.schema+".pg_stat_statements_info i").Scan(&age); err != nil {
		return err
	}
	share := min(1, halfLife.Seconds()/math.Ln2/max(age, 1))
	for _, st := range all.list {
		c.add(st.Query, float64(st.Calls)*share, time.Duration(st.MeanMS*float64(time.Millisecond)), 0)
	}
	c.prune()
	return nil
}

// Choose chooses among the tables that auto among the patterns may stand for: what is copied already is in held, and tables that no other pattern names may take so many
// bytes. Tables are in the answer that are taken, or that statements would gain by. It reads samples of those that it has not seen.
func (c *Chooser) Choose(ctx context.Context, now time.Time, patterns []string, held []Held, limit int64) ([]Choice, error) {
	s, err := replica.NewSurvey(ctx, c.upstream, patterns)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	all := c.statements()
	// Which tables are read does not depend on their sizes, unless they are small.
	if err := all.decide(ctx, s, supposedLarge(s.Catalog)); err != nil {
		return nil, err
	}
	var tables []*table
	for _, meta := range s.Catalog.Tables {
		i := slices.IndexFunc(held, func(h Held) bool { return h.OID == meta.OID })
		if i < 0 && !all.read(meta) {
			continue
		}
		t, err := describe(ctx, s, meta)
		if err != nil {
			return nil, err
		}
		if i >= 0 {
			c.hold(t, held[i], now)
		}
		if err := c.size(ctx, s, t, now); err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	if err := all.decide(ctx, s, sized(s.Catalog, tables)); err != nil {
		return nil, err
	}
	c.newMS = 0
	hold := now.Sub(c.began) < holdFor || now.Sub(c.dropped) < holdFor
	chooseByStatements(tables, all, limit, hold)
	var list []Choice
	for _, t := range tables {
		if dropped := t.held > 0 && !t.Take; dropped && t.blocked == "" {
			c.dropped = now
		}
		if !t.fixed && (t.Take || t.held > 0 || t.Gain > 0) {
			list = append(list, Choice{Table: t.meta, Take: t.Take, Why: t.Why, Load: all.loadOf(t), Bytes: t.needsMemory()})
		}
	}
	return list, nil
}

// hold notes what the copy of a table takes, or why there is none.
func (c *Chooser) hold(t *table, h Held, now time.Time) {
	switch t.fixed = h.Fixed; {
	case h.Refused != "" && h.Fixed:
		t.blocked = h.Refused
	case h.Refused != "":
		c.refused[h.OID] = refusal{h.Refused, now.Add(holdFor)}
	default:
		t.held = cmp.Or(h.Bytes, heldUnknown)
	}
}

// heldUnknown is what a copy takes that is about to be made again.
const heldUnknown = -1

// size estimates what a table's copy would take, and says why there can be none.
func (c *Chooser) size(ctx context.Context, s *replica.Survey, t *table, now time.Time) (err error) {
	oid := t.meta.OID
	if len(t.Needs) > 0 {
		if t.blocked = t.Needs[0].Reason; t.Needs[0].SQL != "" {
			t.blocked += "; " + t.Needs[0].SQL
		}
	}
	if r := c.refused[oid]; now.Before(r.until) {
		t.blocked = cmp.Or(t.blocked, r.why)
	} else {
		delete(c.refused, oid)
	}
	known, ok := c.samples[oid]
	if !ok || t.Server > 2*known.server || known.server > 2*t.Server {
		if known.memory, err = memoryOf(ctx, s, t.meta, t.blocked == "" && !t.fixed && t.held == 0); err != nil {
			return err
		}
		known.server = t.Server
		if known.memory.Method != byTypes { // what could not be read may be next time
			c.samples[oid] = known
		}
	}
	t.Memory = known.memory
	if t.held == heldUnknown {
		t.held = max(1, t.Memory.Bytes)
	}
	if t.Memory.Method == byTypes && t.blocked == "" && !t.fixed && t.held == 0 {
		t.blocked = "cannot be read: " + t.Memory.Detail
	}
	if t.held == 0 && !t.fixed {
		t.copyMS = copyStartMS + float64(t.Memory.Rows)/copyRowsPerSecond*1000
	}
	return nil
}

// statements are those that took most time.
func (c *Chooser) statements() *statements {
	all := &statements{}
	for _, text := range c.texts() {
		l := c.load[text]
		if len(all.list) < plannedMax && l.ms() > 0 {
			all.list = append(all.list, &statement{Query: text, Calls: int64(math.Ceil(l.calls)), TotalMS: l.ms(), MeanMS: l.serverMS, hereMS: l.hereMS})
		}
	}
	return all
}

// read reports whether a statement that would be answered here, wholly or in part, reads a table.
func (all *statements) read(meta *catalog.Table) bool {
	return slices.ContainsFunc(all.list, func(st *statement) bool {
		return slices.ContainsFunc(st.reads, func(t *catalog.Table) bool { return t.OID == meta.OID })
	})
}

// loadOf words what the statements take that would gain by a table.
func (all *statements) loadOf(t *table) string {
	ms := 0.0
	for _, st := range all.list {
		if st.GainMS > 0 && slices.ContainsFunc(st.reads, func(r *catalog.Table) bool { return r.OID == t.meta.OID }) {
			ms += st.TotalMS
		}
	}
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf("PostgreSQL takes %s for the statements that came lately, of which a copy saves %s", duration(ms), duration(t.Gain))
}

// supposedLarge is a catalog whose tables are too large to be left for their size.
func supposedLarge(cat *catalog.Catalog) *catalog.Catalog {
	out := *cat
	out.Tables = nil
	for _, meta := range cat.Tables {
		copied := *meta
		copied.Rows = max(copied.Rows, 1e6)
		out.Tables = append(out.Tables, &copied)
	}
	return &out
}
