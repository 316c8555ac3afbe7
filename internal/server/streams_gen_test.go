package server

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5/pgproto3"
)

// stream is a conversation of a client's: what it sends, in order, and where it waits for
// the answers first.
type stream struct {
	startup [][2]string // parameters, user and database among them
	steps   []streamStep
	chopped uint64 // not 0: written in pieces of 1 to 7 bytes, from this seed
}

// streamStep is bytes to send, or a wait.
type streamStep struct {
	wait bool
	data []byte
}

// What streams are made of. The order of rows is one only, nothing depends on time or on
// another session, and no table that is copied changes: the answer is the same each time.
var (
	streamQueries = []string{
		"SELECT count(*), sum(v) FROM fact",
		"SELECT g, count(*), sum(v), min(n), max(d) FROM fact GROUP BY g ORDER BY g",
		"SELECT name, sum(v) FROM fact JOIN dim ON fact.g = dim.g GROUP BY name ORDER BY name",
		"SELECT id, v, n, t, d, f FROM fact WHERE id <= 12 ORDER BY id",
		"SELECT t, avg(v) FROM fact WHERE v BETWEEN 100 AND 9000 GROUP BY t ORDER BY t",
		"SELECT id FROM fact WHERE d = '2020-01-05' ORDER BY id",
		"SELECT id FROM fact WHERE d = 'infinity' ORDER BY id",
		"SELECT max(v), min(t) FROM fact WHERE g = 99",
		"SELECT id FROM fact WHERE id < 0 ORDER BY id",
		"SELECT id AS é FROM fact WHERE t = 'näme' ORDER BY id",
		"SELECT v FROM fact WHERE id = 7",
	}
	streamParameters = []struct {
		sql   string
		types []uint32
		kinds string // of the values: i, t, d, n
	}{
		{"SELECT id, v, t FROM fact WHERE id <= $1 ORDER BY id", []uint32{23}, "i"},
		{"SELECT count(*), max(d) FROM fact WHERE t = $1", []uint32{25}, "t"},
		{"SELECT sum(n) FROM fact WHERE d < $1 AND g = $2", []uint32{1082, 23}, "di"},
		{"SELECT count(*) FROM fact WHERE n < $1", []uint32{1700}, "n"},
		{"SELECT $1::text, $2::int + 1", []uint32{25, 23}, "ti"},
		{"SELECT v FROM fact WHERE id = $1", []uint32{23}, "i"},
	}
	streamBlocks = []string{"BEGIN", "BEGIN", "COMMIT", "ROLLBACK", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE",
		"START TRANSACTION READ ONLY", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s", "COMMIT AND CHAIN"}
	streamOthers = []string{
		"SELECT v / (g - g) FROM fact ORDER BY id", "SELECT nosuch FROM fact", "SELECT id FROM fact WHERE id = 'x'", "SELECT v FROM fact WHERE id = $1",
		"SELECT 1/0", "selec", "", ";", "-- nothing", "SELECT 1; SELECT 2", "SELECT count(*) FROM nosuch",
		"BEGIN; SELECT count(*) FROM fact", "SET pgaccel.mode = 'off'; SELECT count(*) FROM fact", "SELECT count(*) FROM fact; SELECT sum(v) FROM fact",
		"SELECT 1; SELECT nosuch FROM fact; SELECT 3", "BEGIN; SELECT 1/0; COMMIT", "SAVEPOINT q; SELECT sum(v) FROM fact",
		"SET pgaccel.mode = 'off'", "SET pgaccel.mode = 'auto'", "SET pgaccel.mode = 'force'", "RESET pgaccel.mode",
		"SET DateStyle = 'German'", "SET LOCAL DateStyle = 'SQL, DMY'", "SET TimeZone = 'Asia/Tokyo'", "SET client_encoding = 'LATIN1'", "SET client_encoding = 'UTF8'",
		"SET application_name = 'a'", "SET search_path = nosuch", "RESET ALL", "SHOW transaction_isolation", "SET ROLE reader", "RESET ROLE",
		"DISCARD ALL", "DEALLOCATE ALL", "DEALLOCATE a", "PREPARE a AS SELECT count(*) FROM fact", "EXECUTE a", "COMMIT PREPARED 'nosuch'",
		"DECLARE c CURSOR FOR SELECT id FROM fact ORDER BY id", "FETCH 3 FROM c", "MOVE 2 IN c", "CLOSE c", "CLOSE ALL", "FETCH 2 FROM a", "MOVE 1 IN b",
		"DECLARE h CURSOR WITH HOLD FOR SELECT g FROM dim ORDER BY g", "FETCH ALL FROM h",
		"SELECT name, statement FROM pg_prepared_statements ORDER BY name",
		"UPDATE fact SET v = v WHERE id < 0", "DELETE FROM fact WHERE id = -1", "LOCK TABLE fact IN ACCESS SHARE MODE",
		"DO $$BEGIN RAISE NOTICE 'said'; END$$", "SELECT owner FROM secret ORDER BY id", "EXPLAIN (COSTS OFF) DELETE FROM dim",
		"VALUES (1, 'a'), (2, NULL)", "TABLE dim ORDER BY g", "SELECT repeat('x', 5000)",
	}
	streamTemporary = []string{"CREATE TEMP TABLE tt (a int, b text)", "INSERT INTO tt VALUES (1, 'x'), (2, NULL)", "SELECT * FROM tt ORDER BY a, b",
		"SELECT count(*) FROM fact WHERE id IN (SELECT a FROM tt)", "COPY tt TO STDOUT", "TRUNCATE tt", "INSERT INTO tt VALUES (3) RETURNING a, b"}
	streamCopies = []string{"COPY (SELECT id, t FROM fact WHERE id < 4 ORDER BY id) TO STDOUT", "COPY tt FROM STDIN", "COPY tt FROM STDIN", "COPY tt (b) FROM STDIN", "COPY nosuch FROM STDIN"}
)

// generator makes streams.
type generator struct {
	r         *rand.Rand
	s         *stream
	temporary bool // uses a temporary table, which keeps the session from being answered here
}

// randomStream makes one.
func randomStream(seed, n uint64) *stream {
	g := &generator{r: rand.New(rand.NewPCG(seed, n)), s: &stream{}}
	g.temporary = g.chance(6)
	g.startup()
	for range 1 + g.r.IntN(9) {
		switch g.r.IntN(10) {
		case 0, 1, 2:
			g.simple()
		case 3:
			g.copy()
		case 4:
			g.send(&pgproto3.Query{String: pick(g, streamBlocks)})
		case 5:
			g.readOn()
		default:
			g.batch()
		}
		if !g.chance(3) {
			g.s.steps = append(g.s.steps, streamStep{wait: true})
		}
		if g.chance(200) {
			g.send(&pgproto3.Flush{}, &pgproto3.Terminate{})
		}
	}
	if g.chance(5) {
		g.s.chopped = 1 + g.r.Uint64N(1<<32)
	}
	return g.s
}

// readOn reads a portal in parts, with other statements of its transaction in between: also
// such as change how values are written, and such as use the portal by its name.
func (g *generator) readOn() {
	others := []string{"SET DateStyle = 'German'", "SET LOCAL DateStyle = 'SQL, DMY'", "RESET DateStyle", "SET TimeZone = 'GMT'", "SELECT 1", "SAVEPOINT s",
		"ROLLBACK TO s", "SELECT 1/0", "SELECT count(*) FROM fact", "CLOSE p", "COMMIT",
		"FETCH 2 FROM p", "FETCH 0 FROM p", "MOVE 1 IN p", "FETCH ALL FROM \"p\"", "SELECT cursor_to_xml('p', 1, false, false, '')", "UPDATE dim SET name = name WHERE CURRENT OF p",
		"DECLARE p CURSOR FOR SELECT g FROM dim ORDER BY g", "CLOSE p; DECLARE p CURSOR FOR SELECT g FROM dim ORDER BY g", "COMMIT; BEGIN; DECLARE p CURSOR FOR VALUES (7), (8), (9)",
		"DO $$DECLARE c refcursor := 'p'; BEGIN CLOSE c; OPEN c FOR SELECT g FROM dim ORDER BY g; END$$"}
	g.send(&pgproto3.Query{String: "BEGIN"})
	list := []pgproto3.FrontendMessage{&pgproto3.Parse{Query: pick(g, streamQueries)}, &pgproto3.Bind{DestinationPortal: "p", ResultFormatCodes: pick(g, [][]int16{nil, nil, {1}})}}
	if !g.chance(4) {
		list = append(list, &pgproto3.Execute{Portal: "p", MaxRows: uint32(g.r.IntN(4))})
	}
	g.send(append(list, &pgproto3.Sync{})...)
	for range 1 + g.r.IntN(3) {
		g.send(&pgproto3.Query{String: pick(g, others)})
		list = []pgproto3.FrontendMessage{&pgproto3.Execute{Portal: "p", MaxRows: uint32(g.r.IntN(4))}, &pgproto3.Sync{}}
		if g.chance(3) {
			list = append([]pgproto3.FrontendMessage{&pgproto3.Describe{ObjectType: 'P', Name: "p"}}, list...)
		}
		g.send(list...)
	}
	g.send(&pgproto3.Query{String: pick(g, []string{"COMMIT", "ROLLBACK"})})
}

func pick[T any](g *generator, list []T) T { return list[g.r.IntN(len(list))] }

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.r.IntN(n) == 0 }

