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

// chooseByStatements takes the tables that statements read which would be accelerated: those statements first that
// gain most a byte that is not taken yet.
func chooseByStatements(tables []*table, all *statements, limit int64) {
	of := map[uint32]*table{}
	for _, t := range tables {
		of[t.meta.OID], t.Why = t, "no statement that gains reads it"
	}
	var waiting []*statement
	for _, st := range all.list {
		if st.GainMS > 0 && len(st.reads) > 0 {
			waiting = append(waiting, st)
			for _, meta := range st.reads { // tables of the catalog, all of them
				of[meta.OID].Gain += st.GainMS
			}
		}
	}
	left := limit
	more := func(st *statement) (bytes int64) {
		for _, meta := range st.reads {
			if t := of[meta.OID]; !t.Take {
				bytes += t.needsMemory()
			}
		}
		return bytes
	}
	for len(waiting) > 0 {
		best := slices.MaxFunc(waiting, func(a, b *statement) int {
			return cmp.Compare(a.GainMS/float64(more(a)+1), b.GainMS/float64(more(b)+1))
		})
		waiting = slices.DeleteFunc(waiting, func(st *statement) bool { return st == best })
		need := more(best)
		for _, meta := range best.reads {
			switch t := of[meta.OID]; {
			case t.Take:
			case need > left:
				t.Why = "does not fit beside the others"
			default:
				t.Take = true
			}
		}
		if need <= left {
			left -= need
		}
	}
	for _, t := range tables {
		if t.Take {
			t.Why = "read by statements that gain"
		}
	}
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
