package replica

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"pgaccel/colstore"
	"pgaccel/vector"
)

// rankLimit is the longest dictionary that the server is asked to sort.
const rankLimit = 100_000

// rankTexts gives the dictionaries of t the order of their collations where that
// is not memcmp's. Only the server knows it: it depends on the versions of its C
// library and of ICU.
func rankTexts(ctx context.Context, conn *pgx.Conn, t *colstore.Table) error {
	for i, d := range t.Dicts {
		if d == nil {
			continue
		}
		typ := t.Meta.Columns[i].Type
		switch {
		case typ.Collation.C && typ.Kind == vector.BPChar:
			rankPadded(d)
		case !typ.Collation.C && d.Len() <= rankLimit:
			ranks, err := askRanks(ctx, conn, d, typ)
			if err != nil {
				return fmt.Errorf("ordering the values of %s: %w", t.Meta.Columns[i].Name, err)
			}
			d.SetRanks(ranks)
		}
	}
	return nil
}

// askRanks lets the server sort the dictionary. Under a deterministic collation
// different strings never tie (varstr_cmp breaks ties by memcmp).
func askRanks(ctx context.Context, conn *pgx.Conn, d *colstore.Dict, typ vector.Type) ([]int32, error) {
	ranks := make([]int32, d.Len())
	if len(ranks) == 0 {
		return ranks, nil
	}
	texts := make([]string, len(ranks))
	for code := range texts {
		texts[code] = d.At(int64(code))
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

// rankPadded sets the order of char(n) under a C collation: that of the strings
// without trailing blanks (bpcharcmp), which differs from that of the padded ones
// where a character sorts below the blank.
func rankPadded(d *colstore.Dict) {
	codes := make([]int32, d.Len())
	texts := make([]string, len(codes))
	plain := true
	for code := range codes {
		codes[code] = int32(code)
		texts[code] = strings.TrimRight(d.At(int64(code)), " ")
		plain = plain && strings.IndexFunc(texts[code], func(r rune) bool { return r < ' ' }) < 0
	}
	if plain {
		return
	}
	slices.SortFunc(codes, func(a, b int32) int { return strings.Compare(texts[a], texts[b]) })
	ranks := make([]int32, len(codes))
	for rank, code := range codes {
		ranks[code] = int32(rank)
	}
	d.SetRanks(ranks)
}
