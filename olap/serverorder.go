package olap

import (
	"context"
	"strings"
	"sync"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Text of a collation other than C that no column's dictionary holds, computed, constant or of several
// columns, is ranked by the server: only it knows its collations. Where rows are put in order that is
// once they are there. A comparison of two texts that have no ranks yet has no result (errUnranked);
// whoever computes many first computes all, then asks once, and computes again what had none.

// Ranker returns the places of distinct texts, of kind char(n) without their padding, in the order of a
// collation: those of equal texts, which a nondeterministic one has, are the same.
type Ranker func(ctx context.Context, c vector.Collation, texts []string) ([]int32, error)

const (
	// serverTexts is the most texts of a collation that the server is asked to sort for one execution.
	serverTexts = 10_000
	// Texts are sorted anew where others have come: that bounds how many are sent in all, and their bytes.
	serverSent  = 4 * serverTexts
	serverBytes = 16 << 20
)

var (
	errUnranked  = forward(plan.ReasonCollation, "order of a string that the column does not hold")
	errManyTexts = forward(plan.ReasonCollation, "order of many texts that the server has not ranked")
)

// textOrders is what an execution has learned of the order of texts. All of its goroutines share it.
type textOrders struct {
	ctx     context.Context
	server  Ranker
	mu      sync.RWMutex
	of      map[uint32]*textOrder // by collation
	sent    int
	bytes   int
	refused error
}

type textOrder struct {
	c      vector.Collation
	ranks  map[string]int32
	wanted map[string]struct{} // to be asked for
	// alike has, under a nondeterministic collation, the one of equal texts that stands for all: it stays so.
	alike map[string]string
}

// compare compares two texts, char(n) without padding. Where one has no rank both are wanted, and ok is
// false.
func (o *textOrders) compare(c vector.Collation, a, b string) (r int, ok bool) {
	o.mu.RLock()
	if t := o.of[c.OID]; t != nil {
		x, okX := t.ranks[a]
		y, okY := t.ranks[b]
		if okX && okY {
			o.mu.RUnlock()
			return int(x) - int(y), true
		}
	}
	o.mu.RUnlock()
	o.want(c, a, b)
	return 0, false
}

// want has texts ranked when the server is asked next. They may be views of a dictionary, which do not last.
func (o *textOrders) want(c vector.Collation, texts ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.of[c.OID]
	if t == nil {
		t = &textOrder{c: c, wanted: map[string]struct{}{}}
		if o.of == nil {
			o.of = map[uint32]*textOrder{}
		}
		o.of[c.OID] = t
	}
	for _, s := range texts {
		if _, known := t.ranks[s]; !known && len(t.wanted) <= serverTexts {
			t.wanted[strings.Clone(s)] = struct{}{}
		}
	}
}

// ask has the server rank what is wanted. The error is the same from the first on.
func (o *textOrders) ask() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.of {
		if len(t.wanted) > 0 && o.refused == nil {
			o.refused = o.askOne(t)
		}
	}
	return o.refused
}

func (o *textOrders) askOne(t *textOrder) error {
	n := len(t.ranks) + len(t.wanted)
	if o.sent += n; n > serverTexts || o.sent > serverSent {
		return errManyTexts
	}
	texts := make([]string, 0, n)
	for s := range t.ranks {
		texts = append(texts, s)
	}
	for s := range t.wanted {
		texts = append(texts, s)
	}
	for _, s := range texts {
		if o.bytes += len(s); o.bytes > serverBytes {
			return errManyTexts
		}
	}
	ranks := make([]int32, n)
	if n > 1 {
		var err error
		if ranks, err = o.server(o.ctx, t.c, texts); err != nil {
			if o.ctx.Err() != nil {
				return err
			}
			return forward(plan.ReasonCollation, "order of text: "+err.Error())
		}
	}
	known := len(t.ranks)
	t.ranks, t.wanted = make(map[string]int32, n), map[string]struct{}{}
	for i, s := range texts {
		t.ranks[s] = ranks[i]
	}
	if !t.c.Deterministic {
		t.equate(texts, ranks, known)
	}
	return nil
}

// equate finds what stands for each of the texts, of which the first are known.
func (t *textOrder) equate(texts []string, ranks []int32, known int) {
	if t.alike == nil {
		t.alike = map[string]string{}
	}
	first := make(map[int32]string, len(texts)) // by rank
	for i, s := range texts[:known] {
		first[ranks[i]] = t.alike[s]
	}
	for i, s := range texts[known:] {
		one, some := first[ranks[known+i]]
		if !some {
			one, first[ranks[known+i]] = s, s
		}
		t.alike[s] = one
	}
}

