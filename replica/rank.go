package replica

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pgaccel/colstore"
	"pgaccel/vector"
)

// rankLimit is the longest dictionary that the server is asked to sort.
const rankLimit = 100_000

// rankTexts gives the dictionaries of t that lack it the order of their collations
// where that is not memcmp's. Only the server knows it: it depends on the versions of
// its C library and of ICU. Where different strings tie nobody asks for it. It reports whether it asked.
func rankTexts(ctx context.Context, conn *pgx.Conn, t *colstore.Table) (asked bool, err error) {
	for i, d := range t.Dicts {
		if d == nil || t.Meta.Columns[i].Type.Varying() || t.Meta.Columns[i].Type.Collation.C || !t.Meta.Columns[i].Type.Collation.Deterministic || d.Len() > rankLimit || d.Ranks() != nil {
			continue
		}
		if e := t.Meta.Columns[i].Enum; e != nil {
			if ranks := e.Ranks(textsOf(d)); ranks != nil { // else some label is newer than the definition
				d.SetRanks(ranks)
			}
			continue
		}
		ranks, err := askRanks(ctx, conn, d, t.Meta.Columns[i].Type)
		if err != nil {
			return true, fmt.Errorf("ordering the values of %s: %w", t.Meta.Columns[i].Name, err)
		}
		d.SetRanks(ranks)
		asked = true
	}
	return asked, nil
}

// textsOf returns the strings of a dictionary by their codes.
func textsOf(d *colstore.Dict) []string {
	texts := make([]string, d.Len())
	d.Each(0, int64(len(texts)), func(code int64, s []byte) bool {
		texts[code] = string(s)
		return true
	})
	return texts
}

// askRanks lets the server sort the dictionary. Under a deterministic collation
// different strings never tie (varstr_cmp breaks ties by memcmp).
func askRanks(ctx context.Context, conn *pgx.Conn, d *colstore.Dict, typ vector.Type) ([]int32, error) {
	texts := textsOf(d)
	ranks := make([]int32, len(texts))
	if len(ranks) == 0 {
		return ranks, nil
	}
	order := "u.s"
	if typ.Kind == vector.BPChar {
		order = "u.s::pg_catalog.bpchar" // which compares without trailing blanks
	}
	var collation string
	err := conn.QueryRow(ctx, "SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(l.collname) FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace WHERE l.oid = $1::oid",
		typ.Collation.OID).Scan(&collation)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, "SELECT u.code FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY u(s, code) ORDER BY "+order+" COLLATE "+collation, texts)
	if err != nil {
		return nil, err
	}
	codes, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	if len(codes) != len(ranks) {
		return nil, fmt.Errorf("%d strings came back of %d", len(codes), len(ranks))
	}
	for rank, code := range codes {
		ranks[code-1] = int32(rank)
	}
	return ranks, nil
}
