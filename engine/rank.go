package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"

	"pgaccel/vector"
)

// defaultCollation is that of the database (pg_collation.dat), and of text that names none.
const defaultCollation = 100

// rank is an olap.Ranker: it has the server sort texts, on the session of Look.
func (e *Engine) rank(ctx context.Context, c vector.Collation, texts []string) ([]int32, error) {
	name, err := e.collationName(ctx, max(c.OID, defaultCollation))
	if err != nil {
		return nil, err
	}
	list, err := pgtype.NewMap().Encode(pgtype.TextArrayOID, pgtype.TextFormatCode, texts, nil)
	if err != nil {
		return nil, err
	}
	rows, err := e.opt.Look(ctx, "SELECT u.code, pg_catalog.dense_rank() OVER (ORDER BY u.s COLLATE "+name+") FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY u(s, code)", []string{string(list)})
	if err != nil {
		e.collations.Delete(c.OID) // it may have another name now
		return nil, err
	}
	if len(rows) != len(texts) {
		return nil, fmt.Errorf("%d texts came back of %d", len(rows), len(texts))
	}
	ranks := make([]int32, len(texts))
	for _, row := range rows {
		code, err := strconv.Atoi(*row[0])
		rank, wrong := strconv.Atoi(*row[1])
		if err != nil || wrong != nil || code < 1 || code > len(ranks) || rank < 1 || rank > len(ranks) {
			return nil, errors.New("an order that is none")
		}
		ranks[code-1] = int32(rank - 1)
	}
	return ranks, nil
}

// rank is an olap.Ranker: labels of enums have their order in the catalog that the gate is compared with.
// The server is asked for that of other texts.
func (d *decision) rank(ctx context.Context, c vector.Collation, texts []string) ([]int32, error) {
	e := d.catalog.Enum(c.OID)
	if e == nil {
		return d.statement.engine.rank(ctx, c, texts)
	}
	if ranks := e.Ranks(texts); ranks != nil {
		return ranks, nil
	}
	return nil, errors.New("a label that the enum does not have")
}

// collationName returns a collation's name as SQL has it.
func (e *Engine) collationName(ctx context.Context, oid uint32) (string, error) {
	if name, known := e.collations.Load(oid); known {
		return name.(string), nil
	}
	rows, err := e.opt.Look(ctx, "SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(l.collname) FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace WHERE l.oid = $1::pg_catalog.oid",
		[]string{strconv.FormatUint(uint64(oid), 10)})
	if err != nil {
		return "", err
	}
	if len(rows) != 1 || rows[0][0] == nil {
		return "", fmt.Errorf("collation %d is not there", oid)
	}
	e.collations.Store(oid, *rows[0][0])
	return *rows[0][0], nil
}
