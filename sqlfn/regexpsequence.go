package sqlfn

import "unicode/utf8"

// sequence is a regular expression of translate's, as steps that are tried one after the other, the longest way of each
// first, and taken back where what follows fails. Package regexp, which has no such bad cases, does where too much is.
// Text is valid UTF-8.
type sequence struct {
	steps []step
}

// step is an atom, or an end of a group.
type step struct {
	kind  stepKind
	group int // of open and close: the position of the captures that they set; 0 for none
	skip  int // of an optional group: the step behind it
	// Of atom: the characters of ASCII that are members, and whether all others are.
	ascii    [2]uint64
	beyond   bool
	optional bool // ? and *
	repeated bool // * and +
	// possessive: what follows begins with a character that is no member, so that only the most can be right.
	possessive bool
	// matchesRest: the last, which takes whatever there is.
	matchesRest bool
}

type stepKind uint8

const (
	stepAtom stepKind = iota
	stepOpen
	stepClose
	stepOptionalGroup // a group that there may be
)

// sequenceGroups is how many groups that capture there are at most: as many as a replacement can name.
const sequenceGroups = 9

// stepLimit is how many steps a text may take, beside those by its length.
const stepLimit, stepLimitPerByte = 256, 8

func (s *step) has(c byte) bool {
	if c >= utf8.RuneSelf {
		return s.beyond
	}
	return s.ascii[c>>6]>>(c&63)&1 != 0
}

func (s *step) add(c byte) { s.ascii[c>>6] |= 1 << (c & 63) }

// complement makes members of all others.
func (s *step) complement() {
	s.ascii[0], s.ascii[1], s.beyond = ^s.ascii[0], ^s.ascii[1], !s.beyond
}

// disjoint reports whether no character is a member of both.
func (s *step) disjoint(t *step) bool {
	return s.ascii[0]&t.ascii[0] == 0 && s.ascii[1]&t.ascii[1] == 0 && !(s.beyond && t.beyond)
}

func (s *step) all() bool { return s.beyond && s.ascii[0]&s.ascii[1] == ^uint64(0) }

// markPossessive finds the repetitions that need not be taken back.
func (q *sequence) markPossessive() {
	for i := range q.steps {
		s := &q.steps[i]
		if s.kind != stepAtom || !s.repeated {
			continue
		}
		next := i + 1
		for next < len(q.steps) && (q.steps[next].kind == stepOpen || q.steps[next].kind == stepClose) {
			next++
		}
		if next == len(q.steps) {
			s.possessive, s.matchesRest = true, s.optional && s.all() && next == i+1
		} else if t := &q.steps[next]; t.kind == stepAtom && !t.optional {
			s.possessive = s.disjoint(t)
		}
	}
}

// backtracker is the state of the match of one text.
type backtracker struct {
	q         *sequence
	s         string
	at        [2 * (sequenceGroups + 1)]int // of group g from at[2g] to at[2g+1]; -1 where it is not part of the match
	stepsLeft int
	// seen is how many bytes were looked at; more than there are where the end was, too. A character of valid UTF-8 is looked at whole.
	seen int
}

// match matches all of a text; ok is false where it gave up.
func (m *backtracker) match(q *sequence, s string) (matched, ok bool) {
	m.q, m.s, m.stepsLeft, m.seen = q, s, stepLimit+stepLimitPerByte*len(s), 0
	for i := range m.at {
		m.at[i] = -1
	}
	matched = m.from(0, 0)
	return matched, m.stepsLeft > 0
}

// from reports whether the steps from the i-th on match the text from pos on, and sets what their groups have.
func (m *backtracker) from(i, pos int) bool {
	for ; i < len(m.q.steps); i++ {
		if m.stepsLeft--; m.stepsLeft <= 0 {
			return false
		}
		s := &m.q.steps[i]
		switch s.kind {
		case stepOpen, stepClose:
			if s.group == 0 {
				continue
			}
			was := m.at[s.group]
			m.at[s.group] = pos
			if m.from(i+1, pos) {
				return true
			}
			m.at[s.group] = was
			return false
		case stepOptionalGroup:
			if m.from(i+1, pos) {
				return true
			}
			i = s.skip - 1
			continue
		}
		if s.matchesRest {
			return true
		}
		if !s.repeated {
			m.seen = max(m.seen, pos+1)
			if pos == len(m.s) || !s.has(m.s[pos]) {
				if s.optional {
					continue
				}
				return false
			}
			next := pos + 1
			for next < len(m.s) && !utf8.RuneStart(m.s[next]) {
				next++
			}
			m.seen = max(m.seen, next)
			if !s.optional {
				pos = next
				continue
			}
			if m.from(i+1, next) {
				return true
			}
			continue
		}
		end := pos
		for end < len(m.s) && s.has(m.s[end]) {
			end++
		}
		m.seen = max(m.seen, end+1)
		if !s.optional && end == pos {
			return false
		}
		if s.possessive {
			pos = end
			continue
		}
		least := pos
		if !s.optional {
			least++
		}
		for ; end >= least; end-- {
			if m.stepsLeft--; m.stepsLeft <= 0 {
				return false
			}
			if (end == len(m.s) || utf8.RuneStart(m.s[end])) && m.from(i+1, end) {
				return true
			}
		}
		return false
	}
	m.seen = len(m.s) + 1
	return pos == len(m.s)
}
