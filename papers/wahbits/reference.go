package wahbits

// combinePlain is the algorithm of the paper's section 2.1, "processing starts by
// popping the first atom off each vector": one pair of atoms at a time. It is the
// reference of combine.
func combinePlain(o op, a, b *Bitmap) *Bitmap {
	var z []uint64
	x, y := stack{atoms: a.atoms}, stack{atoms: b.atoms}
	for x.pop() && y.pop() {
		r := o.apply(x.word, y.word)
		n := min(x.left, y.left)
		if r == 0 || r == allOnes {
			z = appendFill(z, zeroRun|r&fillOnes, n)
		} else {
			z = append(z, r) // a literal is involved, so n is 1
		}
		x.left -= n
		y.left -= n
	}
	return &Bitmap{rows: a.rows, atoms: z}
}

// stack is a compressed vector as a stack of atoms; word is what the topmost
// stands for, left times more.
type stack struct {
	atoms []uint64
	left  uint64
	word  uint64
}

// pop takes an atom from the stack when the one before it is exhausted.
func (s *stack) pop() bool {
	if s.left > 0 {
		return true
	}
	if len(s.atoms) == 0 {
		return false
	}
	a := s.atoms[0]
	s.atoms = s.atoms[1:]
	s.left, s.word = 1, a
	if a&fillFlag != 0 {
		s.left, s.word = a&runMask, fillWord(a)
	}
	return true
}
