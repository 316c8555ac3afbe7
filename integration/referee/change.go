package referee

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// randomChange returns statements that change a table of the schema: rows mostly,
// now and then the definition. Values stay like those that the columns began with,
// so that arithmetic over them stays as tame as it was.
func (g *gen) randomChange(s *schema, serial *int) []string {
	t := pick(g.r, s.tables...)
	name := t.qualified()
	src := &source{table: t}
	// A string that is new to a column takes a while to get its place in an order other
	// than C's.
	known := func(c *column, v *string) *string {
		if v != nil && len(c.held) > 0 && c.spread != "unique" && g.chance(97) && !g.bytewise(c.t) {
			held := pick(g.r, c.held...)
			return &held
		}
		return v
	}
	on := *g
	on.scope, on.params, on.reckless = []*source{src}, false, false
	where := func() string {
		w := &writer{seen: map[*node]int{}}
		w.node(on.condition(g.r.IntN(2)))
		return w.String()
	}
	insert := func(n int) string {
		var rows []string
		for range n {
			*serial++
			row := t.row(g.r, g.r.IntN(max(len(t.rows), 1)), max(len(t.rows), 1))
			for i, c := range t.cols {
				row[i] = known(c, row[i])
			}
			for _, k := range t.key { // a key that is new
				v := keyValue(t.cols[k].t, 20000+*serial)
				row[k] = &v
			}
			rows = append(rows, tuple(row))
		}
		q := fmt.Sprintf("INSERT INTO %s VALUES %s", name, strings.Join(rows, ", "))
		if t.key != nil {
			q += " ON CONFLICT DO NOTHING"
		}
		return q
	}
	switch n := g.r.IntN(100); {
	case n < 30:
		return []string{insert(1 + g.r.IntN(4))}
	case n < 33:
		return []string{insert(300)}
	case n < 62:
		var sets []string
		for range 1 + g.r.IntN(2) {
			c := pick(g.r, t.cols...)
			v := known(c, c.value(g.r, g.r.IntN(max(len(t.rows), 1)), max(len(t.rows), 1)))
			if c.spread == "unique" || v == nil && c.notNull || strings.Contains(strings.Join(sets, ","), c.name+" =") {
				continue
			}
			val := "NULL"
			if v != nil {
				val = quote(*v)
			}
			sets = append(sets, c.name+" = "+val)
		}
		if len(sets) == 0 {
			return []string{insert(1)}
		}
		return []string{fmt.Sprintf("UPDATE %s SET %s WHERE %s", name, strings.Join(sets, ", "), where())}
	case n < 66: // keys move
		if t.key == nil {
			return []string{insert(2)}
		}
		*serial++
		c := t.cols[t.key[0]]
		return []string{fmt.Sprintf("UPDATE %s SET %s = %s WHERE ctid = (SELECT min(ctid) FROM %s)", name, c.name, quote(keyValue(c.t, 20000+*serial)), name)}
	case n < 82:
		return []string{fmt.Sprintf("DELETE FROM %s WHERE ctid IN (SELECT ctid FROM %s WHERE %s LIMIT %d)", name, name, where(), 1+g.r.IntN(20))}
	case n < 84:
		return []string{fmt.Sprintf("DELETE FROM %s WHERE %s", name, where())}
	case n < 92: // several in one transaction, some of it taken back
		out := []string{"BEGIN", insert(2), "SAVEPOINT a", fmt.Sprintf("DELETE FROM %s WHERE %s", name, where()), "ROLLBACK TO a", insert(1)}
		return append(out, pick(g.r, "COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))
	case n < 94:
		return []string{"BEGIN", "TRUNCATE " + name, insert(40), pick(g.r, "COMMIT", "ROLLBACK")}
	case n < 95:
		return []string{"TRUNCATE " + name, insert(20)}
	case g.chance(50): // what changes a definition forwards for a while
		return []string{insert(1)}
	case n < 98:
		return []string{pick(g.r, "ANALYZE ", "VACUUM ", "VACUUM ", "VACUUM FULL ", "REINDEX TABLE ") + name}
	}
	c := pick(g.r, t.cols...)
	return []string{pick(g.r,
		fmt.Sprintf("ALTER TABLE %s ADD COLUMN zz int DEFAULT 7; ALTER TABLE %s DROP COLUMN zz", name, name),
		fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET STATISTICS 10", name, c.name),
		fmt.Sprintf("COMMENT ON TABLE %s IS 'x'", name),
		t.view(pick(g.r, "", " WHERE "+c.name+" IS NOT NULL")),
		fmt.Sprintf("GRANT SELECT ON %s TO PUBLIC", name))}
}

// ownWrites asks in a block that has changed the data itself, and takes the change
// back; first directly, then through pgaccel.
func (r *run) ownWrites(ctx context.Context, t *talk, own []string, q *query, p protocol) (diff string, failed bool, err error) {
	sql, bounds := p.text(q)
	for _, o := range own {
		if strings.HasPrefix(o, "VACUUM") || strings.HasPrefix(o, "BEGIN") || strings.HasPrefix(o, "REINDEX") {
			return r.compare(ctx, t, q, p)
		}
	}
	t.own = own
	var answers []answer
	for _, s := range []*session{t.direct, t.proxy} {
		s.ask(ctx, "BEGIN", nil, protocol{})
		for _, o := range own {
			s.ask(ctx, o, nil, protocol{})
		}
		answers = append(answers, s.ask(ctx, sql, bounds, p))
		if a := s.ask(ctx, "ROLLBACK", nil, protocol{}); a.lost != nil {
			return "", false, a.lost
		}
		if answers[0].timedOut() { // pgaccel's would take as long, and first copies wait for who writes
			return "", true, ctx.Err()
		}
	}
	r.asked.Add(int64(p.times))
	// The same change made twice leaves the rows in two orders: an error is that of whichever
	// row comes first, behind as many rows as come before it.
	if want := answers[0].err; want != "" && quoted.ReplaceAllString(want, "") == quoted.ReplaceAllString(answers[1].err, "") {
		return "", false, ctx.Err()
	}
	return difference(q, answers[0], answers[1]), false, ctx.Err()
}

// quoted is what an error names.
var quoted = regexp.MustCompile(`(?s)".*"`)
