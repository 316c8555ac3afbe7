package cube

import (
	"context"
	"math/big"
)

// reference computes the query by its definition: for each target cell and each filled
// base cell, the weights are found by walking the hierarchies. Fixed point is computed
// with integers of any size. It is for tests: its time is the product of everything.
func reference[N Number](ctx context.Context, c *Cube[N], q Query, opt Options) ([]Result[N], error) {
	return each(c, q, func(m *aggregationMap[N]) (Result[N], error) {
		var r Result[N]
		var path []int
		for number := range m.targets {
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			path = m.area.Elements(number, path)
			filled := false
			sum, exact := N(0), new(big.Int)
			for i, value := range c.cells.Values {
				weight, product, reached := N(1), big.NewInt(int64(value)), true
				for d, e := range path {
					w, x, ok := c.walk(d, e, c.cells.Paths[d][i], c.depths[d])
					weight *= w
					product.Mul(product, x)
					reached = reached && ok
				}
				if reached {
					filled = true
					sum += value * weight
					exact.Add(exact, product)
				}
			}
			if !filled {
				continue
			}
			if !isFloat[N]() {
				if !exact.IsInt64() {
					return r, errRange
				}
				sum = N(exact.Int64())
			}
			r.Targets = append(r.Targets, number)
			r.Values = append(r.Values, sum)
		}
		return r, nil
	})
}

// walk adds up the weights of all paths from element e of dimension d down to base, of
// which left edges are left: shorter paths are lifted to the dimension's scale.
func (c *Cube[N]) walk(d, e int, base uint32, left int) (weight N, exact *big.Int, reached bool) {
	children := c.dims[d].Elements[e].Children
	if len(children) == 0 {
		if e != int(base) {
			return 0, new(big.Int), false
		}
		ten := big.NewInt(int64(left * c.dims[d].Scale))
		return 1, ten.Exp(big.NewInt(10), ten, nil), true
	}
	exact = new(big.Int)
	for _, k := range children {
		w, x, ok := c.walk(d, k.Element, base, left-1)
		weight += w * k.Weight
		exact.Add(exact, x.Mul(x, big.NewInt(int64(k.Weight))))
		reached = reached || ok
	}
	return weight, exact, reached
}
