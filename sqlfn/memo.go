package sqlfn

import (
	"strings"
	"sync/atomic"
)

// memo keeps what was made of the last text: a pattern is the same in all rows of a statement.
type memo[T any] struct {
	make func(text string) (T, bool)
	last atomic.Pointer[memoized[T]]
}

type memoized[T any] struct {
	text string
	made T
	ok   bool
}

// of returns what make returns, which must not be changed.
func (m *memo[T]) of(text string) (T, bool) {
	if l := m.last.Load(); l != nil && l.text == text {
		return l.made, l.ok
	}
	l := &memoized[T]{text: strings.Clone(text)} // a row's text may be gone with the next one
	l.made, l.ok = m.make(l.text)
	m.last.Store(l)
	return l.made, l.ok
}
