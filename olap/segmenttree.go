package olap

// segmentTree says what values that stand side by side come to, joined in their order, in time
// O(log n): join is associative, and none changes nothing. A node is the join of two below it; the
// values are the last n.
type segmentTree[T any] struct {
	nodes []T
	n     int
	none  T
	join  func(a, b T) T
}

func newSegmentTree[T any](n int, none T, join func(a, b T) T, value func(i int) T) *segmentTree[T] {
	t := &segmentTree[T]{nodes: make([]T, 2*n), n: n, none: none, join: join}
	for i := range n {
		t.nodes[n+i] = value(i)
	}
	for i := n - 1; i > 0; i-- {
		t.nodes[i] = join(t.nodes[2*i], t.nodes[2*i+1])
	}
	return t
}

// over joins the values from one up to another, which it leaves out.
func (t *segmentTree[T]) over(from, to int) T {
	left, right := t.none, t.none
	for from, to = from+t.n, to+t.n; from < to; from, to = from/2, to/2 {
		if from%2 == 1 {
			left = t.join(left, t.nodes[from])
			from++
		}
		if to%2 == 1 {
			to--
			right = t.join(t.nodes[to], right)
		}
	}
	return t.join(left, right)
}
