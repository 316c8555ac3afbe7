package replica

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

func newFlag() *atomic.Bool { return new(atomic.Bool) }

// testEpoch is an epoch without a stream: good for copies. The store's catalog is
// read.
func testEpoch(t testing.TB, url string) (*epoch, *colstore.Store) {
	t.Helper()
	cfg, err := connConfig(url, "test")
	if err != nil {
		t.Fatal(err)
	}
	store := colstore.New(colstore.Options{})
	t.Cleanup(store.Close)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	e := &epoch{cfg: &Config{Store: store, Workers: 4, RecopyQuiet: time.Millisecond, Logger: log}, log: log, ctx: context.Background(),
		connCfg: cfg, copyConfig: &cfg.Copy().Config, copiers: newCopySlots(4, 1<<30), health: newHealth()}
	c := connectTo(t, url)
	cat, _, err := readCatalogOf(context.Background(), c, []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	store.SetCatalog(cat)
	return e, store
}

// slotsAreFree waits until the server has noticed that replicators have gone: until then
// their slots cannot be dropped or advanced.
func slotsAreFree(t testing.TB, c *pgx.Conn) {
	t.Helper()
	eventually(t, "slots are free", func() bool {
		return queryText(t, c, "SELECT count(*)::text FROM pg_replication_slots WHERE active AND database = current_database()") == "0"
	})
}

// readCatalogOf reads the tables that match the patterns, as of one snapshot, and
// what could change the meaning of a query over them. Refused tables are not in
// the catalog. conn must be outside of a transaction.
func readCatalogOf(ctx context.Context, conn *pgx.Conn, patternTexts []string) (*catalog.Catalog, []refusedTable, error) {
	p, err := parsePatterns(patternTexts)
	if err != nil {
		return nil, nil, err
	}
	return readCatalog(ctx, conn, p, nil)
}
