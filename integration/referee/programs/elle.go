package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The checker works as Elle does (Kingsbury, Alvaro: "Elle: Inferring Isolation
// Anomalies from Experimental Observations", 2020). Lists only grow, so that the
// last state of a list says in which order its elements were appended, and every
// read says after which one it was made. From that follow the dependencies:
//
//	T1 -ww-> T2   T2 appended next after T1
//	T1 -wr-> T2   T2 read T1's element as the last
//	T1 -rw-> T2   T2 appended next after what T1 read
//	T1 -rt-> T2   T1 was acknowledged before T2 began
//
// Under snapshot isolation every cycle has two rw edges in a row (Fekete et al.,
// "Making Snapshot Isolation Serializable", 2005), and Postgres, as one server,
// keeps to real time as well. So a cycle without two rw edges in a row is a
// violation, with rt edges like ww and wr.

// txnState is what is known of a transaction's end.
type txnState int

const (
	txnCommitted txnState = iota
	txnAborted
	txnUnknown
)

// listOp is an append of value, or a read that returned list.
type listOp struct {
	key   int
	read  bool
	value int
	list  []int
}

// txn is a transaction as its session saw it. began is before its snapshot was taken.
type txn struct {
	id           int
	who          string
	began, ended time.Time
	state        txnState
	ops          []listOp
}

// String prints the transaction.
func (t *txn) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "T%d (%s, %s)", t.id, t.who, [...]string{"committed", "aborted", "unknown"}[t.state])
	for _, op := range t.ops {
		if op.read {
			fmt.Fprintf(&b, " read %d: %v", op.key, op.list)
		} else {
			fmt.Fprintf(&b, " append %d: %d", op.key, op.value)
		}
	}
	return b.String()
}

// edgeKind is why one transaction must come before another.
type edgeKind uint8

const (
	ww edgeKind = iota
	wr
	rw
	rt
)

// String names the kind.
func (k edgeKind) String() string { return [...]string{"ww", "wr", "rw", "rt"}[k] }

type edge struct {
	to   int
	kind edgeKind
}

// checker finds what snapshot isolation forbids in a history.
type checker struct {
	txns   []*txn
	final  map[int][]int  // the lists at the end
	writer map[[2]int]int // index of the transaction that appended a value to a key
	edges  [][]edge       // of the transactions, then of instants (see realTime)
}

// checkLists returns a description of the first violation found, "" for none.
// final are the lists' last states, read when no transaction was running.
func checkLists(txns []*txn, final map[int][]int) string {
	c := &checker{txns: txns, final: final, writer: map[[2]int]int{}, edges: make([][]edge, len(txns))}
	for i, t := range txns {
		for _, op := range t.ops {
			if !op.read {
				c.writer[[2]int{op.key, op.value}] = i
			}
		}
	}
	for _, check := range []func() string{c.checkFinal, c.checkReads, c.checkInternal, c.checkCycles} {
		if bad := check(); bad != "" {
			return bad
		}
	}
	return ""
}

// checkFinal: all that was committed is there once, nothing that was aborted.
func (c *checker) checkFinal() string {
	seen := map[[2]int]bool{}
	for key, list := range c.final {
		for _, v := range list {
			at := [2]int{key, v}
			if seen[at] {
				return fmt.Sprintf("duplicate: %d is twice in list %d: %v", v, key, list)
			}
			seen[at] = true
			i, ok := c.writer[at]
			if !ok {
				return fmt.Sprintf("garbage: nobody appended %d, in list %d: %v", v, key, list)
			}
			switch t := c.txns[i]; t.state {
			case txnAborted:
				return fmt.Sprintf("aborted write: list %d has %d of %s", key, v, t)
			case txnUnknown:
				t.state = txnCommitted
			}
		}
	}
	for at, i := range c.writer {
		if t := c.txns[i]; t.state == txnCommitted && !seen[at] {
			return fmt.Sprintf("lost write: list %d lacks %d of %s: %v", at[0], at[1], t, c.final[at[0]])
		}
	}
	return ""
}

// others are the elements of a read that the transaction itself had not appended.
func others(t *txn, key int, list []int) []int {
	n := len(list)
	for n > 0 && slices.ContainsFunc(t.ops, func(op listOp) bool { return !op.read && op.key == key && op.value == list[n-1] }) {
		n--
	}
	return list[:n]
}

