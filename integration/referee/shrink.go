package referee

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// reduction makes one difference small.
type reduction struct {
	r        *run
	t        *talk
	q        *query
	p        protocol
	settings []string
	errors   [2]bool // whether the two sides end in an error
	internal bool    // pgaccel fails within, and forwards: the answers are the same
	deadline time.Time
}

// reduce returns a small case with the same difference as a script.
func (r *run) reduce(ctx context.Context, t *talk, s *schema, q *query, p protocol, settings []string) (string, error) {
	x := &reduction{r: r, t: t, q: q, p: p, settings: settings, deadline: time.Now().Add(90 * time.Second)}
	if err := t.tell(ctx, "RESET ALL"); err != nil {
		return "", err
	}
	if err := t.tell(ctx, settings...); err != nil {
		return "", err
	}
	before := r.log.failures()
	want, got := x.ask(ctx, q, p)
	if difference(q, want, got) == "" {
		if x.internal = r.log.failures() > before; !x.internal {
			return "", errors.New("it does not come again")
		}
	}
	x.errors = [2]bool{want.err != "", got.err != ""}
	x.query(ctx)
	small, err := x.data(ctx, s)
	if err != nil {
		return "", err
	}
	x.query(ctx)
	want, got = x.ask(ctx, x.q, x.p)
	head := internalError
	if !x.internal {
		head = difference(x.q, want, got)
	}
	sc := &script{head: []string{oneLine(head)}, settings: x.settings[1:], p: x.p, collation: x.r.Collation}
	sc.sql, sc.bounds = x.p.text(x.q)
	for _, tb := range small.tables {
		sc.setup = append(sc.setup, tb.ddl()...)
		sc.setup = append(sc.setup, tb.inserts()...)
	}
	text := sc.String()
	return strings.ReplaceAll(strings.ReplaceAll(text, small.name+".", ""), small.name+"_", "t_"), nil
}

func (x *reduction) ask(ctx context.Context, q *query, p protocol) (want, got answer) {
	sql, bounds := p.text(q)
	if len(p.formats) > 1 { // as many as there are columns now
		p.formats = p.formats[:min(len(p.formats), len(q.out))]
		for len(p.formats) < len(q.out) {
			p.formats = append(p.formats, 0)
		}
	}
	return x.t.direct.ask(ctx, sql, bounds, p), x.t.proxy.ask(ctx, sql, bounds, p)
}

// fails reports whether the two sides still differ, in the same way.
func (x *reduction) fails(ctx context.Context, q *query, p protocol) bool {
	before := x.r.log.failures()
	want, got := x.ask(ctx, q, p)
	if want.lost != nil || got.lost != nil {
		x.deadline = time.Time{}
		return false
	}
	if x.internal {
		return x.r.log.failures() > before
	}
	return difference(q, want, got) != "" && x.errors == [2]bool{want.err != "", got.err != ""}
}

func (x *reduction) late() bool { return time.Now().After(x.deadline) }

// query makes the query, its protocol and its settings smaller.
func (x *reduction) query(ctx context.Context) {
	for _, p := range []protocol{{times: 1}, {extended: true, times: 1}, {extended: true, times: 1, formats: []int16{1}}, {extended: true, prepared: true, times: 1}} {
		p.oids = x.p.oids
		if x.fails(ctx, x.q, p) {
			x.p = p
			break
		}
	}
	for i := 1; i < len(x.settings); i++ {
		fewer := slices.Delete(slices.Clone(x.settings), i, i+1)
		if x.t.tell(ctx, append([]string{"RESET ALL"}, fewer...)...) == nil && x.fails(ctx, x.q, x.p) {
			x.settings = fewer
			i--
		}
	}
	x.t.tell(ctx, append([]string{"RESET ALL"}, x.settings...)...)
	for progress := true; progress && !x.late(); {
		progress = false
		for _, m := range mutations(x.q) {
			c := x.q.clone()
			m(c)
			before, _ := x.q.sql(false)
			after, _ := c.sql(false)
			if len(after) < len(before) && x.fails(ctx, c, x.p) {
				x.q, progress = c, true
				break
			}
			if x.late() {
				break
			}
		}
	}
}

