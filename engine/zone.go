package engine

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"

	"pgaccel/plan"
	"pgaccel/sqltype"
)

type zoneKey struct{ server, name string }

// zonesMax is how many zones are kept. A session can set as many as it likes.
const zonesMax = 64

// Zone returns the rules of a session's time zone where they are known already, else nil.
func (e *Engine) Zone(timeZone string) *sqltype.Zone {
	z, err := e.zone(ended, timeZone)
	if err != nil {
		return nil
	}
	return z
}

// zone returns the rules of a time zone.
func (e *Engine) zone(ctx context.Context, name string) (*sqltype.Zone, error) {
	if e.opt.Look == nil {
		return nil, fmt.Errorf("no session to ask with")
	}
	return e.zones.get(ctx, zoneKey{e.store.Server(), name}, func() (*sqltype.Zone, error) {
		return sqltype.AskZone(zoneServer{e, name})
	})
}

// zonesOf returns the time zones that a statement is executed in, the session's where inSession is true.
func (e *Engine) zonesOf(ctx context.Context, d *plan.Deps, inSession bool, timeZone string) (zs plan.Zones, f *plan.Forward) {
	ask := func(name string) *sqltype.Zone {
		z, err := e.zone(ctx, name)
		if err != nil {
			f = forward(plan.ReasonTimeZone, "the server's rules of "+name+" are not known: "+err.Error())
		}
		return z
	}
	zs.Used = d.SessionZone || len(d.Zones) > 0
	if inSession && !sqltype.IsUTC(timeZone) {
		zs.Session = ask(timeZone)
	}
	for _, name := range d.Zones {
		if zs.Named == nil {
			zs.Named = map[string]*sqltype.Zone{}
		}
		if zs.Named[name] = nil; !sqltype.NamesUTC(name) {
			zs.Named[name] = ask(name)
		}
	}
	return zs, f
}

// zoneServer asks about a zone on the session of Look. It is that session's TimeZone for the question alone.
type zoneServer struct {
	e    *Engine
	name string
}

// zoneSQL asks for a value of each element of an array of seconds since 2000-01-01, u.e, in a time zone. That the
// array depends on what set_config returns has the zone set first.
func zoneSQL(value string) string {
	return "WITH z AS MATERIALIZED (SELECT pg_catalog.set_config('TimeZone', $1, true) AS name) SELECT " + value + " FROM z, LATERAL " +
		"pg_catalog.unnest(CASE WHEN z.name IS NULL THEN NULL ELSE $2::pg_catalog.int8[] END) WITH ORDINALITY AS u(e, n) ORDER BY u.n"
}

var (
	offsetsSQL = zoneSQL("pg_catalog.date_part('timezone', pg_catalog.to_timestamp((u.e OPERATOR(pg_catalog.+) 946684800)::pg_catalog.float8))::pg_catalog.int8")
	momentsSQL = zoneSQL("pg_catalog.date_part('epoch', ('2000-01-01'::pg_catalog.timestamp OPERATOR(pg_catalog.+) (u.e::pg_catalog.float8 OPERATOR(pg_catalog.*) '1 second'::pg_catalog.interval))::pg_catalog.timestamptz)" +
		"::pg_catalog.int8 OPERATOR(pg_catalog.-) 946684800")
)

// Offsets implements sqltype.ZoneServer.
func (s zoneServer) Offsets(utc []int64) ([]int64, error) { return s.ask(offsetsSQL, utc) }

// UTC implements sqltype.ZoneServer.
func (s zoneServer) UTC(local []int64) ([]int64, error) { return s.ask(momentsSQL, local) }

func (s zoneServer) ask(sql string, times []int64) ([]int64, error) {
	list, err := pgtype.NewMap().Encode(pgtype.Int8ArrayOID, pgtype.TextFormatCode, times, nil)
	if err != nil {
		return nil, err
	}
	rows, err := s.e.opt.Look(context.Background(), sql, []string{s.name, string(list)})
	if err != nil {
		return nil, err
	}
	out := make([]int64, len(rows))
	for i, row := range rows {
		if row[0] == nil {
			return nil, fmt.Errorf("time %d has no value", times[i])
		}
		if out[i], err = strconv.ParseInt(*row[0], 10, 64); err != nil {
			return nil, err
		}
	}
	if len(out) != len(times) {
		return nil, fmt.Errorf("%d values came back of %d", len(out), len(times))
	}
	return out, nil
}
