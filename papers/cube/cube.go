package cube

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Number is what values and weights are made of: fixed-point integers or doubles.
type Number interface{ int64 | float64 }

// Child is a reference from a consolidated element to another of its dimension.
type Child[N Number] struct {
	Element int // position in Dimension.Elements
	Weight  N   // times 10^Scale of the dimension
}

// Element is a base element (no children) or a consolidated one. The same child may
// occur more than once: the weights add up.
type Element[N Number] struct {
	Name     string
	Children []Child[N]
}

// Dimension is an axis of a cube.
type Dimension[N Number] struct {
	Name     string
	Elements []Element[N]
	Scale    int // decimals of the weights; 0 for doubles
}

// Cells are base cells: Paths[d][i] is the element of cell i in dimension d.
type Cells[N Number] struct {
	Paths  [][]uint32
	Values []N
}

// Cube is a data cube: dimensions, and filled base cells sorted by their paths. It does
// not change once it is made; any number of goroutines may read it.
type Cube[N Number] struct {
	dims    []Dimension[N]
	depths  []int // by dimension: edges of the longest way down
	cells   Cells[N]
	scale   int
	absSum  int64 // sum of the values' magnitudes, at most MaxInt64; fixed point only
	reaches [][][]reach[N]
}

// reach is a base element below some element, with the weight over all paths, at
// the scale of the dimension's depth.
type reach[N Number] struct {
	base   uint32
	weight N
}

// errRange says that a fixed-point result, or a weight over all paths, could leave
// 64 bits.
var errRange = errors.New("cube: beyond 64 bits")

// errMemory says that an executor would need more than Options.MemoryLimit.
var errMemory = errors.New("cube: beyond the memory limit")

// maxScale bounds decimals: 10^18 is the last power of ten within 64 bits.
const maxScale = 18

