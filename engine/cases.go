package engine

import (
	"context"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"pgaccel/plan"
	"pgaccel/sqltype"
)

// caseKey is a collation of a server.
type caseKey struct {
	server    string
	collation uint32
}

// casesMax is of how many collations the cases are kept, each in some hundred KiB.
const casesMax = 16

// caseServer asks about a collation on the session of Look.
type caseServer struct {
	e    *Engine
	oid  uint32
	name string // as SQL has it
}

// askCases asks for the cases of a collation.
func (e *Engine) askCases(oid uint32) (*sqltype.Cases, error) {
	e.collations.Delete(oid) // it may have another name now, and another this one
	name, err := e.collationName(context.Background(), oid)
	if err != nil {
		return nil, err
	}
	return sqltype.AskCases(caseServer{e, oid, name})
}

// casesOf returns the cases of those of the statement's collations of which they are known.
func (e *Engine) casesOf(d *plan.Deps) map[uint32]*sqltype.Cases {
	var known map[uint32]*sqltype.Cases
	for _, oid := range d.Cased {
		if c, err := e.casesIn(ended, oid); err == nil && c != nil {
			if known == nil {
				known = map[uint32]*sqltype.Cases{}
			}
			known[oid] = c
		}
	}
	return known
}

// learnCases has the cases of the statement's collations asked for, where they are not known: an execution that may have needed
// them has failed. Nobody waits for them, and where all strings are of ASCII nobody asks.
func (e *Engine) learnCases(d *plan.Deps) {
	for _, oid := range d.Cased {
		go func() { _, _ = e.casesIn(context.Background(), oid) }()
	}
}

func (e *Engine) casesIn(ctx context.Context, oid uint32) (*sqltype.Cases, error) {
	if e.opt.Look == nil {
		return nil, errors.New("no session to ask with")
	}
	return e.cases.get(ctx, caseKey{e.store.Server(), oid}, func() (*sqltype.Cases, error) { return e.askCases(oid) })
}

// sameCollation is a condition that the name, parameter $2, is still that of the collation, $3.
const sameCollation = "$2::pg_catalog.regcollation OPERATOR(pg_catalog.=) $3::pg_catalog.oid"

func (s caseServer) look(sql, arg string) ([][]*string, error) {
	return s.e.opt.Look(context.Background(), sql, []string{arg, s.name, strconv.FormatUint(uint64(s.oid), 10)})
}

// Changing implements sqltype.CaseServer. Surrogates are no characters.
func (s caseServer) Changing(last rune) ([]sqltype.CaseMapping, error) {
	rows, err := s.look(`SELECT x.i, x.l, x.u FROM (SELECT c.i, c.c, pg_catalog.lower(c.c COLLATE `+s.name+`) COLLATE "C" AS l, pg_catalog.upper(c.c COLLATE `+s.name+`) COLLATE "C" AS u `+
		`FROM (SELECT g.i, pg_catalog.chr(g.i) AS c FROM pg_catalog.generate_series(1, $1::pg_catalog.int4) AS g(i) `+
		`WHERE g.i OPERATOR(pg_catalog.<) 55296 OR g.i OPERATOR(pg_catalog.>) 57343 OFFSET 0) c OFFSET 0) x `+
		`WHERE (x.l OPERATOR(pg_catalog.<>) x.c COLLATE "C" OR x.u OPERATOR(pg_catalog.<>) x.c COLLATE "C") AND `+sameCollation+` ORDER BY x.i`,
		strconv.Itoa(int(last)))
	if err != nil {
		return nil, err
	}
	list := make([]sqltype.CaseMapping, len(rows))
	for i, row := range rows {
		c, err := strconv.ParseInt(*row[0], 10, 32)
		if err != nil || !utf8.ValidRune(rune(c)) {
			return nil, errors.New("a character that is none")
		}
		list[i] = sqltype.CaseMapping{Char: rune(c), Lower: *row[1], Upper: *row[2]}
	}
	if len(list) == 0 {
		return nil, errors.New("the collation has another name")
	}
	return list, nil
}

// Both implements sqltype.CaseServer.
func (s caseServer) Both(texts []string) (lower, upper []string, err error) {
	list, err := pgtype.NewMap().Encode(pgtype.TextArrayOID, pgtype.TextFormatCode, texts, nil)
	if err != nil {
		return nil, nil, err
	}
	rows, err := s.look("SELECT pg_catalog.lower(u.s COLLATE "+s.name+"), pg_catalog.upper(u.s COLLATE "+s.name+") FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY u(s, n) WHERE "+sameCollation+" ORDER BY u.n",
		string(list))
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		lower, upper = append(lower, *row[0]), append(upper, *row[1])
	}
	return lower, upper, nil
}
