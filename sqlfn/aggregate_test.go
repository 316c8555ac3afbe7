package sqlfn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgaccel/internal/pgserver"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// values are two of each kind, as SQL writes them.
var values = map[vector.Kind][2]string{
	vector.Bool: {"true", "false"}, vector.Int2: {"3", "-5"}, vector.Int4: {"3", "-5"}, vector.Int8: {"3", "-5"},
	vector.Numeric: {"1.5", "-2.25"}, vector.Date: {"2024-02-29", "1999-12-31"}, vector.Time: {"10:00", "23:59:59"},
	vector.Timestamp: {"2024-02-29 10:00", "1999-12-31"}, vector.TimestampTZ: {"2024-02-29 10:00+00", "1999-12-31 00:00+01"},
	vector.Float4: {"1.5", "-0.25"}, vector.Float8: {"1.5", "-0.25"}, vector.Text: {"a", "b"}, vector.Varchar: {"a", "b"}, vector.BPChar: {"a", "b"},
}

// TestAggregatesAreTheServers compares the table with a server: that there are such aggregates,
// the type of each result, that nulls are ignored, what no values give, and what DISTINCT changes.
func TestAggregatesAreTheServers(t *testing.T) {
	ctx := context.Background()
	server, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	conn, err := pgx.Connect(ctx, server.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, a := range Aggregates {
		takes := 0
		for _, name := range a.Names {
			kind := map[bool]string{false: "n", true: "o"}[a.OrderedSet()]
			var found bool
			if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_proc p JOIN pg_aggregate a ON a.aggfnoid = p.oid
				WHERE p.proname = $1 AND p.pronamespace = 'pg_catalog'::regnamespace AND a.aggkind = $2 AND (p.pronargs = 0) = $3)`,
				name, kind, a.Star).Scan(&found); err != nil || !found {
				t.Errorf("the server has no such aggregate %s, %v", name, err)
			}
			for k, v := range values {
				if want := a.Result(vector.TypeOf(k)); !a.Star && want.Kind != vector.Invalid {
					takes++
					compareAggregate(t, conn, a, name, k, v)
				}
			}
		}
		if takes == 0 && !a.Star {
			t.Errorf("%s takes no argument at all", a)
		}
	}
}

// compareAggregate compares what the table says of an aggregate of a kind with what the server
// answers.
func compareAggregate(t *testing.T, conn *pgx.Conn, a *Aggregate, name string, k vector.Kind, v [2]string) {
	t.Helper()
	call := func(modifier, rows string) string {
		f := fmt.Sprintf("%s(%s x::%s)", name, modifier, k)
		if a.OrderedSet() {
			f = fmt.Sprintf("%s(0.5) WITHIN GROUP (ORDER BY x::%s)", name, k)
		}
		return fmt.Sprintf("(SELECT %s FROM (VALUES %s) v(x))", f, rows)
	}
	some := fmt.Sprintf("('%s'), ('%s'), ('%s')", v[0], v[1], v[1])
	distinct := ""
	if a.Idempotent {
		distinct = "DISTINCT"
	}
	var oid uint32
	var ignoresNulls, nullOfNone, same bool
	sql := fmt.Sprintf("SELECT pg_typeof(%s)::oid, %s IS NOT DISTINCT FROM %s, %s IS NULL, %s IS NOT DISTINCT FROM %s",
		call("", some), call("", some), call("", some+", (NULL)"), call("", "(NULL)"), call("", some), call(distinct, some))
	if err := conn.QueryRow(context.Background(), sql).Scan(&oid, &ignoresNulls, &nullOfNone, &same); err != nil {
		t.Errorf("%s of %v: %v", name, k, err)
		return
	}
	if want := a.Result(vector.TypeOf(k)).Kind; sqltype.KindOf(oid) != want {
		t.Errorf("%s of %v is %v, the server says %v", name, k, want, sqltype.KindOf(oid))
	}
	if !ignoresNulls || nullOfNone == (a.State == AggregateCount) || !same {
		t.Errorf("%s of %v: nulls ignored %v, null of none %v, the same with %s %v", name, k, ignoresNulls, nullOfNone, distinct, same)
	}
}

// TestAggregatesFold: the order in which values come and groups are merged changes nothing, and
// Start is what nothing folds to.
func TestAggregatesFold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, a := range Aggregates {
		if (a.Fold != nil) != (a.State == AggregateFold) {
			t.Errorf("%s: Fold without its state, or the state without it", a)
		}
		if a.Fold == nil {
			continue
		}
		for _, k := range []vector.Kind{vector.Numeric, vector.Float4, vector.Float8, vector.Text, vector.Varchar, vector.BPChar} {
			if a.Result(vector.TypeOf(k)).Kind != vector.Invalid {
				t.Errorf("%s takes %v, which is not held as a word of its own", a, k)
			}
		}
		word := func() int64 { return int64(r.Uint64()) >> r.IntN(64) }
		for range 1000 {
			x, y, z := word(), word(), word()
			if f := a.Fold; f(x, y) != f(y, x) || f(f(x, y), z) != f(x, f(y, z)) || f(a.Start, x) != x || a.Idempotent && f(x, x) != x {
				t.Fatalf("%s of %d, %d and %d", a, x, y, z)
			}
		}
	}
}

// TestAggregateNamed: a name means one aggregate.
func TestAggregateNamed(t *testing.T) {
	for _, a := range Aggregates {
		for _, name := range a.Names {
			if got := AggregateNamed(name); (got == a) == a.Star || strings.ToLower(name) != name {
				t.Errorf("%s means %v, not %v", name, got, a)
			}
		}
	}
	if a := AggregateNamed("count(*)"); a != nil {
		t.Error(a)
	}
}
