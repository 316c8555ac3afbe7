package olap

// Percentiles of text that is computed row by row collect codes, which have no order. Once the
// rows have been read each is replaced by the rank of its string.

// recoded is a collection of values that can be replaced by others.
type recoded interface {
	// recode replaces each value v by to[v]. Blocks of values may be those of other
	// collections, too: they stay as they are.
	recode(to []int32)
}

func recodeBlock[T key](b []T, to []int32) []T {
	out := make([]T, len(b))
	for k, v := range b {
		out[k] = T(to[v])
	}
	return out
}

func (e *lists[T]) recode(to []int32) {
	for g := range e.n {
		blocks := e.of(uint32(g))
		for i, b := range blocks {
			blocks[i] = recodeBlock(b, to)
		}
		e.full[g], e.open[g], e.n[g] = blocks, nil, 0
	}
}

func (e *rowList[T]) recode(to []int32) {
	for i := range e.blocks {
		e.blocks[i].vals = recodeBlock(e.blocks[i].vals, to)
	}
}

// rankText gives the percentiles of text that was computed row by row the ranks of its
// strings. The dictionaries are complete.
func (g *grouper) rankText() error {
	for i := range g.refs {
		r := &g.refs[i]
		if !r.ordered || r.dict == nil || r.ranks != nil {
			continue
		}
		ranks, err := g.p.x.rankOf(r.dict, r.arg.t.Collation)
		if err != nil {
			return err
		}
		for o := range g.refs { // those that share its collection
			if p := &g.refs[o]; p.ordered && p.value == r.value {
				p.dict, p.ranks = r.dict, codesByRank(ranks, p.arg.t.Collation)
			}
		}
		done := map[*groups]bool{}
		for _, by := range g.sets {
			for _, s := range by.done {
				e, some := s.states[r.value].extra.(recoded)
				if !some || done[s] {
					continue
				}
				done[s] = true
				if err := g.p.x.take(s.states[r.value].bytes()); err != nil {
					return err
				}
				e.recode(ranks)
			}
		}
	}
	return nil
}