// mutations returns ways to make a copy of q smaller.
func mutations(q *query) []func(*query) {
	var out []func(*query)
	if q.raw != "" {
		return nil
	}
	add := func(f func(*query)) { out = append(out, f) }
	if q.wrap != nil {
		add(func(c *query) { *c = *c.wrap })
		add(func(c *query) { c.with = false })
	}
	out = append(out, blockMutations(q)...)
	for i := range q.from {
		add(func(c *query) {
			c.from = slices.Delete(c.from, i, i+1)
			if i == 0 && len(c.from) > 0 {
				c.from[0].join, c.from[0].on, c.from[0].using, c.from[0].natural = "", nil, nil, false
			}
		})
		add(func(c *query) {
			c.from[i].derived, c.from[i].where, c.from[i].named = false, nil, c.from[i].alias == ""
		})
		add(func(c *query) { c.from[i].with, c.from[i].lateral = false, false })
		add(func(c *query) { c.from[i].view = false })
		for j := range q.from[i].on {
			add(func(c *query) { c.from[i].on = slices.Delete(c.from[i].on, j, j+1) })
		}
		for j := range q.from[i].where {
			add(func(c *query) { c.from[i].where = slices.Delete(c.from[i].where, j, j+1) })
		}
	}
	add(func(c *query) { c.order, c.limit, c.offset = nil, nil, nil })
	add(func(c *query) { c.limit, c.offset = nil, nil })
	add(func(c *query) { c.offset = nil })
	add(func(c *query) { c.distinct = false })
	add(func(c *query) { c.on = 0 })
	for i := range q.where {
		add(func(c *query) { c.where = slices.Delete(c.where, i, i+1) })
	}
	for i := range q.having {
		add(func(c *query) { c.having = slices.Delete(c.having, i, i+1) })
	}
	for i := range q.order {
		add(func(c *query) { c.order = slices.Delete(c.order, i, i+1) })
		add(func(c *query) { c.order[i].tail = "" })
	}
	if len(q.out) > 1 {
		for i := range q.out {
			add(func(c *query) { c.removeOutput(i) })
		}
	}
	if q.sets != nil {
		add(func(c *query) { c.sets = nil })
		for i := range q.sets {
			if len(q.sets) > 1 {
				add(func(c *query) { c.sets = slices.Delete(c.sets, i, i+1) })
			}
			for j := range q.sets[i].items {
				add(func(c *query) { c.sets[i].items = slices.Delete(c.sets[i].items, j, j+1) })
				add(func(c *query) { c.sets[i] = c.sets[i].items[j] })
			}
		}
	}
	for i := range q.group {
		add(func(c *query) { c.group = slices.Delete(c.group, i, i+1) })
		add(func(c *query) { // the key with all that shows it
			n := c.group[i].n
			c.group = slices.Delete(c.group, i, i+1)
			for j := len(c.out) - 1; j >= 0 && len(c.out) > 1; j-- {
				if c.out[j].n == n {
					c.removeOutput(j)
				}
			}
		})
	}
	for k, n := range q.ownNodes() {
		for j, a := range n.args {
			if a.t.kind == n.t.kind {
				add(func(c *query) { x := c.ownNodes()[k]; *x = *x.args[j] })
			}
		}
		if n.lit == nil && n.col == nil {
			add(func(c *query) {
				x := c.ownNodes()[k]
				v := keyValue(typ{kind: x.t.kind, scale: max(x.t.scale, 0), n: x.t.n}, 1)
				if x.t.kind == boolean {
					v = "t"
				}
				*x = node{t: x.t, lit: &constant{value: &v, form: casted}}
			})
		}
		if n.lit != nil && n.lit.form != open && n.lit.form != bare {
			add(func(c *query) { c.ownNodes()[k].lit.form = bare })
		}
		if n.f != "" && len(n.args) > 2 && strings.Contains(n.f, " IN (") {
			add(func(c *query) {
				x := c.ownNodes()[k]
				x.args = x.args[:len(x.args)-1]
				x.f = strings.Replace(x.f, "@, ", "", 1)
			})
		}
		if n.agg && strings.HasSuffix(n.f, " FILTER (WHERE @)") {
			add(func(c *query) {
				x := c.ownNodes()[k]
				x.f = strings.TrimSuffix(x.f, " FILTER (WHERE @)")
				x.args = x.args[:len(x.args)-1]
			})
		}
	}
	return out
}

