package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// columnBytes is what one compression takes of a column.
type columnBytes struct {
	Table       string
	Column      string
	Compression string // its system's name
	Bytes       int64
}

// pgaccelColumns asks pgaccel what its columns take, null bitmaps as "nulls".
func pgaccelColumns(ctx context.Context, c *pgconn.PgConn) ([]columnBytes, error) {
	results, err := c.Exec(ctx, `SELECT split_part("table", '.', 2), "column", codec, bytes, null_bytes FROM pgaccel.columns`).ReadAll()
	if err != nil {
		return nil, err
	}
	var all []columnBytes
	for _, row := range results[0].Rows {
		of := columnBytes{Table: string(row[0]), Column: string(row[1]), Compression: string(row[2])}
		var nulls int64
		if of.Bytes, err = strconv.ParseInt(string(row[3]), 10, 64); err == nil {
			nulls, err = strconv.ParseInt(string(row[4]), 10, 64)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, of)
		if nulls > 0 {
			of.Compression, of.Bytes = "nulls", nulls
			all = append(all, of)
		}
	}
	return all, nil
}

// printBytes shows what each column takes in pgaccel and in DuckDB's file (empty without
// DuckDB), and how.
func printBytes(out io.Writer, ours, theirs []columnBytes) {
	type column struct{ table, column string }
	var columns []column
	for _, c := range ours {
		if name := (column{c.Table, c.Column}); !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	// describe adds up a column's parts, those of one compression in one.
	describe := func(all []columnBytes, name column) (sum int64, parts string) {
		by := map[string]int64{}
		var order []string
		for _, c := range all {
			if c.Table == name.table && strings.EqualFold(c.Column, name.column) { // DuckDB keeps capitals
				if by[c.Compression] == 0 {
					order = append(order, c.Compression)
				}
				by[c.Compression] += c.Bytes
				sum += c.Bytes
			}
		}
		slices.SortStableFunc(order, func(a, b string) int { return int(by[b] - by[a]) })
		for _, name := range order {
			parts += fmt.Sprintf(", %s %.2f", name, float64(by[name])/1e6)
		}
		return sum, strings.TrimPrefix(parts, ", ")
	}
	head := fmt.Sprintf("\n%-28s %12s", "column", "pgaccel MB")
	if theirs != nil {
		head += fmt.Sprintf(" %10s %7s", "DuckDB MB", "ratio")
	}
	fmt.Fprintln(out, head+"  how")
	var sumOurs, sumTheirs int64
	line := func(name string, us, them int64, how string) {
		fmt.Fprintf(out, "%-28s %12.2f", name, float64(us)/1e6)
		if theirs != nil {
			fmt.Fprintf(out, " %10.2f %6.2fx", float64(them)/1e6, float64(us)/float64(max(them, 1)))
		}
		fmt.Fprintln(out, "  "+how)
	}
	for _, name := range columns {
		us, how := describe(ours, name)
		them, their := describe(theirs, name)
		if sumOurs, sumTheirs = sumOurs+us, sumTheirs+them; their != "" {
			how += " | " + their
		}
		line(name.table+"."+name.column, us, them, how)
	}
	line("sum", sumOurs, sumTheirs, "")
	if theirs != nil {
		fmt.Fprintln(out, "ratio: pgaccel / DuckDB; how: pgaccel's codecs | DuckDB's compressions")
	}
}
