package cube

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// Sample is a cube made after one of the thesis' (section 5.1), with its queries.
type Sample struct {
	Name    string
	Cube    *Cube[float64]
	Queries []SampleQuery
}

// SampleQuery is a query of the thesis over one target area, with what tables 5.1 and
// 5.2 publish of it for the cube of full size.
type SampleQuery struct {
	Name      string
	Area      Area
	Relevant  int64 // source cells
	Filled    int64 // target cells
	Overall   int64 // target cells of the area
	Additions int64 // without preaggregation
}

// Filled base cells of the thesis' cubes.
const (
	BikerCells    = 281_057_088
	MachinesCells = 41_294_400
)

// The thesis publishes, of Biker: 8 dimensions, 6.68e12 cells of which 281,057,088 are
// filled (0.0042 %); of Machines: 6 dimensions, 226e9 cells, 41,294,400 filled (0.018 %),
// and the last dimension: 64 components, each part of one machine chosen at random, and
// 2000 machines; each 7th component is part of exactly 1000 of them. The other
// dimensions and the target areas are not published. They are chosen here so that the
// products of the dimensions' elements, the shares of relevant cells, the numbers of
// target cells, filled and overall, and the additions a cell come out as published:
//
//	      relevant  overall            filled          additions a relevant cell
//	B1    100 %     1                  1               1
//	B2    100 %     228 = 12 * 19      228             17.87 (here 4.5 * 4)
//	B3    100 %     17460 = 97*12*15   17460           15.17 (here 3 * 4.5 * 1.125)
//	M1    100 %     1                  1               1
//	M2    15.1 %    2519 = 229 * 11    2519            228.2 (here 229/2 * 2)
//	M3    71.5 %    874437 = 2001*23*19  13971 = 7*1995.9  155.4 (here about 158)
//
// In scaled cubes one dimension (customers, orders) shrinks, the others keep their size,
// so that fill degrees stay. Values are whole and weights halves at the finest, so that
// sums of doubles are exact in any order.

// dimension collects elements.
type dimension struct{ Dimension[float64] }

func (d *dimension) add(name string, children ...Child[float64]) int {
	d.Elements = append(d.Elements, Element[float64]{Name: name, Children: children})
	return len(d.Elements) - 1
}

// bases adds n base elements and returns references to them, of weight 1.
func (d *dimension) bases(n int) (all []Child[float64]) {
	for i := range n {
		all = append(all, Child[float64]{d.add(fmt.Sprint(d.Name, " ", i+1)), 1})
	}
	return all
}

func newDimension(name string) *dimension {
	return &dimension{Dimension[float64]{Name: name}}
}

// flat is a dimension of n base elements and one above all of them, with the given
// weights (none: 1).
func flat(name string, n int, weights ...float64) *dimension {
	d := newDimension(name)
	all := d.bases(n)
	for i, w := range weights {
		all[i].Weight = w
	}
	d.add("All", all...)
	return d
}