// removeOutput removes an output; keys that were written as its number or name are
// written in full.
func (q *query) removeOutput(i int) {
	for _, a := range q.arms {
		if i < len(a.out) {
			a.removeOutput(i)
		}
	}
	for r := range q.values {
		q.values[r] = slices.Delete(q.values[r], i, i+1)
	}
	q.out = slices.Delete(q.out, i, i+1)
	fix := func(output *int) {
		switch {
		case *output == i+1:
			*output = 0
		case *output > i+1:
			*output--
		}
	}
	for j := range q.group {
		fix(&q.group[j].output)
	}
	for j := range q.order {
		fix(&q.order[j].output)
	}
}

// data makes copies of the tables with fewer columns and rows.
func (x *reduction) data(ctx context.Context, s *schema) (*schema, error) {
	current := &schema{name: s.name}
	used := x.q.tables()
	for _, t := range s.tables {
		if !slices.Contains(used, t) {
			continue
		}
		d := *t
		a := x.t.writer.ask(ctx, "SELECT * FROM "+t.qualified(), nil, protocol{})
		if a.err != "" || a.lost != nil {
			return nil, fmt.Errorf("%s %w", a.err, a.lost)
		}
		d.rows = nil
		for _, r := range a.rows {
			row := make([]*string, len(r))
			for i, v := range r {
				if v != nil {
					// Beyond the last moment there is nothing that could be written.
					s := strings.Replace(string(v), "294277-01-01 00:00:00", lastMoment, 1)
					row[i] = &s
				}
			}
			d.rows = append(d.rows, row)
		}
		current.tables = append(current.tables, &d)
	}
	// First as it is, then without the columns that nobody names.
	first, err := x.attempt(ctx, s, current)
	if err != nil {
		return nil, err
	}
	if first == nil {
		return nil, errors.New("it does not come again on a copy of the tables")
	}
	best := first
	if x.q.raw == "" {
		if fewer, err := x.attempt(ctx, s, x.narrow(best)); err != nil {
			return nil, err
		} else if fewer != nil {
			best = fewer
		}
	}
	for ti := 0; ti < len(best.tables); ti++ {
		for chunks := 2; len(best.tables[ti].rows) > 0 && !x.late(); {
			rows := best.tables[ti].rows
			chunks = min(chunks, len(rows))
			var tries []*schema
			cut := func(i int) int { return i * len(rows) / chunks }
			for i := range min(chunks, 16) {
				c := best.with(ti, slices.Concat(rows[:cut(i)], rows[cut(i+1):]))
				tries = append(tries, c)
				if chunks > 2 && chunks <= 8 {
					tries = append(tries, best.with(ti, rows[cut(i):cut(i+1)]))
				}
			}
			smaller, err := x.attempts(ctx, s, tries)
			if err != nil {
				return nil, err
			}
			switch {
			case smaller != nil:
				best = smaller
				chunks = max(2, chunks-1)
				if chunks > len(smaller.tables[ti].rows) {
					chunks = 2
				}
			case chunks >= len(rows) || chunks >= 64:
				chunks = 1 << 30
			default:
				chunks *= 4
			}
			if chunks == 1<<30 {
				break
			}
		}
	}
	final, err := x.attempt(ctx, s, best)
	if final == nil && err == nil {
		err = errors.New("it does not always come")
	}
	return final, err
}

func (s *schema) with(table int, rows [][]*string) *schema {
	c := &schema{name: s.name, tables: slices.Clone(s.tables)}
	t := *s.tables[table]
	t.rows = rows
	c.tables[table] = &t
	return c
}

