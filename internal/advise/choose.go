package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pgaccel/catalog"
)

// smallTable are the rows below which PostgreSQL answers as fast, where nothing larger is read beside.
const smallTable = 5000

// chooseByUse takes tables by how they are read: those of which most rows a byte are read in order first,
// until the memory is spent.
func chooseByUse(tables []*table, limit int64) {
	var candidates []*table
	largest := int64(0)
	for _, t := range tables {
		switch u := &t.Usage; {
		case t.Server == 0:
			t.Why = "empty"
		case u.read() == 0:
			t.Why = "never read since the statistics began"
		case u.changed() > u.read():
			t.Why = "more rows are changed than read"
		case u.SeqRows == 0 && t.Memory.Rows >= smallTable:
			t.Why = "read by its indexes only"
		default:
			candidates = append(candidates, t)
			largest = max(largest, t.Memory.Rows)
		}
	}
	density := func(t *table) float64 { return float64(t.Usage.read()) / float64(max(t.Memory.Bytes, 1)) }
	slices.SortStableFunc(candidates, func(a, b *table) int { return cmp.Compare(density(b), density(a)) })
	left := limit
	for _, t := range candidates {
		switch {
		case largest < smallTable:
			t.Why = "all tables are small: PostgreSQL answers as fast"
		case t.needsMemory() > left:
			t.Why = "does not fit beside the others"
		default:
			left -= t.needsMemory()
			t.Take, t.Why = true, fmt.Sprintf("read %s", ratio(float64(t.Usage.read())/float64(max(t.Memory.Rows, 1))))
		}
	}
}

func ratio(times float64) string {
	if times < 1 {
		return "in part"
	}
	return fmt.Sprintf("%.0f times over", times)
}

// heldWeight is the part of its memory that a table which is copied already is ranked by: another has to gain twice as much a
// byte to take its place.
const heldWeight = 0.5

// readSet are statements that read the same tables.
type readSet struct {
	tables []*table
	gainMS float64
}

// more returns the tables of a set that are not taken, and the memory that they need: what they are ranked by, and all of it.
func (r *readSet) more() (add []*table, weight float64, bytes int64) {
	for _, t := range r.tables {
		if t.Take {
			continue
		}
		add = append(add, t)
		bytes += t.needsMemory()
		if t.held > 0 {
			weight += heldWeight * float64(t.needsMemory())
		} else {
			weight += float64(t.needsMemory())
		}
	}
	return add, weight, bytes
}

// copiesMS is the server's time that copies of tables take.
func copiesMS(tables []*table) (ms float64) {
	for _, t := range tables {
		ms += t.copyMS
	}
	return ms
}

// Why tables are left.
const (
	whyNoGain  = "no statement that gains reads it"
	whyNoRoom  = "does not fit beside the others"
	WhyTooSoon = "what reads it has not taken PostgreSQL as long as a copy would, yet"
	whyHeld    = "no other needs its memory"
)

// chooseByStatements takes the tables that statements read which would be accelerated: those first whose statements gain most a
// byte that is not taken yet. Statements gain that read no other tables than those and what is taken. Where pgaccel runs, they must
// have gained as much as copies cost, and a table that is copied already stays while its memory is not needed; with hold, also where
// it is.
func chooseByStatements(tables []*table, all *statements, limit int64, hold bool) {
	left := limit
	of := map[uint32]*table{}
	for _, t := range tables {
		of[t.meta.OID], t.Why, t.Gain = t, whyNoGain, 0
		if t.Take = t.fixed || hold && t.held > 0 && t.blocked == ""; t.Take && !t.fixed {
			left -= t.needsMemory()
		}
	}
	waiting := readSets(of, all)
	for {
		var best *readSet
		var density float64
		for _, r := range waiting {
			add, weight, bytes := r.more()
			gain := gained(waiting, add)
			if len(add) > 0 && bytes <= left && gain >= copiesMS(add) && (best == nil || gain/(weight+1) > density) {
				best, density = r, gain/(weight+1)
			}
		}
		if best == nil {
			break
		}
		add, _, bytes := best.more()
		left -= bytes
		for _, t := range add {
			t.Take = true
		}
	}
	for _, r := range waiting {
		add, _, bytes := r.more()
		for _, t := range add {
			if t.Why = WhyTooSoon; bytes > left {
				t.Why = whyNoRoom
			}
		}
	}
	for _, t := range slices.SortedStableFunc(slices.Values(tables), func(a, b *table) int { return cmp.Compare(b.Gain, a.Gain) }) {
		switch {
		case t.blocked != "":
			t.Why = t.blocked
		case t.Take && t.Gain > 0:
			t.Why = "read by statements that gain"
		case t.Take:
			t.Why = whyHeld
		case t.held > 0 && t.needsMemory() <= left:
			left -= t.needsMemory()
			t.Take, t.Why = true, whyHeld
		}
	}
}

