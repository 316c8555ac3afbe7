package replica

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// manage copies tables when they are due, and follows the catalog.
func (e *epoch) manage(ctx context.Context, first []*table, h *holder) error {
	e.startBatch(first, h)
	if err := e.look(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	polled, pause := time.Now(), pollInterval
	var idleFor idleTimer
	for {
		now := time.Now()
		interval := pause
		if idleFor.idle(e.activity, &e.activity.look) {
			interval = max(pause, idleInterval)
		}
		wakeAt := polled.Add(interval)
		select { // a token: another batch may start
		case e.batches <- struct{}{}:
			batch, next := e.reg.begin(false)
			if <-e.batches; len(batch) > 0 {
				e.startBatch(batch, nil)
			} else if next.Before(wakeAt) {
				wakeAt = next
			}
		default:
		}
		timer.Reset(max(wakeAt.Sub(now), time.Millisecond))
		asked := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.copySoon:
		case lost := <-e.lost:
			if err := e.takeOut(ctx, lost); err != nil {
				return err
			}
			asked = true
		case <-e.poll:
			asked = true
			// Many sessions may see the same change at once.
			if err := sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		case <-e.activity.look.wakeup:
			continue
		case <-timer.C:
		}
		if !asked && time.Since(polled) < interval {
			continue
		}
		start := time.Now()
		if err := e.look(ctx); err != nil {
			return err
		}
		polled = time.Now()
		pause = max(pollInterval, 20*polled.Sub(start)) // a large catalog is looked at less often
	}
}

func (e *epoch) startBatch(batch []*table, h *holder) {
	if len(batch) == 0 {
		if h != nil {
			h.close()
		}
		return
	}
	e.batches <- struct{}{}
	e.copying.Add(1)
	go func() {
		defer e.copying.Done()
		e.copyBatch(e.ctx, batch, h)
		<-e.batches
		signal(e.copySoon)
	}()
}

// look compares the catalog, the publication and the running transactions with
// what is known.
func (e *epoch) look(ctx context.Context) error {
	now, err := currentSnapshot(ctx, e.control)
	if err != nil {
		return err
	}
	e.reg.near.Store(now.Xmax)
	e.reg.prune(min(now.Xmin, e.reg.oldest()))
	var syncNames string
	if err := e.control.QueryRow(ctx, "SELECT pg_catalog.current_setting('synchronous_standby_names')").Scan(&syncNames); err != nil {
		return err
	}
	e.stream.eager.Store(syncNames != "")
	if err := e.lookForPatterns(ctx); err != nil {
		return err
	}
	return e.readAndFollow(ctx, true)
}

// noMatch is said of a pattern.
const noMatch = "it matches no table of this database"

// lookForPatterns warns of new patterns that match nothing.
func (e *epoch) lookForPatterns(ctx context.Context) error {
	now := e.patterns.Load()
	if now == e.matched {
		return nil
	}
	missing, err := now.unmatched(ctx, e.control)
	if err != nil {
		return err
	}
	e.matched = now
	for _, text := range missing {
		if e.named.add("pattern " + text) {
			e.log.Warn("a pattern of --accelerate matches no table", "pattern", text, "database", e.database, "then", "a table of that name that is made later is copied")
		}
	}
	return nil
}

// readAndFollow reads the catalog and follows it. What it adds to the publication
// changes the fingerprints of those tables: then it reads again.
func (e *epoch) readAndFollow(ctx context.Context, late bool) error {
	for {
		cat, refused, err := readCatalog(ctx, e.control, *e.patterns.Load(), e.cfg.Store.Catalog())
		if err != nil {
			return err
		}
		// After the reading: a fingerprint that shows what somebody did to the publication
		// must not be taken for a harmless one.
		if err := e.publicationIs(ctx); err != nil {
			return err
		}
		if added, err := e.follow(ctx, cat, refused, late); err != nil || !added {
			return err
		}
	}
}