// narrow leaves out the columns that the query does not name.
func (x *reduction) narrow(s *schema) *schema {
	named := map[string]bool{}
	for _, n := range x.q.nodes() {
		if n.col != nil && !n.from.table.virtual {
			named[n.from.table.name+"."+n.col.name] = true
		}
	}
	out := &schema{name: s.name}
	for _, t := range s.tables {
		d := *t
		d.cols, d.rows, d.extra = nil, nil, nil
		var keep []int
		for i, c := range t.cols {
			if slices.Contains(t.key, i) || named[t.name+"."+c.name] {
				keep = append(keep, i)
				d.cols = append(d.cols, c)
			}
		}
		d.key = nil
		for i, at := range keep {
			if slices.Contains(t.key, at) {
				d.key = append(d.key, i)
			}
		}
		if len(d.cols) == 0 {
			return s
		}
		for _, r := range t.rows {
			row := make([]*string, len(keep))
			for i, at := range keep {
				row[i] = r[at]
			}
			d.rows = append(d.rows, row)
		}
		out.tables = append(out.tables, &d)
	}
	return out
}

func (x *reduction) attempt(ctx context.Context, original *schema, s *schema) (*schema, error) {
	return x.attempts(ctx, original, []*schema{s})
}

// attempts creates copies of candidates under new names and returns the smallest on
// which the query still fails, nil where it fails on none. x.q then asks about that
// one.
func (x *reduction) attempts(ctx context.Context, original *schema, candidates []*schema) (*schema, error) {
	slices.SortStableFunc(candidates, func(a, b *schema) int { return a.size() - b.size() })
	var made []*schema
	defer func() {
		for _, s := range made {
			x.t.writer.ask(ctx, "DROP SCHEMA IF EXISTS "+s.name+" CASCADE", nil, protocol{})
		}
	}()
	for _, c := range candidates {
		n := renames.Add(1)
		d := &schema{name: fmt.Sprintf("rfx%d", n)}
		for _, t := range c.tables {
			e := *t
			e.schema = d.name
			e.name = strings.Replace(t.name, t.schema+"_", d.name+"_", 1)
			d.tables = append(d.tables, &e)
		}
		if err := create(ctx, x.t.writer, d); err != nil {
			return nil, err
		}
		made = append(made, d)
	}
	if err := waitCopied(ctx, x.t.proxy, made...); err != nil {
		return nil, err
	}
	for i, d := range made {
		q := rebind(x.q, d)
		settings := slices.Clone(x.settings)
		settings[0] = "SET search_path = " + d.name
		if err := x.t.tell(ctx, settings[0]); err != nil {
			return nil, err
		}
		if x.fails(ctx, q, x.p) {
			x.q, x.settings = q, settings
			made = slices.Delete(made, i, i+1)
			return d, nil
		}
	}
	return nil, x.t.tell(ctx, x.settings[0])
}

func (s *schema) size() (n int) {
	for _, t := range s.tables {
		n += len(t.rows)
	}
	return n
}

// rebind makes a query ask about a copy of its tables.
func rebind(q *query, s *schema) *query {
	c := q.clone()
	suffix := func(t *table) string { return strings.TrimPrefix(t.name, t.schema) }
	to := func(t *table) *table {
		for _, d := range s.tables {
			if suffix(d) == suffix(t) {
				return d
			}
		}
		return t
	}
	seen := map[*source]bool{}
	move := func(x *source) {
		if x == nil || seen[x] || x.table.virtual {
			return
		}
		seen[x] = true
		old := x.table
		x.table = to(old)
		if x.alias == old.name {
			x.alias = x.table.name
		}
		if c.raw != "" {
			c.raw = strings.ReplaceAll(c.raw, old.name, x.table.name)
		}
	}
	var all func(*query)
	all = func(q *query) {
		for _, x := range q.children() {
			all(x)
		}
		for _, x := range q.from {
			move(x)
			move(x.inner)
		}
	}
	all(c)
	for _, n := range c.nodes() {
		move(n.from)
	}
	return c
}