// Biker makes a cube of about the given number of filled cells, at most BikerCells.
func Biker(cells int) (*Sample, error) {
	products := newDimension("Products")
	groups, focus := make([][]Child[float64], 13), make([][]Child[float64], 2)
	for i, c := range products.bases(1984) {
		groups[i%13] = append(groups[i%13], c)
		if i%8 == 0 {
			focus[i/8%2] = append(focus[i/8%2], c)
		}
	}
	var groupElements, allGroups []int
	for i, g := range groups {
		groupElements = append(groupElements, products.add(fmt.Sprint("Group ", i+1), g...))
	}
	for i, g := range focus {
		allGroups = append(allGroups, products.add(fmt.Sprint("Focus ", i+1), g...))
	}
	allProducts := products.add("All", childrenOf(groupElements)...)
	allGroups = append(groupElements, allGroups...)

	// 97 elements above the customers: 90 cities, 6 countries, and all.
	const otherElements = 2000 * 5 * 12 * 19 * 4 * 7 * 3
	customers := newDimension("Customers")
	cities := make([][]Child[float64], 90)
	for i, c := range customers.bases(max(90, int(6.68e12*float64(cells)/BikerCells/otherElements)-97)) {
		cities[i%90] = append(cities[i%90], c)
	}
	var regions, countries []int
	for i, c := range cities {
		regions = append(regions, customers.add(fmt.Sprint("City ", i+1), c...))
	}
	for i := range 6 {
		countries = append(countries, customers.add(fmt.Sprint("Country ", i+1), childrenOf(regions[i*15:i*15+15])...))
	}
	allCustomers := customers.add("All", childrenOf(countries)...)
	regions = append(append(regions, countries...), allCustomers)

	years := newDimension("Years")
	y := years.bases(6)
	first := years.add("First half", y[:3]...)
	last := years.add("Second half", y[3:]...)
	allYears := years.add("All", Child[float64]{first, 1}, Child[float64]{last, 1})
	years.add("Change", Child[float64]{y[5].Element, 1}, Child[float64]{y[4].Element, -1})
	years.add("To date", y[:4]...)
	years.add("Even", y[1], y[3], y[5])

	months := newDimension("Months")
	mo := months.bases(12)
	var halves []int
	for h := range 2 {
		var quarters []int
		for q := range 2 {
			quarters = append(quarters, months.add(fmt.Sprint("Quarter ", 2*h+q+1), mo[6*h+3*q:6*h+3*q+3]...))
		}
		halves = append(halves, months.add(fmt.Sprint("Half ", h+1), childrenOf(quarters)...))
	}
	allMonths := months.add("Year", childrenOf(halves)...)

	channels := flat("Channels", 4)
	datatypes := flat("Datatypes", 3, 1, -1, 0.5)
	measures := flat("Measures", 6, 1, 1, -1, -1, -1, 0.5)
	currencies := flat("Currencies", 2)

	dims := []*dimension{products, customers, channels, years, months, datatypes, measures, currencies}
	s, err := fill("Biker", dims, nil, cells)
	if err != nil {
		return nil, err
	}
	top := Area{{allProducts}, {allCustomers}, {4}, {allYears}, {allMonths}, {3}, {6}, {2}}
	s.query("B1", top, nil, BikerCells, 1, 1, 281057088)
	s.query("B2", top, Area{3: upTo(12), 4: upTo(19)}, BikerCells, 228, 228, 5021960992)
	s.query("B3", top, Area{0: allGroups, 1: regions, 3: upTo(12)}, BikerCells, 17460, 17460, 4262699168)
	return s, nil
}

// Machines makes a cube of about the given number of filled cells, at most
// MachinesCells.
func Machines(cells int) (*Sample, error) {
	const density = MachinesCells / (10. * 10 * 126 * 126 * 64)
	versions, plants, years, accounts := flat("Versions", 19), flat("Plants", 30), flat("Years", 10), flat("Accounts", 126)
	orders := flat("Orders", max(1, int(float64(cells)/density/(10*10*126*64)+0.5)))

	random := rand.New(rand.NewPCG(64, 2000))
	machines := newDimension("Machines")
	components := machines.bases(64)
	parts := make([][]Child[float64], 2000)
	single := map[int]bool{} // machines with a component of their own
	for i, c := range components {
		own := random.IntN(2000)
		chosen := []int{own}
		if i%7 == 0 {
			chosen = random.Perm(2000)[:1000]
		} else {
			single[own] = true
		}
		for _, m := range chosen {
			c.Weight = float64(1 + random.IntN(4))
			parts[m] = append(parts[m], c)
		}
	}
	var all, shared []int
	for m, p := range parts {
		if len(p) == 0 {
			continue // see below
		}
		e := machines.add(fmt.Sprint("Machine ", m+1), p...)
		all = append(all, e)
		if !single[m] && len(shared) < 229 {
			shared = append(shared, e)
		}
	}
	for len(machines.Elements) < 64+2000 {
		// Chance left machines without components. That makes them base elements, and no
		// cell is at them.
		all = append(all, machines.add("Machine without parts"))
	}
	allMachines := machines.add("All", components...)
	all = append(all, allMachines)

	dims := []*dimension{versions, plants, years, accounts, orders, machines}
	s, err := fill("Machines", dims, []int{0: 1, 1: 10, 2: 10, 3: 126, 5: 64}, cells)
	if err != nil {
		return nil, err
	}
	top := Area{{19}, {30}, {10}, {126}, {len(orders.Elements) - 1}, {allMachines}}
	plantsSelected := make([]int, 0, 23)
	for p := 3; p < 26; p++ { // 7 of the 10 with cells
		plantsSelected = append(plantsSelected, p)
	}
	s.query("M1", top, nil, MachinesCells, 1, 1, 41294400)
	s.query("M2", top, Area{2: upTo(11), 5: shared}, 6216000, 2519, 2519, 1418491200)
	s.query("M3", top, Area{0: upTo(19), 1: plantsSelected, 5: all}, 29534400, 13971, 874437, 4590532800)
	return s, nil
}

