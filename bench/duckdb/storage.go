package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
)

// stored is what one compression takes of a column in the file.
type stored struct {
	Table       string `json:"table"`
	Column      string `json:"column"`
	Compression string `json:"compression"` // DuckDB's name; "nulls" for the column's null bitmap, however stored
	Bytes       int64  `json:"bytes"`
}

// piece is a segment's place in the file.
type piece struct {
	of            stored // without bytes
	block, offset int64
}

// usedBytes is the size of the blocks that hold something: the file has free ones
// between them, which the load needed.
func usedBytes(ctx context.Context, conn *sql.Conn) (n int64, err error) {
	err = conn.QueryRowContext(ctx, "SELECT used_blocks * block_size FROM pragma_database_size()").Scan(&n)
	return n, err
}

// storage returns what the tables' columns take. DuckDB tells where segments begin, not
// how long they are: each is taken to reach to the next in its block, the last to the
// block's end, so that what is free there counts as the last one's. Blocks of their own
// (long strings) count whole.
func storage(ctx context.Context, conn *sql.Conn, tables []string) ([]stored, error) {
	var blockSize int64
	if err := conn.QueryRowContext(ctx, "SELECT block_size FROM pragma_database_size()").Scan(&blockSize); err != nil {
		return nil, err
	}
	var pieces []piece
	sums := map[stored]int64{}
	for _, table := range tables {
		rows, err := conn.QueryContext(ctx, fmt.Sprintf(`SELECT column_name, CASE segment_type WHEN 'VALIDITY' THEN 'nulls' ELSE compression END,
			block_id, block_offset, len(additional_block_ids) FROM pragma_storage_info('%s') WHERE block_id >= 0`, table))
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			p := piece{of: stored{Table: table}}
			var more int64
			if err := rows.Scan(&p.of.Column, &p.of.Compression, &p.block, &p.offset, &more); err != nil {
				rows.Close()
				return nil, err
			}
			sums[p.of] += more * blockSize
			pieces = append(pieces, p)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.offset, b.offset))
	})
	for i, p := range pieces {
		end := blockSize
		if i+1 < len(pieces) && pieces[i+1].block == p.block {
			end = pieces[i+1].offset
		}
		sums[p.of] += end - p.offset
	}
	var all []stored
	for of, bytes := range maps.All(sums) {
		of.Bytes = bytes
		all = append(all, of)
	}
	slices.SortFunc(all, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Column, b.Column), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Compression, b.Compression))
	})
	return all, nil
}
