package engine

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jackc/pgx/v5/pgtype"

	"pgaccel/plan"
	"pgaccel/sqltype"
)

// zones are the rules of time zones, as a server has them: they are asked for when the first statement
// needs them, in some tenths of a second. A server may get others while it runs: later they are asked for again.
type zones struct {
	mu   sync.Mutex
	list *lru.Cache[zoneKey, *zoneRules]
}

type zoneKey struct{ server, name string }

// zoneRules are those of one zone, once ready is closed.
type zoneRules struct {
	ready chan struct{}
	zone  *sqltype.Zone
	err   error
	asked time.Time
	again bool // they are being asked for again
}

// zonesMax is how many zones are kept. A session can set as many as it likes.
const zonesMax = 64

// zoneRetry is how long an error is kept, zoneFresh how long rules are taken without a question.
const zoneRetry, zoneFresh = 10 * time.Second, 10 * time.Minute

// get returns a zone, and waits for its rules until the context ends.
func (zs *zones) get(ctx context.Context, key zoneKey, ask func() (*sqltype.Zone, error)) (*sqltype.Zone, error) {
	zs.mu.Lock()
	r, known := zs.list.Get(key)
	if known {
		select {
		case <-r.ready:
			known = r.err == nil || time.Since(r.asked) < zoneRetry
			if r.err == nil && !r.again && time.Since(r.asked) > zoneFresh {
				r.again = true
				go zs.renew(key, ask)
			}
		default:
		}
	}
	if !known {
		if ctx.Err() != nil {
			zs.mu.Unlock()
			return nil, ctx.Err()
		}
		r = &zoneRules{ready: make(chan struct{}), asked: time.Now()}
		zs.list.Add(key, r)
		go func() {
			defer close(r.ready)
			r.zone, r.err = ask()
		}()
	}
	zs.mu.Unlock()
	select { // what is ready is ready for those who do not wait
	case <-r.ready:
		return r.zone, r.err
	default:
	}
	select {
	case <-r.ready:
		return r.zone, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// renew asks for rules that are known. Where that fails, they are asked for from the start.
func (zs *zones) renew(key zoneKey, ask func() (*sqltype.Zone, error)) {
	r := &zoneRules{ready: make(chan struct{}), asked: time.Now()}
	r.zone, r.err = ask()
	close(r.ready)
	zs.mu.Lock()
	defer zs.mu.Unlock()
	zs.list.Add(key, r)
}

// Zone returns the rules of a session's time zone where they are known already, else nil.
func (e *Engine) Zone(timeZone string) *sqltype.Zone {
	z, err := e.zone(ended, timeZone)
	if err != nil {
		return nil
	}
	return z
}

// ended is a context for those who do not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

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
	if inSession && !isUTC(timeZone) {
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
