package wahdata

import "slices"

// kddBins are 42 attributes with 475 bins. The connections' symbolic attributes have
// their published number of values (protocol 3, service 70, flag 11, four flags of
// two, label 23); the rest is spread over the 34 continuous ones, at most 25 each.
func kddBins() []int {
	bins := []int{3, 70, 11, 2, 2, 2, 2, 23}
	bins = append(bins, slices.Repeat([]int{25}, 12)...)
	bins = append(bins, slices.Repeat([]int{3}, 16)...)
	return append(bins, slices.Repeat([]int{2}, 6)...)
}

// kdd imitates network traffic of which most is a few attacks: long bursts of
// connections that are alike in nearly all attributes, and between them ordinary
// traffic. All attributes share the bursts.
func kdd(s *Set, attribute int, dst []uint8) {
	bursts := random(s.Name, 1)
	rng := random(s.Name, uint64(2+attribute))
	bins := s.Bins[attribute]
	// Attack kind k has a value of its own in each attribute, often the common one.
	var typical [23]uint8
	for k := range typical {
		if rng.IntN(3) == 0 {
			typical[k] = uint8(rng.IntN(bins))
		}
	}
	kinds := newChooser(powers(len(typical), 1.6))
	usual := newChooser(powers(bins, 2.5))
	for i := 0; i < len(dst); {
		kind := kinds.draw(bursts)
		attack := bursts.IntN(4) != 0
		length := 1 + int(bursts.ExpFloat64()*3000)
		if !attack {
			length = 1 + int(bursts.ExpFloat64()*600)
		}
		end := min(len(dst), i+length)
		if attack {
			for ; i < end; i++ {
				dst[i] = typical[kind]
			}
			// A connection in some hundreds differs.
			for n := (length + rng.IntN(400)) / 400; n > 0; n-- {
				dst[max(0, i-1-rng.IntN(length))] = usual.draw(rng)
			}
			continue
		}
		for i < end {
			v := usual.draw(rng)
			for n := 1 + int(rng.ExpFloat64()*6); n > 0 && i < end; n-- {
				dst[i] = v
				i++
			}
		}
	}
}

// linkage imitates pairs of patients' records that were compared: two record
// numbers without order, degrees to which names agree, and whether birthday, sex,
// postal code and the records themselves do. Rows are in no order at all, but most
// bins are rare.
func linkage(s *Set, attribute int, dst []uint8) {
	rng := random(s.Name, uint64(1+attribute))
	weights := map[int][]float64{
		6:  {5, 95},            // sex
		7:  {0.01, 77.5, 22.5}, // day of birth: missing, differs, agrees
		8:  {0.01, 51, 49},
		9:  {0.01, 77.8, 22.2},
		10: {0.2, 99.2, 0.6}, // postal code
		11: {99.64, 0.36},    // the same patient
	}[attribute]
	switch {
	case attribute < 2:
		weights = slices.Repeat([]float64{1}, s.Bins[attribute])
	case attribute < 6:
		weights = powers(s.Bins[attribute], []float64{1, 3.5, 1.3, 5}[attribute-2])
	}
	c := newChooser(weights)
	for i := range dst {
		dst[i] = c.draw(rng)
	}
}

// bpaBins are those of 20 synchrophasors, 1367 in all.
func bpaBins() []int {
	return append(slices.Repeat([]int{69}, 7), slices.Repeat([]int{68}, 13)...)
}

// bpa imitates a power grid's measurements, 60 a second: a value that wanders
// slowly about its mean, and noise that crosses an edge of a bin now and then.
func bpa(s *Set, attribute int, dst []uint8) {
	rng := random(s.Name, uint64(1+attribute))
	bins := float64(s.Bins[attribute])
	level := bins / 2
	const step, back, noise = 0.03, 3e-6, 0.08
	for i := range dst {
		level += step*rng.NormFloat64() - back*(level-bins/2)
		dst[i] = uint8(min(max(level+noise*rng.NormFloat64(), 0), bins-1))
	}
}
