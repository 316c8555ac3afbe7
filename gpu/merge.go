package gpu

import (
	"math/bits"

	"pgaccel/gpu/program"
)

// merge makes one result of the results of parts of a table: of bitmaps, a part has those of the segments that it
// computed. Parts may be changed.
func merge(p *program.Program, parts []*program.Result) *program.Result {
	out := &program.Result{}
	for _, r := range parts {
		out.Fault = out.Fault || r.Fault
		out.Full = out.Full || r.Full
	}
	if out.Fault || out.Full {
		return out
	}
	if len(parts) == 1 {
		return parts[0]
	}
	if p.Sink.Kind == program.SinkBitmap {
		out.Bitmaps = parts[0].Bitmaps
		for _, r := range parts[1:] {
			for s, from := range r.Bitmaps {
				if from != nil {
					out.Bitmaps[s] = from
				}
			}
		}
		return out
	}

	most, total := 0, 0
	for i, r := range parts {
		total += len(r.Numbers)
		if len(r.Numbers) > len(parts[most].Numbers) {
			most = i
		}
	}
	// Open addressing over the groups: slot h has 1 + the position of its group, 0 for none.
	mask := uint64(1)<<bits.Len(uint(2*total)) - 1
	slots := make([]uint32, mask+1)
	place := func(r *program.Result, g int) *uint32 { // of a group of a part
		number, prefix := r.Numbers[g], uint64(0)
		if r.Prefix != nil {
			prefix = r.Prefix[g]
		}
		h := program.HashOf(number^program.HashOf(prefix)) & mask
		for slots[h] != 0 && (out.Numbers[slots[h]-1] != number || r.Prefix != nil && out.Prefix[slots[h]-1] != prefix) {
			h = (h + 1) & mask
		}
		return &slots[h]
	}
	*out = *parts[most]
	for i := range out.Numbers {
		*place(out, i) = uint32(i + 1)
	}
	for i, r := range parts {
		if i == most {
			continue
		}
		for g, number := range r.Numbers {
			slot := place(r, g)
			if *slot == 0 {
				out.Numbers = append(out.Numbers, number)
				if r.Prefix != nil {
					out.Prefix = append(out.Prefix, r.Prefix[g])
				}
				out.Rows = append(out.Rows, r.Rows[g])
				for a, acc := range p.Sink.Accs {
					out.Accs[a].Grow(acc.Kind, len(out.Numbers))
					out.Accs[a].Merge(acc.Kind, len(out.Numbers)-1, &r.Accs[a], g)
				}
				*slot = uint32(len(out.Numbers))
				continue
			}
			to := int(*slot - 1)
			if !p.Sink.Distinct {
				out.Rows[to] += r.Rows[g]
			}
			for a, acc := range p.Sink.Accs {
				out.Accs[a].Merge(acc.Kind, to, &r.Accs[a], g)
			}
		}
	}
	return out
}
