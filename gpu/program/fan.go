package program

import (
	"fmt"

	"pgaccel/gpu/device"
)

// fan emits what becomes of gathered rows, of which each lane has one, where a lookup finds many
// partners by a key: the steps that follow and the sink, over pairs of a row and a partner.
//
// A warp's pairs are numbered through, and lanes take 32 neighbours at a time, whichever rows they are
// of: a row of 100,000 partners keeps all lanes at work, and costs what 100,000 rows cost. Entries of a
// row's partners are neighbours, so that lanes read them with one or two loads; the row's columns are
// read for each pair again, which all lanes of the row find in the first-level cache at one address. What
// waits is who reads what partners deliver, by entry, anywhere: as with any lookup, resident warps hide
// that, and a lane keeps four registers for its row.
func (g *generator) fan(r *row, lookup int, from, at string) {
	number := r.entry(lookup)
	array := func(name string, offset func(d *LookupData) int64) string {
		return g.pointer("uint32_t", fmt.Sprintf("l%d_%s", lookup, name), func(a *arguments) device.Pointer {
			return a.b.Lookups[lookup] + device.Pointer(offset(&a.q.Lookups[lookup]))
		})
	}
	kind := g.p.Lookups[lookup].Kind
	first := array("starts", func(d *LookupData) int64 { return keysBytes(kind, d) })
	partners := array("partners", func(d *LookupData) int64 { return keysBytes(kind, d) + padded(4*int64(len(d.First))) })
	g.line("const uint32_t begin = %s ? __ldg(%s + %s) : 0, own = %s ? __ldg(%s + %s + 1) - begin : 0;", r.alive, first, number, r.alive, first, number)
	g.line("const uint32_t upto = warp_scan(own, lane), pairs = __shfl_sync(PGACCEL_WARP, upto, 31);")
	g.line("for (uint32_t done = 0; done < pairs; done += 32) {")
	g.line("const uint32_t of = lane_of(upto, done + lane);")
	pair := &row{g: g, memo: map[string]value{}, found: map[int]partner{}, entries: map[int]bool{}}
	pair.alive = g.name("alive")
	g.line("const bool %s = done + lane < pairs;", pair.alive)
	shuffled := func(prefix, of string) string {
		name := g.name(prefix)
		g.line("const uint32_t %s = __shfl_sync(PGACCEL_WARP, %s, of);", name, of)
		return name
	}
	segment, position := shuffled("from", from), shuffled("at", at)
	start, entry := shuffled("start", "begin - (upto - own)"), g.name("e")
	g.line("const uint32_t %s = %s ? __ldg(%s + (%s + done + lane)) : 0;", entry, pair.alive, partners, start)
	pair.memo[fmt.Sprint("entry", lookup)] = value{v: entry}
	_, single := g.p.many()
	roots, _ := g.p.sinkNodes()
	for _, s := range g.p.Steps[single:] {
		roots = append(roots, g.stepNode(s))
	}
	described := map[int]string{}
	for _, c := range g.columnsOf(roots) {
		described[c] = g.name("s")
		g.line("const RowColumn %s = row_column(%s + %s);", described[c], g.columnParam(c), segment)
	}
	pair.column = g.rowColumn(pair, described, segment, position)
	for _, s := range g.p.Steps[single:] {
		if s.Kind == StepProbe && g.p.Lookups[s.Index].Left {
			continue
		}
		pass := pair.condition(s)
		next := g.name("alive")
		g.line("const bool %s = %s && %s;", next, pair.alive, pass)
		pair.alive = next
	}
	g.sink(pair)
	g.line("}")
}