func (g *generator) startup() {
	add := func(name, value string) { g.s.startup = append(g.s.startup, [2]string{name, value}) }
	user := "postgres"
	if g.chance(6) {
		user = "reader"
	}
	add("user", user)
	add("database", "postgres")
	switch g.r.IntN(6) {
	case 0:
	case 1:
		add("options", "-c pgaccel.mode=auto")
	case 2:
		add("pgaccel.mode", "force")
	default:
		add("options", "-c pgaccel.mode=force")
	}
	if g.chance(4) {
		list := [][2]string{{"client_encoding", "LATIN1"}, {"client_encoding", "SQL_ASCII"}, {"DateStyle", "German"}, {"TimeZone", "Asia/Tokyo"}, {"application_name", "stream"},
			{"extra_float_digits", "0"}, {"client_encoding", "nosuch"}, {"nosuch", "1"}, {"search_path", "pg_temp, public, pg_catalog"},
			{"default_transaction_isolation", "repeatable read"}, {"standard_conforming_strings", "off"}, {"bytea_output", "escape"}}
		p := pick(g, list)
		add(p[0], p[1])
	}
}

func (g *generator) send(list ...pgproto3.FrontendMessage) {
	var b []byte
	for _, m := range list {
		var err error
		if b, err = m.Encode(b); err != nil {
			panic(err)
		}
	}
	g.s.steps = append(g.s.steps, streamStep{data: b})
}

