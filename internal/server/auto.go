package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/engine"
	"pgaccel/internal/advise"
	"pgaccel/replica"
)

// chooseEvery is the pause between two looks at which tables statements need.
const chooseEvery = time.Minute

// auto has tables of a database copied by what its statements need, where auto is among the patterns.
type auto struct {
	cancel context.CancelFunc
	done   chan struct{}
	failed string // run's: why the last look came to nothing

	mu       sync.Mutex
	patterns []string // nil where auto is not among them
	version  int      // of the configuration
	choices  []advise.Choice
}

func newAuto(patterns []string) *auto {
	a := &auto{done: make(chan struct{})}
	a.set(patterns)
	return a
}

// set begins a version of the configuration. The lock is held, or nobody else knows of a.
func (a *auto) set(patterns []string) {
	a.version++
	if a.patterns = nil; replica.HasAuto(patterns) {
		a.patterns = patterns
	} else {
		a.choices = nil
	}
}

// reload takes over patterns, and has auto choose anew: there may be more memory, too. A choice that is under way by the old ones is void.
func (a *auto) reload(r *replica.Replicator, patterns []string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := r.SetPatterns(patterns); err != nil {
		return err
	}
	a.set(patterns)
	return nil
}

func (a *auto) configured() (patterns []string, version int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.patterns, a.version
}

// list is what pgaccel.tables shows.
func (a *auto) list() (list []engine.Choice) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.choices {
		one := engine.Choice{OID: c.Table.OID, Name: c.Table.QualifiedName(), Take: c.Take, Why: c.Why}
		if c.Load != "" {
			one.Why += " (" + c.Load + ")"
		}
		list = append(list, one)
	}
	return list
}

// start begins to choose, once what the patterns name is copied.
func (a *auto) start(ctx context.Context, d *database, every time.Duration) {
	ctx, a.cancel = context.WithCancel(ctx)
	go func() {
		defer close(a.done)
		a.run(ctx, d, every)
	}()
}

func (a *auto) close() {
	a.cancel()
	<-a.done
}

func (a *auto) run(ctx context.Context, d *database, every time.Duration) {
	if d.waitReady(ctx) != nil {
		return
	}
	var c *advise.Chooser
	due, looked := false, 0 // the version that tables were chosen by last
	for ctx.Err() == nil {
		if patterns, version := a.configured(); patterns != nil {
			if c == nil {
				c = advise.NewChooser(d.cfg.Upstream, time.Now())
				if err := c.NoteServer(ctx); err != nil {
					d.log.Debug("pg_stat_statements is not read: tables are chosen by the statements that come", "error", err)
				}
			}
			if c.Note(time.Now(), executed(d.engine)) || version != looked {
				due = true
			}
			if due && a.choose(ctx, d, c, patterns, version) {
				due, looked = false, version
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

func executed(e *engine.Engine) (list []advise.Executions) {
	for _, st := range e.StatementStats() {
		list = append(list, advise.Executions(st))
	}
	return list
}

// choose has those tables copied that are worth it. done is false where it is to be tried again.
func (a *auto) choose(ctx context.Context, d *database, c *advise.Chooser, patterns []string, version int) (done bool) {
	held, limit, ok := d.held()
	if !ok {
		return false
	}
	choices, err := c.Choose(ctx, time.Now(), patterns, held, limit)
	if err != nil {
		if text := err.Error(); text != a.failed && ctx.Err() == nil {
			a.failed = text
			d.log.Warn("tables could not be chosen; those that are copied stay", "error", err)
		}
		return false
	}
	a.failed = ""
	var tables []*catalog.Table
	for _, one := range choices {
		if one.Take {
			tables = append(tables, one.Table)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.version != version {
		return false
	}
	a.log(d, choices)
	a.choices = choices
	d.replicator.Choose(tables)
	return true
}

// held lists what is copied, and says what memory the tables may take together that no pattern names; false while a copy is under way, whose memory
// is not known.
func (d *database) held() (list []advise.Held, limit int64, ok bool) {
	used, limit := d.store.Usage()
	limit -= used
	states := map[uint32]colstore.Status{}
	for _, st := range d.store.Statuses() {
		states[st.OID] = st
	}
	for _, t := range d.store.Catalog().Tables {
		st, there := states[t.OID]
		h := advise.Held{OID: t.OID, Bytes: st.Bytes, Fixed: !d.replicator.ByAuto(t)}
		switch {
		case !there || st.State == colstore.StateCopying:
			return nil, 0, false
		case st.State == colstore.StateRefused:
			h.Refused = st.Detail
		}
		if !h.Fixed {
			limit += h.Bytes
		}
		list = append(list, h)
	}
	return list, limit, true
}

// log tells of what is chosen and left that was not before. The lock is held.
func (a *auto) log(d *database, choices []advise.Choice) {
	before := map[uint32]advise.Choice{}
	for _, c := range a.choices {
		before[c.Table.OID] = c
	}
	for _, c := range choices {
		was, known := before[c.Table.OID]
		if delete(before, c.Table.OID); known && was.Take == c.Take && (c.Take || was.Why == c.Why) {
			continue
		}
		what, level := "auto leaves a table", slog.LevelInfo
		switch {
		case c.Take:
			what = "auto takes a table"
		case c.Why == advise.WhyTooSoon:
			level = slog.LevelDebug
		}
		d.log.Log(context.Background(), level, what, "table", c.Table.QualifiedName(), "why", c.Why, "load", c.Load, "bytes", c.Bytes)
	}
	for _, c := range before {
		if c.Take {
			d.log.Info("auto leaves a table", "table", c.Table.QualifiedName(), "why", "it is gone, or nothing reads it")
		}
	}
}