// readSets gathers the statements that gain, by the tables that they read, which may all be taken.
func readSets(of map[uint32]*table, all *statements) (sets []*readSet) {
	for _, st := range all.list {
		if st.GainMS <= 0 || len(st.reads) == 0 {
			continue
		}
		r := &readSet{gainMS: st.GainMS}
		var blocked *table
		if slices.ContainsFunc(st.reads, func(meta *catalog.Table) bool { return of[meta.OID] == nil }) {
			continue // a table that has come just now
		}
		for _, meta := range st.reads {
			t := of[meta.OID]
			t.Gain += st.GainMS
			r.tables = append(r.tables, t)
			if t.blocked != "" {
				blocked = t
			}
		}
		slices.SortFunc(r.tables, func(a, b *table) int { return cmp.Compare(a.meta.OID, b.meta.OID) })
		same := slices.IndexFunc(sets, func(o *readSet) bool { return slices.Equal(o.tables, r.tables) })
		switch {
		case blocked != nil:
			for _, t := range r.tables {
				t.Why = "what reads it reads " + blocked.Name + ", too, which cannot be copied"
			}
		case same >= 0:
			sets[same].gainMS += r.gainMS
		default:
			sets = append(sets, r)
		}
	}
	return sets
}

// gained is what the statements gain that wait for no other tables than those.
func gained(waiting []*readSet, add []*table) (ms float64) {
	for _, r := range waiting {
		missing, _, _ := r.more()
		if len(missing) > 0 && !slices.ContainsFunc(missing, func(t *table) bool { return !slices.Contains(add, t) }) {
			ms += r.gainMS
		}
	}
	return ms
}

// taken is the share of the statements of a route whose tables are all taken.
func (all *statements) taken(tables []*table, of route) (share float64) {
	take := map[uint32]bool{}
	for _, t := range tables {
		take[t.meta.OID] = t.Take
	}
	for _, st := range all.list {
		if st.Route == of && !slices.ContainsFunc(st.reads, func(meta *catalog.Table) bool { return !take[meta.OID] }) {
			share += st.Share
		}
	}
	return share
}

// pattern names a table for --accelerate. What has a meaning in patterns, or in the flag, is any character.
func pattern(schema, name string) string {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(`*?.,!"'\$`, r) || r <= ' ' {
				return '?'
			}
			return r
		}, s)
	}
	return plain(schema) + "." + plain(name)
}

// patternsFor names the tables that are taken; a schema of which all are by one pattern, if they are many.
func patternsFor(tables []*table) (patterns []string) {
	const many = 8
	bySchema := map[string][]*table{}
	for _, t := range tables {
		bySchema[t.meta.Schema] = append(bySchema[t.meta.Schema], t)
	}
	for schema, list := range bySchema {
		all := !slices.ContainsFunc(list, func(t *table) bool { return !t.Take })
		if all && len(list) > many {
			whole, _, _ := strings.Cut(pattern(schema, ""), ".")
			patterns = append(patterns, whole+".*")
			continue
		}
		for _, t := range list {
			if t.Take {
				patterns = append(patterns, pattern(t.meta.Schema, t.meta.Name))
			}
		}
	}
	slices.Sort(patterns)
	return patterns
}

// memoryFor is what --memory is to be for the tables that are taken: whole steps, and no more than the limit.
func memoryFor(tables []*table, limit int64) (bytes int64) {
	for _, t := range tables {
		if t.Take {
			bytes += t.needsMemory()
		}
	}
	step := int64(64 << 20)
	switch {
	case bytes > 8<<30:
		step = 1 << 30
	case bytes > 1<<30:
		step = 256 << 20
	}
	return min((bytes/step+1)*step, max(limit, step))
}
