package replica

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/vector"
)

func TestReadCatalog(t *testing.T) {
	c := connectTo(t, database(t))
	mustExec(t, c, `
		CREATE SCHEMA mart;
		CREATE COLLATION mart.german (provider = icu, locale = 'de');
		CREATE COLLATION mart.ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		CREATE TABLE mart.fact (id bigint PRIMARY KEY, gone int, b bool, i2 smallint NOT NULL, i4 int, f4 real, f8 float8, d date, tm time,
			ts timestamp, tz timestamptz(3), price numeric(12,2), n18 numeric(18,18), n19 numeric(19,0), neg numeric(5,-2), n numeric,
			t text, vc varchar(9) COLLATE "C", ch char(3), bp bpchar, ge text COLLATE mart.german, ci text COLLATE mart.ci, px text COLLATE "POSIX",
			j json, jb jsonb, gen int GENERATED ALWAYS AS (i2 + 1) STORED, "Odd ""name" int);
		ALTER TABLE mart.fact DROP COLUMN gone;
		CREATE UNIQUE INDEX fact_u1 ON mart.fact (i2, i4);
		CREATE UNIQUE INDEX fact_u2 ON mart.fact (i2) INCLUDE (i4);
		CREATE UNIQUE INDEX fact_u3 ON mart.fact (i2) WHERE i4 > 0;
		CREATE UNIQUE INDEX fact_u4 ON mart.fact ((i2 + 1));
		CREATE UNIQUE INDEX fact_u5 ON mart.fact (i4) NULLS NOT DISTINCT;
		CREATE INDEX fact_i6 ON mart.fact (i4, i2);
		ALTER TABLE mart.fact ADD CONSTRAINT fact_u7 UNIQUE (i2, id) DEFERRABLE;
		CREATE TABLE mart.nokey (a int);
		CREATE TABLE mart.ukey (a int NOT NULL UNIQUE);
		CREATE TABLE mart.deferred (a int PRIMARY KEY DEFERRABLE);
		CREATE TABLE mart."full" (a int); ALTER TABLE mart."full" REPLICA IDENTITY FULL;
		CREATE TABLE mart.none (a int PRIMARY KEY); ALTER TABLE mart.none REPLICA IDENTITY NOTHING;
		CREATE UNLOGGED TABLE mart.unlogged (a int PRIMARY KEY);
		CREATE TABLE mart.parent (a int PRIMARY KEY); CREATE TABLE mart.child (PRIMARY KEY (a)) INHERITS (mart.parent);
		CREATE TABLE mart.parts (a int PRIMARY KEY) PARTITION BY RANGE (a); CREATE TABLE mart.part1 PARTITION OF mart.parts FOR VALUES FROM (0) TO (9);
		CREATE VIEW mart.v AS SELECT 1 AS a; CREATE MATERIALIZED VIEW mart.mv AS SELECT 1 AS a;
		CREATE TYPE mart.pair AS (x text, y int); CREATE TABLE mart.opaque (j mart.pair PRIMARY KEY);
		CREATE TABLE other (a int PRIMARY KEY);
		CREATE FUNCTION mart."Lower"(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE OPERATOR mart.=== (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq);`)
	cat, refused, err := readCatalogOf(context.Background(), c, []string{"mart.*"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tab := range cat.Tables {
		names = append(names, tab.QualifiedName())
	}
	slices.Sort(names)
	if want := []string{"mart.child", "mart.fact", "mart.full", "mart.parts"}; !slices.Equal(names, want) {
		t.Errorf("tables %v, want %v", names, want)
	}
	reasons := map[string]string{}
	for _, r := range refused {
		reasons[r.Table.Name] = r.Reason + "|" + r.SQL
	}
	for name, want := range map[string]string{
		"nokey": `no replica identity|ALTER TABLE "mart"."nokey" ADD PRIMARY KEY`, "ukey": `no replica identity|ALTER TABLE "mart"."ukey" REPLICA IDENTITY USING INDEX "ukey_a_key"`,
		"deferred": "no replica identity: its primary key is deferrable|", "none": "no replica identity: it is set to NOTHING|", "unlogged": "unlogged table",
		"parent": "it has, or had, inheritance children", "v": "view", "mv": "materialized view", "opaque": "no column that can be copied: j is type mart.pair",
	} {
		if !strings.HasPrefix(reasons[name], want) {
			t.Errorf("%s: refused with %q, want %q", name, reasons[name], want)
		}
		delete(reasons, name)
	}
	if len(reasons) != 0 {
		t.Errorf("also refused: %v", reasons)
	}

	fact := cat.Tables[slices.IndexFunc(cat.Tables, func(t *catalog.Table) bool { return t.Name == "fact" })]
	for name, want := range map[string]struct {
		kind        vector.Kind
		scale       int16
		c           bool
		unsupported string
	}{
		"id": {kind: vector.Int8}, "b": {kind: vector.Bool}, "i2": {kind: vector.Int2}, "i4": {kind: vector.Int4}, "f4": {kind: vector.Float4}, "f8": {kind: vector.Float8},
		"d": {kind: vector.Date}, "tm": {kind: vector.Time}, "ts": {kind: vector.Timestamp}, "tz": {kind: vector.TimestampTZ},
		"price": {kind: vector.Numeric, scale: 2}, "n18": {kind: vector.Numeric, scale: 18}, "n19": {kind: vector.Numeric, scale: vector.VaryingScale},
		"neg": {kind: vector.Numeric, scale: vector.VaryingScale}, "n": {kind: vector.Numeric, scale: vector.VaryingScale},
		"t": {kind: vector.Text, c: true}, "vc": {kind: vector.Varchar, c: true}, "ch": {kind: vector.BPChar, c: true}, "bp": {kind: vector.BPChar, unsupported: "char without declared length"},
		"ge": {kind: vector.Text}, "ci": {kind: vector.Text}, "px": {kind: vector.Text, c: true},
		"j": {kind: vector.JSON}, "jb": {kind: vector.JSONB}, "gen": {kind: vector.Int4, unsupported: "generated column"}, `Odd "name`: {kind: vector.Int4},
	} {
		i := fact.Column(name)
		if i < 0 {
			t.Errorf("column %s is missing", name)
			continue
		}
		got := fact.Columns[i]
		if got.Type.Kind != want.kind || got.Unsupported != want.unsupported || want.unsupported == "" && (got.Type.Scale != want.scale || got.Type.Collation.C != want.c) {
			t.Errorf("column %s: %+v, want %+v", name, got, want)
		}
	}
	if fact.Column("gone") >= 0 || fact.Columns[fact.Column("b")].AttNum != 3 {
		t.Error("the dropped column is there, or moved others")
	}
	unique := map[string]bool{}
	for _, ix := range fact.Indexes {
		unique[ix.Name] = ix.Unique
	}
	for name, want := range map[string]bool{"fact_pkey": true, "fact_u1": false, "fact_u2": true, "fact_u5": true, "fact_i6": false, "fact_u7": false} {
		if got, ok := unique[name]; !ok || got != want {
			t.Errorf("index %s: unique %v (listed %v), want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"fact_u3", "fact_u4"} {
		if _, ok := unique[name]; ok {
			t.Errorf("partial or expression index %s is listed", name)
		}
	}
	i := slices.IndexFunc(fact.Indexes, func(ix catalog.Index) bool { return ix.Name == "fact_u2" })
	if !slices.Equal(fact.Indexes[i].Columns, []int{fact.Column("i2")}) {
		t.Errorf("INCLUDE columns are in the key: %v", fact.Indexes[i].Columns)
	}
	for name, want := range map[string]bool{"lower": true, "===": true, "sum": false, "upper": false, "=": false, "::": false} {
		if cat.Shadowed[name] != want {
			t.Errorf("shadowed %q: %v", name, cat.Shadowed[name])
		}
	}
	if cat.ServerVersion < 140000 || len(cat.SystemID) < 10 || cat.WALSegmentSize != 16<<20 || cat.WALBlockSize != 8192 {
		t.Errorf("server: %d %q %d %d", cat.ServerVersion, cat.SystemID, cat.WALSegmentSize, cat.WALBlockSize)
	}
}

func TestFingerprintChanges(t *testing.T) {
	c := connectTo(t, database(t))
	mustExec(t, c, "CREATE TABLE f (id int PRIMARY KEY, a int, b text); INSERT INTO f SELECT g, g, g FROM generate_series(1, 1000) g")
	oid := queryText(t, c, "SELECT 'f'::regclass::oid::text")
	read := func() string { return queryText(t, c, "SELECT "+catalog.FingerprintSQL(oid)) }
	last := read()
	if strings.Count(last, ":") != 4 {
		t.Fatalf("fingerprint %q", last)
	}
	for _, sql := range []string{"INSERT INTO f VALUES (0)", "UPDATE f SET a = 2", "VACUUM f", "ANALYZE f", "CREATE INDEX ON f (a)", "REINDEX TABLE f", "COMMENT ON TABLE f IS 'x'"} {
		mustExec(t, c, sql)
		if now := read(); now != last {
			t.Errorf("%s changed the fingerprint from %s to %s", sql, last, now)
		}
	}
	for _, sql := range []string{"ALTER TABLE f ALTER a TYPE int USING a + 100", "ALTER TABLE f RENAME b TO bb", "ALTER TABLE f ADD c int", "ALTER TABLE f DROP c",
		"TRUNCATE f", "ALTER TABLE f ALTER a SET NOT NULL", "VACUUM FULL f", "ALTER TABLE f ENABLE ROW LEVEL SECURITY", "GRANT SELECT ON f TO public",
		"ALTER TABLE f RENAME TO ff", "CREATE TABLE child () INHERITS (ff)",
		"CREATE PUBLICATION one FOR TABLE ff", "CREATE PUBLICATION two FOR TABLE ff", "ALTER PUBLICATION one SET (publish = 'insert')", "ALTER PUBLICATION one DROP TABLE ff", "DROP PUBLICATION two"} {
		mustExec(t, c, sql)
		now := read()
		if now == last {
			t.Errorf("%s left the fingerprint as it was: %s", sql, now)
		}
		last = now
	}
	mustExec(t, c, "DROP TABLE ff CASCADE")
	if got := queryText(t, c, "SELECT coalesce("+catalog.FingerprintSQL(oid)+", 'none')"); got != "none" {
		t.Errorf("a dropped table's fingerprint is %q", got)
	}
}