// checkReads: every read is a beginning of the list (its own writes apart), of
// committed transactions (G1a), none of which is cut in two (G1b).
func (c *checker) checkReads() string {
	for _, t := range c.txns {
		for _, op := range t.ops {
			if !op.read {
				continue
			}
			list, final := others(t, op.key, op.list), c.final[op.key]
			for i, v := range list {
				if i < len(final) && final[i] == v {
					continue
				}
				w, ok := c.writer[[2]int{op.key, v}]
				if ok && c.txns[w].state == txnAborted {
					return fmt.Sprintf("G1a, aborted read: %s read %d of %s", t, v, c.txns[w])
				}
				return fmt.Sprintf("incompatible order: %s, but list %d is %v in the end", t, op.key, final)
			}
			if len(list) > 0 && len(list) < len(final) {
				last, next := list[len(list)-1], final[len(list)]
				if w := c.writer[[2]int{op.key, last}]; w == c.writer[[2]int{op.key, next}] {
					return fmt.Sprintf("G1b, intermediate read: %s read a part of %s", t, c.txns[w])
				}
			}
		}
	}
	return ""
}

// checkInternal: within a transaction, reads of a list differ only by its own
// appends.
func (c *checker) checkInternal() string {
	for _, t := range c.txns {
		known, own := map[int][]int{}, map[int][]int{}
		for _, op := range t.ops {
			if !op.read {
				own[op.key] = append(own[op.key], op.value)
				if list, ok := known[op.key]; ok {
					known[op.key] = append(slices.Clone(list), op.value)
				}
				continue
			}
			if list, ok := known[op.key]; ok && !slices.Equal(list, op.list) {
				return fmt.Sprintf("internal: %s read %v where its snapshot and its own writes give %v", t, op.list, list)
			}
			mine := own[op.key]
			if len(op.list) < len(mine) || !slices.Equal(op.list[len(op.list)-len(mine):], mine) {
				return fmt.Sprintf("internal: %s does not see its own writes %v", t, mine)
			}
			known[op.key] = op.list
		}
	}
	return ""
}

func (c *checker) link(from, to int, kind edgeKind) {
	if from != to {
		c.edges[from] = append(c.edges[from], edge{to, kind})
	}
}

// buildEdges adds all dependencies of committed transactions.
func (c *checker) buildEdges() {
	for key, list := range c.final {
		for i := 1; i < len(list); i++ {
			c.link(c.writer[[2]int{key, list[i-1]}], c.writer[[2]int{key, list[i]}], ww)
		}
	}
	for i, t := range c.txns {
		if t.state == txnAborted {
			continue
		}
		for _, op := range t.ops {
			if !op.read {
				continue
			}
			list, final := others(t, op.key, op.list), c.final[op.key]
			if n := len(list); n > 0 {
				c.link(c.writer[[2]int{op.key, list[n-1]}], i, wr)
			}
			if n := len(list); n < len(final) {
				c.link(i, c.writer[[2]int{op.key, final[n]}], rw)
			}
		}
	}
	c.realTime()
}

// realTime links each transaction to those that began after its end. Instants stand
// between them, one for each end, in order: a transaction leads to the instant of
// its end, each instant to the next, and the last instant before a transaction's
// begin to it. So edges are few.
func (c *checker) realTime() {
	var done []int
	for i, t := range c.txns {
		if t.state == txnCommitted && !t.ended.IsZero() {
			done = append(done, i)
		}
	}
	slices.SortFunc(done, func(a, b int) int { return c.txns[a].ended.Compare(c.txns[b].ended) })
	first := len(c.txns)
	for n, i := range done {
		c.edges = append(c.edges, nil)
		c.link(i, first+n, rt)
		if n > 0 {
			c.link(first+n-1, first+n, rt)
		}
	}
	for i, t := range c.txns {
		if t.state == txnAborted {
			continue
		}
		n, _ := slices.BinarySearchFunc(done, t.began, func(d int, began time.Time) int { return cmp.Or(c.txns[d].ended.Compare(began), 1) })
		if n > 0 && c.txns[done[n-1]].ended.Before(t.began) {
			c.link(first+n-1, i, rt)
		}
	}
}

