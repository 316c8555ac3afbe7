package replica

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// TestCopySessionsFollowTheCores: a copy's sessions are as many as the same COPYs into
// nothing can use.
func TestCopySessionsFollowTheCores(t *testing.T) {
	defer func(was int) { cores = was }(cores)
	// What the program makes of GOMAXPROCS later (internal/processors) does not count.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(5))
	for n, want := range map[int]int{1: 1, 2: 2, 16: 16, 128: copySessionsMax} {
		cores = n
		r, err := Start(context.Background(), Config{Upstream: "host=127.0.0.1 port=1", Accelerate: []string{"*"}, Store: colstore.New(colstore.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		if r.cfg.Workers != want {
			t.Errorf("%d sessions on %d cores, want %d", r.cfg.Workers, n, want)
		}
		r.Close()
		r.cfg.Store.Close()
	}
}

// TestManySessionsCopyWhatOneDoes compares copies of many sessions with those of one,
// byte for byte, at sizes about those of segments and of ranges of pages.
func TestManySessionsCopyWhatOneDoes(t *testing.T) {
	address := database(t)
	c := connectTo(t, address)
	const perPage = 2 // rows of 4000 bytes that stay in line
	mustExec(t, c, `CREATE TYPE pair AS (x text, y int); CREATE TABLE parted (id int, n numeric(12,2), s text, u pair, filler text, PRIMARY KEY (id, u)) PARTITION BY RANGE (id)`)
	sizes := []int{0, 1, 1023, 1024, 1025, rangePagesMin * perPage, splitPages*perPage - 1, 2*splitPages*perPage + 1, 3000}
	for i, n := range sizes {
		mustExec(t, c, fmt.Sprintf(`CREATE TABLE s%d PARTITION OF parted FOR VALUES FROM (%d) TO (%d); ALTER TABLE s%d ALTER filler SET STORAGE PLAIN, ALTER filler SET COMPRESSION DEFAULT;
			INSERT INTO s%d SELECT %d + g, CASE WHEN g %% 7 > 0 THEN g * 1.01 END, CASE g %% 5 WHEN 0 THEN NULL WHEN 1 THEN 'text ' || g ELSE 'value ' || g %% 30 END, ROW(md5(g::text), 1)::pair, rpad(g::text, 3900) FROM generate_series(1, %d) g`,
			i, i*100_000, (i+1)*100_000, i, i, i*100_000, n))
	}
	e, _ := testEpoch(t, address)
	e.cfg.Store = colstore.New(colstore.Options{SegmentRows: 1024})
	defer e.cfg.Store.Close()
	cat, _, err := readCatalogOf(context.Background(), c, []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	meta := cat.Lookup("public", "parted")[0]
	// Leaf by leaf, and all of them as one table.
	metas := []*catalog.Table{meta}
	for _, p := range meta.Parts {
		one := *meta
		one.Parts = []catalog.Part{p}
		metas = append(metas, &one)
	}
	for _, meta := range metas {
		var want []string
		for _, sessions := range []int{1, 2, 16} {
			e.cfg.Workers, e.copiers = sessions, newCopySlots(sessions, 1<<30)
			h, err := e.hold(context.Background(), "")
			if err != nil {
				t.Fatal(err)
			}
			if h.most != sessions {
				t.Fatalf("%d sessions may copy, want %d", h.most, sessions)
			}
			v, err := e.copyTable(context.Background(), h, meta, newFlag(), func() {})
			h.close()
			if err != nil {
				t.Fatal(err)
			}
			got := contents(v)
			slices.Sort(got)
			if sessions == 1 {
				want = got
			} else if !slices.Equal(got, want) {
				t.Errorf("%d sessions copied %d rows that are not the %d of one: %s", sessions, len(got), len(want), difference(got, want))
			}
			if n := queryText(t, c, fmt.Sprintf("SELECT count(*)::text FROM parted WHERE tableoid = ANY('{%s}'::oid[])", oidList(meta))); n != fmt.Sprint(len(got)) {
				t.Errorf("%d rows of %s copied", len(got), n)
			}
			v.Release()
		}
	}
}

func oidList(meta *catalog.Table) (s string) {
	for i, p := range meta.Parts {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprint(p.OID)
	}
	return s
}

// TestCopiesLeaveConnectionsToClients: copies take a quarter of what is free by the
// narrowest limit; where even those are gone, fewer sessions copy all the same.
func TestCopiesLeaveConnectionsToClients(t *testing.T) {
	address := database(t)
	c := connectTo(t, address)
	name := "few" + c.Config().Database
	mustExec(t, c, "CREATE ROLE "+name+" LOGIN REPLICATION CONNECTION LIMIT 14")
	defer mustExec(t, c, "DROP OWNED BY "+name+"; DROP ROLE "+name)
	mustExec(t, c, `CREATE TABLE a (id int PRIMARY KEY, filler text); ALTER TABLE a ALTER filler SET STORAGE PLAIN;
		INSERT INTO a SELECT g, rpad(g::text, 3900) FROM generate_series(1, 8000) g; GRANT SELECT ON a TO `+name)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(name)
	e, store := testEpoch(t, address)
	if e.connCfg, err = connConfig(u.String(), "test"); err != nil {
		t.Fatal(err)
	}
	e.copyConfig = &e.connCfg.Copy().Config
	e.cfg.Workers, e.copiers = 16, newCopySlots(16, 1<<30)
	h, err := e.hold(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	// The holder's two are there.
	if want := (14 - 2) / connectionShare; h.most != want {
		t.Errorf("%d sessions may copy where the role has 12 left, want %d", h.most, want)
	}
	for limit, want := range map[string]int{"ROLE " + name + " CONNECTION LIMIT 5": 1, "ROLE " + name + " CONNECTION LIMIT -1": 16,
		"DATABASE " + c.Config().Database + " CONNECTION LIMIT 13": (13 - 4) / connectionShare /* c's, testEpoch's */, "ROLE " + name + " SUPERUSER": 16} {
		mustExec(t, c, "ALTER "+limit)
		if n, err := connectionsFor(context.Background(), h.plain, 16); err != nil || n != want {
			t.Errorf("%s: %d sessions may copy, want %d (%v)", limit, n, want, err)
		}
		mustExec(t, c, "ALTER DATABASE "+c.Config().Database+" CONNECTION LIMIT -1; ALTER ROLE "+name+" NOSUPERUSER CONNECTION LIMIT 14")
	}
	// Others have taken the connections since: one session, or two, for eight.
	mustExec(t, c, "ALTER ROLE "+name+" CONNECTION LIMIT 3")
	h.most, h.connections = 8, newCopySlots(8, 1).sessions
	leaves, err := h.pages(context.Background(), leavesOf(store.Catalog().Tables[0]))
	if err != nil || newPageQueue(leaves, 8).sessions < 4 {
		t.Fatalf("the table is too small: %+v, %v", leaves, err)
	}
	loader := store.NewLoader(store.Catalog().Tables[0])
	defer loader.Abort()
	sessions, err := e.copyRows(context.Background(), h, store.Catalog().Tables[0], loader, new(atomic.Int64), newFlag(), func() {})
	if err != nil || sessions < 1 || sessions >= 8 { // one at a time: another may come when it has gone
		t.Errorf("%d sessions copied, of 8, where one connection was left: %v", sessions, err)
	}
	v, err := loader.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if v.Rows != 8000 {
		t.Errorf("%d rows copied of 8000", v.Rows)
	}
	v.Release()
	mustExec(t, c, "ALTER ROLE "+name+" CONNECTION LIMIT 2")
	if _, err := e.copyTable(context.Background(), h, store.Catalog().Tables[0], newFlag(), func() {}); !tooManyConnections(err) {
		t.Errorf("a copy without a connection ends with %v", err)
	}
}

// TestSmallTablesAreReadyFirst: a large table does not take the sessions of small ones.
func TestSmallTablesAreReadyFirst(t *testing.T) {
	address := database(t)
	c := connectTo(t, address)
	for i := range 6 {
		mustExec(t, c, fmt.Sprintf("CREATE TABLE small%d (id int PRIMARY KEY); INSERT INTO small%d SELECT generate_series(1, 10)", i, i))
	}
	mustExec(t, c, `CREATE TABLE large (id int PRIMARY KEY, filler text); ALTER TABLE large ALTER filler SET STORAGE PLAIN;
		INSERT INTO large SELECT g, rpad(g::text, 3900) FROM generate_series(1, 20000) g`)
	mustExec(t, c, "ANALYZE")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	done := make(chan string, 7)
	r := start(t, address, Config{Store: store, Workers: 2, Progress: func(p Progress) {
		if p.Done {
			done <- p.Table
		}
	}})
	defer r.Close()
	ready(t, r)
	close(done)
	var order []string
	for name := range done {
		order = append(order, name)
	}
	if i := slices.Index(order, "public.large"); len(order) != 7 || i < 5 { // one may end beside it
		t.Errorf("copied in the order %q", order)
	}
}
