package replica

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/semaphore"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// holder keeps one snapshot alive on a session of its own and lends it, by name, to
// the sessions that copy. It is safe for several goroutines.
type holder struct {
	snapshot colstore.Snapshot
	name     string // for SET TRANSACTION SNAPSHOT
	// most is how many sessions may use it at once: connections has a place for each.
	most        int
	connections *semaphore.Weighted

	mu    sync.Mutex
	conn  *pgx.Conn // in the transaction that holds the snapshot: an error there ends it
	plain *pgx.Conn // outside of it
}

// hold opens a session and takes a snapshot: the exported one that imported names,
// or a new one where that is empty.
func (e *epoch) hold(ctx context.Context, imported string) (*holder, error) {
	conn, err := e.connect(ctx)
	if err != nil {
		return nil, err
	}
	h := &holder{conn: conn}
	if err = h.begin(ctx, imported); err == nil {
		h.plain, err = e.connect(ctx)
	}
	if err == nil {
		h.most, err = connectionsFor(ctx, h.plain, e.cfg.Workers)
		h.connections = semaphore.NewWeighted(int64(h.most))
	}
	if err != nil {
		h.close()
		return nil, fmt.Errorf("taking a snapshot: %w", err)
	}
	return h, nil
}

func (h *holder) begin(ctx context.Context, imported string) error {
	if _, err := h.conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return err
	}
	if imported != "" {
		if _, err := h.conn.Exec(ctx, "SET TRANSACTION SNAPSHOT "+catalog.QuoteLiteral(imported)); err != nil {
			return err
		}
	}
	var text string
	// The snapshot that a slot exports may have its xmax below its xmin; all below xmin
	// is visible all the same (XidInMVCCSnapshot).
	if err := h.conn.QueryRow(ctx, `SELECT pg_catalog.concat_ws(':', pg_catalog.pg_snapshot_xmin(s), greatest(pg_catalog.pg_snapshot_xmin(s)::text::bigint, pg_catalog.pg_snapshot_xmax(s)::text::bigint),
		pg_catalog.split_part(s::text, ':', 3)), pg_catalog.pg_export_snapshot() FROM pg_catalog.pg_current_snapshot() s`).Scan(&text, &h.name); err != nil {
		return err
	}
	var err error
	h.snapshot, err = colstore.ParseSnapshot(text)
	return err
}

// settle waits until nothing that the snapshot calls committed is still in
// progress by the server's own books. A snapshot from logical decoding may see a
// commit whose status is not written yet; whoever reads its rows then takes them
// for aborted, and marks them so for good (pgsql-hackers, "Race conditions in
// logical decoding", 2026-01-19). It is the state of an instant.
func (h *holder) settle(ctx context.Context, other *pgx.Conn) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		live, err := currentSnapshot(ctx, other)
		if err != nil {
			return err
		}
		settled := true
		for _, xid := range live.Xip {
			settled = settled && !h.snapshot.Sees(xid)
		}
		if settled && live.Xmax >= h.snapshot.Xmax {
			return nil
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// definitionIs checks that the table's definition is meta's as the snapshot sees
// it; then it is so as of now.
func (h *holder) definitionIs(ctx context.Context, meta *catalog.Table) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return checkFingerprint(ctx, h.conn, meta)
}

// pages returns the sizes of relations in pages, as of now; 0 for those that are gone.
func (h *holder) pages(ctx context.Context, leaves []catalog.Part) ([]leafPages, error) {
	oids := make([]uint32, len(leaves))
	for i, l := range leaves {
		oids[i] = l.OID
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	rows, err := h.plain.Query(ctx, `SELECT coalesce(pg_catalog.pg_relation_size(t.oid::pg_catalog.regclass), 0) / pg_catalog.current_setting('block_size')::int
		FROM pg_catalog.unnest($1::pg_catalog.oid[]) WITH ORDINALITY t(oid, i) ORDER BY t.i`, oids)
	if err != nil {
		return nil, err
	}
	pages, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	all := make([]leafPages, len(leaves))
	for i, n := range pages {
		all[i] = leafPages{Part: leaves[i], pages: n}
	}
	return all, nil
}

// finish asks for what a copied table still lacks: the order of its texts, and
// whether its definition has lasted.
func (h *holder) finish(ctx context.Context, t *colstore.Table) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := rankTexts(ctx, h.plain, t); err != nil {
		return err
	}
	t.Snapshot = h.snapshot
	return checkFingerprint(ctx, h.plain, t.Meta)
}

// checkFingerprint fails with errDefinition where the definition of the table or of
// one of its leaves, as conn sees it, is not meta's.
func checkFingerprint(ctx context.Context, conn *pgx.Conn, meta *catalog.Table) error {
	oids, want := []uint32{meta.OID}, []catalog.Fingerprint{meta.Fingerprint}
	for _, p := range meta.Parts {
		oids, want = append(oids, p.OID), append(want, p.Fingerprint)
	}
	rows, err := conn.Query(ctx, "SELECT coalesce("+catalog.FingerprintSQL("t.oid")+", '') FROM pg_catalog.unnest($1::pg_catalog.oid[]) WITH ORDINALITY t(oid, i) ORDER BY t.i", oids)
	if err != nil {
		return err
	}
	have, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for i := range have {
		if catalog.Fingerprint(have[i]) != want[i] {
			return errDefinition
		}
	}
	return nil
}

func (h *holder) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	h.conn.Close(ctx)
	if h.plain != nil {
		h.plain.Close(ctx)
	}
}

// currentSnapshot returns conn's idea of what is visible now. conn must not be in
// a REPEATABLE READ transaction.
func currentSnapshot(ctx context.Context, conn *pgx.Conn) (colstore.Snapshot, error) {
	var text string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_current_snapshot()::text").Scan(&text); err != nil {
		return colstore.Snapshot{}, err
	}
	return colstore.ParseSnapshot(text)
}

// drain waits until every transaction that is writing now has ended.
func drain(ctx context.Context, conn *pgx.Conn) error {
	before, err := currentSnapshot(ctx, conn)
	if err != nil {
		return err
	}
	for wait := time.Millisecond; len(before.Xip) > 0; wait = min(2*wait, 200*time.Millisecond) {
		now, err := currentSnapshot(ctx, conn)
		if err != nil {
			return err
		}
		if now.Xmin > before.Xip[len(before.Xip)-1] {
			return nil
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits for d, or fails with ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