func (g *generator) text() string {
	switch n := g.r.IntN(20); {
	case n < 11:
		return pick(g, streamQueries)
	case n < 14 && g.temporary:
		return pick(g, streamTemporary)
	case n < 14:
		return pick(g, streamQueries)
	case n < 16:
		return pick(g, streamBlocks)
	}
	return pick(g, streamOthers)
}

func (g *generator) simple() {
	g.send(&pgproto3.Query{String: g.text()})
}

// copy copies in or out; what follows a COPY that fails is ignored by the server.
func (g *generator) copy() {
	text := pick(g, streamCopies)
	if g.temporary && g.chance(2) {
		g.send(&pgproto3.Query{String: streamTemporary[0]})
	}
	extended := g.chance(3)
	var list []pgproto3.FrontendMessage
	if extended {
		list = append(list, &pgproto3.Parse{Query: text}, &pgproto3.Bind{}, &pgproto3.Execute{})
	} else {
		list = append(list, &pgproto3.Query{String: text})
	}
	for range g.r.IntN(3) {
		list = append(list, &pgproto3.CopyData{Data: []byte(pick(g, []string{"1\tx\n", "2\t\\N\n", "y\n", "", "\\.\n", "3\t"}))})
	}
	if g.chance(4) {
		list = append(list, &pgproto3.CopyFail{Message: "no more"})
	} else {
		list = append(list, &pgproto3.CopyDone{})
	}
	if extended {
		list = append(list, &pgproto3.Sync{})
	}
	g.send(list...)
}

func (g *generator) name() string { return pick(g, []string{"", "", "", "a", "b"}) }

