package server

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestOneDecisionForAnExecution: the texts of a pair are the same but for their
// constants, or for the types of their parameters, and what can be made of them is not.
// The second must not be given to a gate that was set up for the first.
func TestOneDecisionForAnExecution(t *testing.T) {
	b := newBench(t, 0)
	through := func() *pgconn.PgConn { // in no mode: the client names it itself
		return b.connect(fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", b.s.Addr()))
	}
	texts := [][2]string{
		{"SELECT count(*) FROM fact WHERE d = '2020-01-05'", "SELECT count(*) FROM fact WHERE d = 'today'"},
		{"SELECT count(*) FROM fact WHERE d < '2020-01-05'", "SELECT count(*) FROM fact WHERE d < 'infinity'"},
		{"SELECT id FROM fact WHERE id = 7", "SELECT id FROM fact WHERE id = 7.5"},
		{"SELECT id FROM fact WHERE id = '7'", "SELECT id FROM fact WHERE id = ' 8 '"},
		{"SELECT id FROM fact WHERE id = 7 LIMIT 1", "SELECT id FROM fact WHERE id = 99999999999999999999 LIMIT 1"},
	}
	say := func(list []*pgconn.Result, err error) string {
		text := ""
		for _, r := range list {
			text += fmt.Sprintf("%s %q\n", r.CommandTag, r.Rows)
		}
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			return text + pg.Code + " " + pg.Message
		}
		return text + fmt.Sprint(err)
	}
	ctx := context.Background()
	for _, pair := range texts {
		for _, mode := range []string{"auto", "force"} {
			for _, order := range [][2]int{{0, 1}, {1, 0}} {
				for _, extended := range []bool{false, true} {
					play := func(c *pgconn.PgConn) (out string) {
						b.exec(c, "SET pgaccel.mode = '"+mode+"'; BEGIN")
						for _, k := range order {
							if extended {
								r := c.ExecParams(ctx, pair[k], nil, nil, nil, nil).Read()
								out += say([]*pgconn.Result{r}, r.Err)
							} else {
								out += say(c.Exec(ctx, pair[k]).ReadAll())
							}
							out += fmt.Sprintf(" %c\n", c.TxStatus())
						}
						b.exec(c, "ROLLBACK")
						return out
					}
					if want, got := play(b.direct("postgres")), play(through()); got != want {
						t.Errorf("%q, mode %s, extended %v:\n%s\nwant\n%s", []string{pair[order[0]], pair[order[1]]}, mode, extended, got, want)
					}
				}
			}
		}
	}
	// One text with other types of its parameters.
	for _, text := range []string{"SELECT id FROM fact WHERE id = $1", "SELECT count(*) FROM fact WHERE t = $1"} {
		types := []uint32{0, 23, 20, 25, 1700, 701, 1043, 18}
		play := func(c *pgconn.PgConn) (out string) {
			b.exec(c, "SET pgaccel.mode = 'auto'")
			for _, first := range types {
				for _, second := range types {
					for _, oid := range []uint32{first, second} {
						b.exec(c, "BEGIN")
						r := c.ExecParams(ctx, text, [][]byte{[]byte("7")}, []uint32{oid}, nil, nil).Read()
						out += say([]*pgconn.Result{r}, r.Err) + fmt.Sprintf(" %d %c\n", oid, c.TxStatus())
						b.exec(c, "ROLLBACK")
					}
				}
			}
			return out
		}
		if want, got := play(b.direct("postgres")), play(through()); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", text, got, want)
		}
	}
	// A role that sets the mode makes every session ask.
	b.exec(b.direct("postgres"), "ALTER ROLE reader SET pgaccel.mode = 'auto'")
	eventually(t, "the role's setting", func() bool {
		return b.s.databases[0].store.Catalog().ModeSet
	})
	for _, pair := range texts {
		play := func(c *pgconn.PgConn) string {
			b.exec(c, "BEGIN")
			defer b.exec(c, "ROLLBACK")
			return say(c.Exec(ctx, pair[0]).ReadAll()) + say(c.Exec(ctx, pair[1]).ReadAll())
		}
		if want, got := play(b.direct("postgres")), play(through()); got != want {
			t.Errorf("%q, ModeSet:\n%s\nwant\n%s", pair, got, want)
		}
	}
	if l := b.log.errors(); len(l) > 0 {
		t.Errorf("logged: %s", l)
	}
	n := int64(0)
	for _, c := range b.s.databases[0].engine.Counts() {
		if c.Route == "accelerated" {
			n += c.N
		}
	}
	if n < 10 {
		t.Errorf("only %d executions were answered here", n)
	}
}
