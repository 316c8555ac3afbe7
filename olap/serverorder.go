package olap

import (
	"context"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Text of a collation other than C that no column's dictionary holds, computed or of several columns,
// is ranked by the server, once the rows are there that an ORDER BY puts in order: only it knows its
// collations.

// Ranker returns the places of distinct texts, of kind char(n) without their padding, in the order of a
// collation.
type Ranker func(ctx context.Context, c vector.Collation, texts []string) ([]int32, error)

// serverTexts is the most texts that the server is asked to sort for one ORDER BY.
const serverTexts = 10_000

// rankByServer makes integers of the keys of an ORDER BY whose order only the server knows.
func (x *execution) rankByServer(cols []rcol) error {
	for i := range cols {
		c := &cols[i]
		if !c.t.Kind.IsText() || c.t.Collation.C || x.opt.Rank == nil {
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
				return forward(plan.ReasonCollation, "order of many texts that the server has not ranked")
			}
			k = int64(len(texts))
			index[s] = k
			texts = append(texts, s)
		}
		if numbers[row] = k; c.str == nil {
			codes[c.v[row]] = k
		}
	}
	if len(texts) > 1 {
		ranks, err := x.opt.Rank(x.ctx, c.t.Collation, texts)
		if err != nil {
			return forward(plan.ReasonCollation, "order of text: "+err.Error())
		}
		for row, k := range numbers {
			if !c.null(uint32(row)) {
				numbers[row] = int64(ranks[k])
			}
		}
	}
	*c = rcol{t: vector.TypeOf(vector.Int8), v: numbers, nulls: c.nulls}
	return nil
}