// batch is a pipeline of the extended protocol, mostly one that makes sense.
func (g *generator) batch() {
	var list []pgproto3.FrontendMessage
	for range 1 + g.r.IntN(4) {
		switch g.r.IntN(12) {
		case 0:
			list = append(list, &pgproto3.Execute{Portal: pick(g, []string{"a", "b"}), MaxRows: uint32(g.r.IntN(4))})
		case 1:
			list = append(list, &pgproto3.Describe{ObjectType: "SP"[g.r.IntN(2)], Name: g.name()})
		case 2:
			list = append(list, &pgproto3.Close{ObjectType: "SP"[g.r.IntN(2)], Name: g.name()})
		case 3:
			list = append(list, &pgproto3.Flush{})
		case 4:
			list = append(list, &pgproto3.Bind{DestinationPortal: g.name(), PreparedStatement: g.name()})
		default:
			list = append(list, g.execution()...)
		}
	}
	if !g.chance(10) {
		list = append(list, &pgproto3.Sync{})
	}
	if g.chance(3) { // in several writes
		at := g.r.IntN(len(list) + 1)
		g.send(list[:at]...)
		list = list[at:]
	}
	g.send(list...)
}

// execution parses, binds and executes a statement, in parts or in whole.
func (g *generator) execution() (list []pgproto3.FrontendMessage) {
	name, portal := g.name(), g.name()
	bind := &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: name}
	parse := &pgproto3.Parse{Name: name}
	if g.chance(3) {
		p := pick(g, streamParameters)
		parse.Query = p.sql
		switch g.r.IntN(4) {
		case 0:
			parse.ParameterOIDs = p.types
		case 1:
			parse.ParameterOIDs = pick(g, [][]uint32{{0}, {20}, {1043}, {701}, {25}, {23, 23, 23}})
		}
		for _, k := range p.kinds {
			v, format := g.value(byte(k))
			bind.Parameters = append(bind.Parameters, v)
			bind.ParameterFormatCodes = append(bind.ParameterFormatCodes, format)
		}
		if g.chance(12) {
			bind.Parameters = bind.Parameters[:len(bind.Parameters)-1]
			bind.ParameterFormatCodes = nil
		}
	} else {
		parse.Query = g.text()
	}
	bind.ResultFormatCodes = pick(g, [][]int16{nil, nil, nil, nil, nil, nil, {0}, {0}, {1}, {1}, {1}, {0, 1}, {2}})
	if g.chance(4) && name != "" { // where it may exist
		list = append(list, &pgproto3.Close{ObjectType: 'S', Name: name})
	}
	list = append(list, parse)
	if g.chance(3) {
		list = append(list, &pgproto3.Describe{ObjectType: 'S', Name: name})
	}
	for range 1 + g.r.IntN(2) {
		list = append(list, bind)
		if g.chance(3) {
			list = append(list, &pgproto3.Describe{ObjectType: 'P', Name: portal})
		}
		rows := uint32(0)
		if g.chance(3) {
			rows = uint32(1 + g.r.IntN(5))
		}
		for range 1 + g.r.IntN(2) {
			list = append(list, &pgproto3.Execute{Portal: portal, MaxRows: rows})
		}
		if portal != "" {
			list = append(list, &pgproto3.Close{ObjectType: 'P', Name: portal})
		}
	}
	return list
}

// value is one of a kind, mostly fit, in text or in binary.
func (g *generator) value(kind byte) (v []byte, format int16) {
	if g.chance(12) {
		return nil, int16(g.r.IntN(2))
	}
	if g.chance(15) {
		return []byte("x"), int16(g.r.IntN(2))
	}
	binaryFormat := g.chance(3)
	switch kind {
	case 'i':
		n := int32(g.r.IntN(20)) - 3
		if binaryFormat {
			return binary.BigEndian.AppendUint32(nil, uint32(n)), 1
		}
		return fmt.Appendf(nil, "%d", n), 0
	case 'd':
		days := int32(7305 + g.r.IntN(400))
		if binaryFormat {
			return binary.BigEndian.AppendUint32(nil, uint32(days)), 1
		}
		return []byte(pick(g, []string{"2020-03-04", "2021-01-01", "infinity", "2020-02-30", "4.3.2020", " 2020-05-06 "})), 0
	case 'n':
		return []byte(pick(g, []string{"12.5", "1e3", "NaN", "-1", "0.000001", "7"})), 0
	}
	return []byte(pick(g, []string{"name 3", "name 12", "nobody", "", "n\xc3\xa4me", "\xe4"})), int16(g.r.IntN(2))
}
