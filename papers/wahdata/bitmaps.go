package wahdata

import "pgaccel/papers/wahbits"

// Bitmaps returns the bit vectors of the bins, in their order, stored on Go's heap.
func (s *Set) Bitmaps(bins []Bin) []*wahbits.Bitmap {
	out := make([]*wahbits.Bitmap, len(bins))
	var column []uint8
	for attribute := range s.Bins {
		var builders [256]*wahbits.Builder
		used := false
		for _, b := range bins {
			if b.Attribute == attribute {
				builders[b.Bin], used = new(wahbits.Builder), true
			}
		}
		if !used {
			continue
		}
		column = s.Column(attribute, column)
		for row, v := range column {
			if b := builders[v]; b != nil {
				b.Add(row)
			}
		}
		for i, b := range bins {
			if b.Attribute == attribute {
				builder := builders[b.Bin]
				builder.AppendRun(false, s.Rows-builder.Len())
				out[i] = builder.Finish(nil)
			}
		}
	}
	return out
}