func childrenOf(elements []int) (all []Child[float64]) {
	for _, e := range elements {
		all = append(all, Child[float64]{e, 1})
	}
	return all
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// query adds a query over the area top with some of its lists replaced.
func (s *Sample) query(name string, top, with Area, relevant, filled, overall, additions int64) {
	area := append(Area(nil), top...)
	for d, list := range with {
		if list != nil {
			area[d] = list
		}
	}
	s.Queries = append(s.Queries, SampleQuery{name, area, relevant, filled, overall, additions})
}

// fill makes about n cells, spread evenly with random gaps over the combinations of the
// first use[d] base elements of each dimension (0 or missing: all of them).
func fill(name string, dims []*dimension, use []int, n int) (*Sample, error) {
	all := make([]Dimension[float64], len(dims))
	radix := make([]int, len(dims))
	places := 1.0
	for d := range dims {
		all[d] = dims[d].Dimension
		if d < len(use) && use[d] > 0 {
			radix[d] = use[d]
		} else {
			for radix[d] < len(all[d].Elements) && len(all[d].Elements[radix[d]].Children) == 0 {
				radix[d]++
			}
		}
		places *= float64(radix[d])
	}
	// Parts of the combinations are filled side by side, each from random numbers of its own,
	// so that cells are the same on any machine.
	parts := min(max(n>>16, 1), 256)
	gap := max(0, places/float64(max(n, 1))-1)
	filled := make([]Cells[float64], parts)
	border := func(part int) uint64 { return uint64(places * (float64(part) / float64(parts))) }
	side(parts, func(part int) {
		random := rand.New(rand.NewPCG(uint64(n), uint64(part<<8+len(dims))))
		out := Cells[float64]{Paths: make([][]uint32, len(dims)), Values: make([]float64, 0, n/parts+n/parts/32+16)}
		for d := range dims {
			out.Paths[d] = make([]uint32, 0, cap(out.Values))
		}
		for at := float64(border(part)) + gap*random.Float64(); uint64(at) < border(part+1); at += 1 + 2*gap*random.Float64() {
			left := uint64(at)
			for d := len(dims) - 1; d >= 0; d-- {
				q := left / uint64(radix[d])
				out.Paths[d] = append(out.Paths[d], uint32(left-q*uint64(radix[d])))
				left = q
			}
			out.Values = append(out.Values, float64(1+random.IntN(1000)))
		}
		filled[part] = out
	})
	cells := Cells[float64]{Paths: make([][]uint32, len(dims))}
	side(len(dims)+1, func(d int) {
		if d == len(dims) {
			cells.Values = make([]float64, 0, n+n/64)
			for _, f := range filled {
				cells.Values = append(cells.Values, f.Values...)
			}
			return
		}
		path := make([]uint32, 0, n+n/64)
		for _, f := range filled {
			path = append(path, f.Paths[d]...)
		}
		cells.Paths[d] = path
	})
	c, err := New(all, cells, 0)
	return &Sample{Name: name, Cube: c}, err
}

// side calls f for 0 to n-1 on all processors.
func side(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