// checkCycles finds a cycle without two rw edges in a row: a cycle of the graph
// whose nodes are doubled, (node, whether we came by rw), from the second of which
// no rw edge leads on.
func (c *checker) checkCycles() string {
	c.buildEdges()
	doubled := make([][]edge, 2*len(c.edges))
	for i, out := range c.edges {
		for _, e := range out {
			if e.kind == rw {
				doubled[2*i] = append(doubled[2*i], edge{2*e.to + 1, rw})
				continue
			}
			doubled[2*i] = append(doubled[2*i], edge{2 * e.to, e.kind})
			doubled[2*i+1] = append(doubled[2*i+1], edge{2 * e.to, e.kind})
		}
	}
	component := components(doubled)
	size := map[int]int{}
	for _, n := range component {
		size[n]++
	}
	var best []edge
	start := 0
	for node, n := range component {
		if size[n] < 2 {
			continue
		}
		if cycle := shortestCycle(doubled, component, node); best == nil || len(cycle) < len(best) {
			best, start = cycle, node
		}
		if size[n] > 2000 || len(best) <= 4 {
			break // any one will do
		}
	}
	if best == nil {
		return ""
	}
	return c.describe(start, best)
}

// describe names the anomaly and prints its transactions.
func (c *checker) describe(start int, cycle []edge) string {
	count := map[edgeKind]int{}
	for _, e := range cycle {
		count[e.kind]++
	}
	name := "G-nonadjacent"
	switch {
	case count[rw] == 1:
		name = "G-single, read skew"
	case count[rw] == 0 && count[wr] == 0:
		name = "G0, write cycle"
	case count[rw] == 0:
		name = "G1c, circular information flow"
	}
	if count[rt] > 0 {
		name += ", in real time"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: a cycle of %d edges\n", name, len(cycle))
	at := start / 2
	for _, e := range cycle {
		if at < len(c.txns) {
			fmt.Fprintf(&b, "  %s\n", c.txns[at])
		}
		fmt.Fprintf(&b, "    -%s->\n", e.kind)
		at = e.to / 2
	}
	return b.String()
}

// components returns the number of each node's strongly connected component
// (Tarjan's algorithm, with a stack of its own: graphs are deep).
func components(graph [][]edge) []int {
	n := len(graph)
	index, low, component := make([]int, n), make([]int, n), make([]int, n)
	onStack := make([]bool, n)
	for i := range index {
		index[i], component[i] = -1, -1
	}
	type frame struct{ node, next int }
	var stack []int
	var calls []frame
	visited, found := 0, 0
	for root := range graph {
		if index[root] >= 0 {
			continue
		}
		calls = append(calls[:0], frame{root, 0})
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			v := f.node
			if f.next == 0 {
				index[v], low[v] = visited, visited
				visited++
				stack = append(stack, v)
				onStack[v] = true
			}
			if f.next < len(graph[v]) {
				to := graph[v][f.next].to
				f.next++
				if index[to] < 0 {
					calls = append(calls, frame{to, 0})
				} else if onStack[to] {
					low[v] = min(low[v], index[to])
				}
				continue
			}
			if low[v] == index[v] {
				for {
					u := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					onStack[u], component[u] = false, found
					if u == v {
						break
					}
				}
				found++
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				parent := calls[len(calls)-1].node
				low[parent] = min(low[parent], low[v])
			}
		}
	}
	return component
}

// shortestCycle returns the edges of a shortest cycle through the node, within its
// component.
func shortestCycle(graph [][]edge, component []int, start int) []edge {
	type step struct {
		from int
		edge edge
	}
	came := map[int]step{}
	queue := []int{start}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, e := range graph[v] {
			if component[e.to] != component[start] {
				continue
			}
			if _, known := came[e.to]; known {
				continue
			}
			came[e.to] = step{v, e}
			if e.to == start {
				var cycle []edge
				for at := start; ; {
					s := came[at]
					cycle = append(cycle, s.edge)
					if at = s.from; at == start {
						break
					}
				}
				slices.Reverse(cycle)
				return cycle
			}
			queue = append(queue, e.to)
		}
	}
	return nil
}