// follow brings registry, publication and store in line with the catalog. late
// says that the slot exists already. added says that tables were published.
func (e *epoch) follow(ctx context.Context, cat *catalog.Catalog, refused []refusedTable, late bool) (added bool, err error) {
	isNow := map[uint32]*catalog.Table{}
	for i, meta := range cat.Tables {
		cat.Tables[i] = e.reg.meta(meta)
		isNow[meta.OID] = cat.Tables[i]
	}
	notNow := map[uint32]refusedTable{}
	for _, f := range refused {
		notNow[f.Table.OID] = f
	}
	// Tables that are gone, or must not be published any more: those first, because
	// their UPDATEs fail while they are.
	for _, oid := range e.reg.missing(isNow) {
		if err := e.dropTable(ctx, oid); err != nil {
			return false, err
		}
		if _, still := notNow[oid]; !still {
			e.cfg.Store.Remove(oid)
		}
	}
	for oid, f := range e.refusals {
		_, still := notNow[oid]
		if meta := isNow[oid]; !still && (meta == nil || f.retry.IsZero() || meta.Fingerprint != f.fingerprint || time.Now().After(f.retry)) {
			delete(e.refusals, oid)
			if meta == nil {
				e.cfg.Store.Remove(oid)
			}
		}
	}
	// Those that went while no stream watched: this epoch has never known them.
	for _, st := range e.cfg.Store.Statuses() {
		if _, still := notNow[st.OID]; !still && isNow[st.OID] == nil {
			e.cfg.Store.Remove(st.OID)
		}
	}
	for oid, f := range notNow {
		if e.refusals[oid].reason != f.Reason {
			detail := f.Reason
			if f.SQL != "" {
				detail += "; " + f.SQL
			}
			level := slog.LevelWarn
			if IsNoTable(f.Reason) { // nothing to remedy: a pattern covers it
				level = slog.LevelDebug
			}
			e.log.Log(ctx, level, "table refused", "table", f.Table.QualifiedName(), "reason", f.Reason, "remedy", f.SQL)
			e.cfg.Store.SetState(f.Table, colstore.StateRefused, detail)
			e.refusals[oid] = refusal{reason: f.Reason, fingerprint: f.Table.Fingerprint}
		}
	}
	var add []*catalog.Table
	for _, meta := range cat.Tables {
		if _, no := e.refusals[meta.OID]; no || e.reg.redefined(meta) {
			continue
		}
		if err := e.dropTable(ctx, meta.OID); err != nil { // it had other partitions
			return false, err
		}
		add = append(add, meta)
	}
	if err := e.publish(ctx, add, late); err != nil {
		return false, err
	}
	if !sameCatalog(e.cfg.Store.Catalog(), cat) {
		e.cfg.Store.SetCatalog(cat)
	}
	e.reg.complete()
	return len(add) > 0, nil
}

// IsNoTable says of the reason for which a relation is refused, the detail of its state, that it is not a table.
func IsNoTable(reason string) bool {
	return reason == refusedView || reason == refusedMaterialized || reason == refusedForeign
}

// takeOut takes tables out of the publication whose UPDATEs fail while they are in it.
func (e *epoch) takeOut(ctx context.Context, relations []uint32) error {
	for _, oid := range e.reg.tablesOf(relations) {
		if err := e.dropTable(ctx, oid); err != nil {
			return err
		}
	}
	return nil
}

// sameCatalog reports whether plans made with a hold with b, too. Sizes may differ.
func sameCatalog(a, b *catalog.Catalog) bool {
	if len(a.Tables) != len(b.Tables) || a.SystemID != b.SystemID || a.ServerVersion != b.ServerVersion || a.ModeSet != b.ModeSet || a.Operators != b.Operators || !maps.Equal(a.Shadowed, b.Shadowed) {
		return false
	}
	for i, x := range a.Tables {
		y := b.Tables[i]
		if !unchanged(x, y) || len(x.Columns) != len(y.Columns) || len(x.Indexes) != len(y.Indexes) || !sameParts(x, y) ||
			x.Rows > 2*y.Rows+1000 || y.Rows > 2*x.Rows+1000 {
			return false
		}
		for j := range x.Columns {
			if x.Columns[j] != y.Columns[j] {
				return false
			}
		}
		for j := range x.Indexes {
			if x.Indexes[j].Name != y.Indexes[j].Name || x.Indexes[j].Unique != y.Indexes[j].Unique {
				return false
			}
		}
	}
	return slices.EqualFunc(a.Views, b.Views, func(x, y *catalog.Table) bool { return unchanged(x, y) && *x.View == *y.View })
}

func sameParts(a, b *catalog.Table) bool {
	return (a.Parts == nil) == (b.Parts == nil) && slices.Equal(parts(a), parts(b))
}