// same returns the text that stands for all that equal s under a nondeterministic collation, s being one of
// them. Where that is not known s is wanted, and ok is false.
func (o *textOrders) same(c vector.Collation, s string) (one string, ok bool) {
	o.mu.RLock()
	if t := o.of[c.OID]; t != nil {
		one, ok = t.alike[s]
	}
	o.mu.RUnlock()
	if !ok {
		o.want(c, s)
	}
	return one, ok
}

// rank returns the ranks of texts, which need not be distinct: those of several calls have nothing to do
// with each other.
func (o *textOrders) rank(c vector.Collation, texts []string) ([]int32, error) {
	o.want(c, texts...)
	if err := o.ask(); err != nil {
		return nil, err
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	ranks, t := make([]int32, len(texts)), o.of[c.OID]
	for i, s := range texts {
		ranks[i] = t.ranks[s]
	}
	return ranks, nil
}

// ordersOf returns what tells the order of texts; nil where the server is not asked.
func (x *execution) ordersOf() *textOrders {
	if x.opt.Rank == nil {
		return nil
	}
	return x.opt.orders
}

// settle computes with v until no comparison lacks an order that the server tells. f computes all that it
// can: what it has no order for has the error errUnranked then, and stays so if the server is not asked.
func (v *env) settle(f func() error) error {
	for {
		v.unranked = false
		if err := f(); err != nil || !v.unranked {
			return err
		}
		if err := v.orders.ask(); err != nil {
			if v.orders.ctx.Err() != nil {
				return err
			}
			return nil
		}
	}
}

// evalSettled computes one value.
func (v *env) evalSettled(e plan.Expr) (r vector.Value, err error) {
	if failed := v.settle(func() error {
		r, err = v.eval(e)
		return nil
	}); failed != nil {
		return r, failed
	}
	return r, err
}

// rankOf is the rank of d's strings in a collation, by the server where it is not known here.
func (x *execution) rankOf(d *dict, c vector.Collation) ([]int32, error) {
	ranks, err := d.rank(c)
	if err == nil || x.opt.Rank == nil || d.grows() {
		return ranks, err
	}
	if d.n > serverTexts {
		return nil, errManyTexts
	}
	texts := make([]string, d.n)
	for i := range texts {
		texts[i] = canonical(d.t.Kind, d.at(int64(i)))
	}
	return x.opt.orders.rank(c, texts)
}

// rankByServer makes integers of the keys of an ORDER BY whose order only the server knows.
func (x *execution) rankByServer(cols []rcol) error {
	for i := range cols {
		c := &cols[i]
		if !c.t.Kind.IsString() || c.t.Collation.C || x.opt.Rank == nil {
			continue
		}
		if c.str == nil && c.dict != nil {
			if _, err := c.dict.rank(c.t.Collation); err == nil {
				continue
			}
		}
		if err := x.rankColumn(c); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) rankColumn(c *rcol) error {
	n := max(len(c.str), len(c.v))
	if err := x.take(int64(n) * 8); err != nil {
		return err
	}
	numbers := make([]int64, n) // of each row's text
	index := map[string]int64{}
	codes := map[int64]int64{} // the number of a code's text
	var texts []string
	for row := range n {
		if c.null(uint32(row)) {
			continue
		}
		if c.str == nil {
			if k, known := codes[c.v[row]]; known {
				numbers[row] = k
				continue
			}
		}
		s := canonical(c.t.Kind, c.at(uint32(row)).Str)
		k, known := index[s]
		if !known {
			if len(texts) == serverTexts {
				return errManyTexts
			}
			k = int64(len(texts))
			index[s] = k
			texts = append(texts, s)
		}
		if numbers[row] = k; c.str == nil {
			codes[c.v[row]] = k
		}
	}
	ranks, err := x.opt.orders.rank(c.t.Collation, texts)
	if err != nil {
		return err
	}
	for row, k := range numbers {
		if !c.null(uint32(row)) {
			numbers[row] = int64(ranks[k])
		}
	}
	*c = rcol{t: vector.TypeOf(vector.Int8), v: numbers, nulls: c.nulls}
	return nil
}
