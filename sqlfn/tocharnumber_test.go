package sqlfn

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgaccel/vector"
)

// TestNumberPatterns prints random numbers with random patterns, here and in a server.
func TestNumberPatterns(t *testing.T) {
	conn := connect(t)
	r := rand.New(rand.NewPCG(7, 8))
	var numbers, patterns, got []string
	for len(got) < 15000 {
		number, pattern := "", ""
		for range 1 + r.IntN(8) {
			pattern += string("9990,$ 9,0%/9"[r.IntN(13)])
		}
		if r.IntN(2) == 0 {
			pattern += "."
			for range 1 + r.IntN(4) {
				pattern += string("9900 $"[r.IntN(6)])
			}
		}
		if r.IntN(2) == 0 {
			pattern = "FM" + pattern
		}
		p, ok := readNumberPattern(pattern)
		if !ok {
			continue
		}
		number = fmt.Sprintf("%d.%0*d", r.Int64N([]int64{1, 2, 10, 100, 10000, 1e12}[r.IntN(6)]), 1+r.IntN(4), r.IntN(10))
		if r.IntN(3) == 0 {
			number = "-" + number
		}
		decimals, _, _ := places(p.decimals)
		d, _ := awayFromZero.decimal(parse(t, vector.Numeric, "'"+number+"'").Num, int64(decimals))
		numbers, patterns, got = append(numbers, number), append(patterns, pattern), append(got, p.print(d.String()))
	}
	rows, err := conn.Query(t.Context(), "SELECT to_char(v::numeric, p) FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(v, p, n) ORDER BY n", numbers, patterns)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("to_char(%s, %q) is %q; the server says %q", numbers[i], patterns[i], got[i], want[i])
		}
	}
}