// New makes a cube. Values have scale decimals (0 for doubles). It keeps dims, and
// the cells' slices where they are sorted by path already. The error says which
// dimension or cell makes no sense: a child that is not there, a cycle, a cell at a
// consolidated element, a path that occurs twice.
func New[N Number](dims []Dimension[N], cells Cells[N], scale int) (*Cube[N], error) {
	c := &Cube[N]{dims: dims, cells: cells, scale: scale, depths: make([]int, len(dims)), reaches: make([][][]reach[N], len(dims))}
	if len(dims) == 0 || len(cells.Paths) != len(dims) {
		return nil, fmt.Errorf("cube: %d columns of paths for %d dimensions", len(cells.Paths), len(dims))
	}
	if scale < 0 || scale > maxScale || scale != 0 && isFloat[N]() {
		return nil, fmt.Errorf("cube: scale %d", scale)
	}
	for d := range dims {
		if err := c.flatten(d); err != nil {
			return nil, fmt.Errorf("dimension %s: %w", dims[d].Name, err)
		}
		if len(cells.Paths[d]) != len(cells.Values) {
			return nil, fmt.Errorf("cube: %d values, %d paths", len(cells.Values), len(cells.Paths[d]))
		}
	}
	errs := make([]error, len(dims))
	side(len(dims), func(d int) {
		for i, e := range cells.Paths[d] {
			if int(e) >= len(dims[d].Elements) || len(dims[d].Elements[e].Children) > 0 {
				errs[d] = fmt.Errorf("cube: cell %d is not at a base element of %s", i, dims[d].Name)
				return
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	for i, v := range cells.Values {
		if v-v != 0 {
			return nil, fmt.Errorf("cube: the value of cell %d is not finite", i)
		}
	}
	if !isFloat[N]() {
		for _, v := range cells.Values {
			c.absSum = addSaturated(c.absSum, magnitude(int64(v)))
		}
	}
	if c.ascending() {
		return c, nil
	}
	c.sort()
	for i := 1; i < len(cells.Values); i++ {
		if c.compare(i-1, i) == 0 {
			return nil, fmt.Errorf("cube: cells %d and %d of the sorted fact table have the same path", i-1, i)
		}
	}
	return c, nil
}

// Len returns the number of filled base cells.
func (c *Cube[N]) Len() int { return len(c.cells.Values) }

// Dimensions returns the cube's dimensions, which must not be changed.
func (c *Cube[N]) Dimensions() []Dimension[N] { return c.dims }

// ResultScale returns the decimals of results: those of the values, and for each
// dimension those of the weights once for each edge of the longest way down.
func (c *Cube[N]) ResultScale() int {
	s := c.scale
	for d := range c.dims {
		s += c.dims[d].Scale * c.depths[d]
	}
	return s
}

// isFloat reports whether N is float64.
func isFloat[N Number]() bool {
	one := N(1)
	return one/2 != 0
}

func (c *Cube[N]) compare(i, j int) int {
	for _, p := range c.cells.Paths {
		if p[i] != p[j] {
			if p[i] < p[j] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// ascending reports whether every cell's path is greater than the one before.
func (c *Cube[N]) ascending() bool {
	const part = 1 << 16
	var not atomic.Bool
	side((c.Len()+part-1)/part, func(p int) {
		for i := max(p*part, 1); i < min((p+1)*part, c.Len()); i++ {
			if c.compare(i-1, i) >= 0 {
				not.Store(true)
				return
			}
		}
	})
	return !not.Load()
}

// sort puts the fact table into the order of its paths, into new slices where needed.
func (c *Cube[N]) sort() {
	n := c.Len()
	sorted := true
	for i := 1; i < n && sorted; i++ {
		sorted = c.compare(i-1, i) <= 0
	}
	if sorted {
		return
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, c.compare)
	paths := make([][]uint32, len(c.dims))
	for d := range paths {
		paths[d] = make([]uint32, n)
		for i, o := range order {
			paths[d][i] = c.cells.Paths[d][o]
		}
	}
	values := make([]N, n)
	for i, o := range order {
		values[i] = c.cells.Values[o]
	}
	c.cells = Cells[N]{Paths: paths, Values: values}
}

// flatten computes what every element of dimension d reaches. Paths shorter than the
// longest are lifted to its scale, so that weights of unlike depth can be added.
func (c *Cube[N]) flatten(d int) error {
	dim := &c.dims[d]
	n := len(dim.Elements)
	if n == 0 || n > math.MaxInt32 {
		return fmt.Errorf("%d elements", n)
	}
	if dim.Scale < 0 || dim.Scale > maxScale || dim.Scale != 0 && isFloat[N]() {
		return fmt.Errorf("scale %d", dim.Scale)
	}
	const unseen, open, done = 0, 1, 2
	state := make([]uint8, n)
	heights := make([]int, n)
	out := make([][]reach[N], n)
	lift := func(w N, edges int) (N, bool) {
		ok := true
		for range edges * dim.Scale {
			if w, ok = mul(w, 10); !ok || w == 0 {
				break
			}
		}
		return w, ok
	}
	// A way of its own down instead of recursion: hierarchies may be deep.
	type frame struct{ element, child int }
	for root := range n {
		if state[root] != unseen {
			continue
		}
		state[root] = open
		for stack := []frame{{root, 0}}; len(stack) > 0; {
			f := &stack[len(stack)-1]
			e := f.element
			children := dim.Elements[e].Children
			if f.child < len(children) {
				k := children[f.child].Element
				if w := children[f.child].Weight; w-w != 0 {
					return fmt.Errorf("%s: a weight that is not finite", dim.Elements[e].Name)
				}
				f.child++
				if k < 0 || k >= n {
					return fmt.Errorf("%s: child %d does not exist", dim.Elements[e].Name, k)
				}
				switch state[k] {
				case open:
					return fmt.Errorf("%s is below itself", dim.Elements[k].Name)
				case unseen:
					state[k] = open
					stack = append(stack, frame{k, 0})
				}
				continue
			}
			stack = stack[:len(stack)-1]
			state[e] = done
			if len(children) == 0 {
				out[e] = []reach[N]{{uint32(e), 1}}
				continue
			}
			for _, k := range children {
				heights[e] = max(heights[e], heights[k.Element]+1)
			}
			weights := map[uint32]N{}
			for _, k := range children {
				by, ok := lift(k.Weight, heights[e]-1-heights[k.Element])
				for _, r := range out[k.Element] {
					w, ok1 := mul(r.weight, by)
					s, ok2 := add(weights[r.base], w)
					ok = ok && ok1 && ok2
					weights[r.base] = s
				}
				if !ok {
					return errRange
				}
			}
			for b, w := range weights {
				out[e] = append(out[e], reach[N]{b, w})
			}
			slices.SortFunc(out[e], func(a, b reach[N]) int { return int(a.base) - int(b.base) })
		}
	}
	c.depths[d] = slices.Max(heights)
	if dim.Scale > 0 {
		for e := range out {
			for i := range out[e] {
				w, ok := lift(out[e][i].weight, c.depths[d]-heights[e])
				if !ok {
					return errRange
				}
				out[e][i].weight = w
			}
		}
	}
	c.reaches[d] = out
	return nil
}

// add and mul report whether a fixed-point result fits; doubles always do.
func add[N Number](a, b N) (N, bool) {
	s := a + b
	return s, isFloat[N]() || (s > a) == (b > 0)
}

func mul[N Number](a, b N) (N, bool) {
	p := a * b
	if isFloat[N]() || a == 0 {
		return p, true
	}
	hi, lo := bits.Mul64(uint64(magnitude(int64(a))), uint64(magnitude(int64(b))))
	return p, hi == 0 && lo < math.MaxInt64 && int64(b) != math.MinInt64 && int64(a) != math.MinInt64
}

// magnitude returns |v|, MaxInt64 for MinInt64.
func magnitude(v int64) int64 {
	if v == math.MinInt64 {
		return math.MaxInt64
	}
	return max(v, -v)
}

func addSaturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func mulSaturated(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}
