package tpcds

import (
	"strconv"
	"strings"

	"pgaccel/internal/tpcdata"
)

const (
	incomeBands = 20
	shipModes   = 20
	households  = 7200 // all combinations of 20 incomes, 6 potentials, 10 numbers of dependents, 6 of vehicles

	// All combinations of 2 genders, 5 marital statuses, 7 educations, 20 estimates, 4 ratings and 7 numbers of
	// dependents, employed and in college; below scale factor 1 one of each demographicsStep of them.
	demographicsAll  = 2 * 5 * 7 * 20 * 4 * 7 * demographicsStep
	demographicsStep = 7 * 7
)

func (w *row) incomeBand(key int) {
	w.Number(key)
	w.Number((key-1)*10_000 + min(key-1, 1))
	w.Number(key * 10_000)
}

func (w *row) reason(key int) {
	w.Number(key)
	w.id("R", key)
	w.Text(reasons[(key-1)%len(reasons)] + strings.Repeat(", again", (key-1)/len(reasons)))
}

func (w *row) shipMode(key int) {
	w.Number(key)
	w.id("S", key)
	w.Text(modeTypes[(key-1)%len(modeTypes)])
	w.Text(modeCodes[(key-1)/len(modeTypes)%len(modeCodes)])
	w.Text(carriers[(key-1)%len(carriers)])
	w.Text(spelled(key * 7919))
}

// digit takes the last digit off a number of mixed radixes.
func digit(n *int, radix int) int {
	d := *n % radix
	*n /= radix
	return d
}

func (w *row) demographics(key, step int) {
	n := (key-1)*step + (key-1)%step
	w.Number(key)
	college, employed := digit(&n, 7), digit(&n, 7)
	w.Text(genders[digit(&n, len(genders))])
	w.Text(maritals[digit(&n, len(maritals))])
	w.Text(educations[digit(&n, len(educations))])
	w.Number(500 * (digit(&n, 20) + 1))
	w.Text(credits[digit(&n, len(credits))])
	w.Number(digit(&n, 7))
	w.Number(employed)
	w.Number(college)
}

func (w *row) household(key int) {
	n := key - 1
	w.Number(key)
	w.Number(digit(&n, incomeBands) + 1)
	w.Text(potentials[digit(&n, len(potentials))])
	w.Number(digit(&n, 10))
	w.Number(digit(&n, 6) - 1)
}

// address writes street, city, county, state, zip, country and offset of a place in one of the first
// states by weight. Where some attributes are not known it writes nulls.
func (w *row) address(state int, complete bool) {
	miss := func() bool { return !complete && w.miss() }
	if !miss() {
		w.Number(w.r.Between(1, 999))
	}
	if !miss() {
		w.Text(strings.Join([]string{w.r.Word(streetNames), w.r.Word(streetNames)}[:w.r.Between(1, 2)], " "))
	}
	if !miss() {
		w.Text(w.r.Word(streetTypes))
	}
	if !miss() {
		w.Text("Suite " + strconv.Itoa(10*w.r.Below(50)))
	}
	if !miss() {
		w.Text(cities[skewed(&w.r, len(cities))])
	}
	s := states[state]
	if !miss() {
		w.Text(county(state, w.r.Below(s.counties)))
	}
	if !miss() {
		w.Text(s.code)
	}
	if !miss() {
		w.Text(zip(state, &w.r))
	}
	if !miss() {
		w.Text("United States")
	}
	if !miss() {
		w.Money(s.offset * 100)
	}
}

func (w *row) customerAddress(key int) {
	w.r = rowRand(seedAddress, key)
	w.Number(key)
	w.id("A", key)
	w.address(weighted[w.r.Below(len(weighted))], false)
	w.words(locations)
}

// addressOf is where a customer lives.
func addressOf(s *sizes, customer int) int {
	r := rowRand(seedCustomer, customer)
	return r.Between(1, s.addresses)
}

func (w *row) customer(s *sizes, key int) {
	w.r = rowRand(seedCustomer, key)
	address := w.r.Between(1, s.addresses)
	w.Number(key)
	w.id("C", key)
	w.key(w.r.Between(1, s.demographics))
	w.key(w.r.Between(1, households))
	w.Number(address)
	first := salesFirst + w.r.Below(salesDays)
	w.key(first + 30)
	w.key(first)
	gender := w.r.Below(2)
	w.words(salutations[gender])
	given, family := w.r.Word([][]string{menNames, womenNames}[gender]), lastNames[skewed(&w.r, len(lastNames))]
	if !w.miss() {
		w.Text(given)
	}
	if !w.miss() {
		w.Text(family)
	}
	if !w.miss() {
		w.flag(2)
	}
	w.number(1, 28)
	w.number(1, 12)
	w.number(1924, 1992)
	w.words(countries)
	w.Null() // c_login
	if !w.miss() {
		w.Text(given + "." + family + strconv.Itoa(key) + "@example.org")
	}
	w.key(salesFirst + salesDays - w.r.Below(365))
}

// promotions

func (w *row) promotion(s *sizes, key int) {
	w.r = rowRand(seedPromotion, key)
	start := salesFirst + w.r.Below(salesDays)
	w.Number(key)
	w.id("P", key)
	w.key(start)
	w.key(start + w.r.Between(5, 60))
	w.key(w.r.Between(1, s.items))
	w.Money(1000_00)
	w.Number(1)
	w.Text(spelled(key))
	for _, oneIn := range []int{2, 10, 4, 10, 4, 4, 2, 4} { // dmail, email, catalog, tv, radio, press, event, demo
		w.flag(oneIn)
	}
	w.sentence(20, 90)
	w.Text("Unknown")
	w.Text("N")
}

// itemOf draws what all revisions of an item share.
type itemOf struct{ category, class, brand, maker, size, color, unit int }

func drawItem(id int) itemOf {
	r := rowRand(seedItem, id)
	i := itemOf{category: r.Below(len(categories))}
	i.class = r.Below(len(categories[i.category].classes))
	i.brand = skewed(&r, brandsOfClass)
	i.maker = 1 + skewed(&r, makers)
	i.size, i.color, i.unit = r.Below(len(itemSizes)), r.Below(len(tpcdata.Colors)), r.Below(len(units))
	return i
}

func (w *row) item(key int) {
	v := revisionOf(key)
	i := drawItem(v.id)
	w.r = rowRand(seedItemRevision, key)
	class := categories[i.category].classes[i.class]
	price := 99 + skewed(&w.r, 9900)
	w.Number(key)
	w.id("I", v.id+1)
	w.revision(v)
	w.sentence(30, 190)
	if !w.miss() {
		w.Money(price)
	}
	if !w.miss() {
		w.Money(price * w.r.Between(30, 90) / 100)
	}
	w.Number((i.category+1)*1_000_000 + (i.class+1)*1000 + i.brand + 1)
	w.Text(spelled((i.category+1)*100+i.class) + " #" + strconv.Itoa(i.brand+1))
	w.Number(i.class + 1)
	if !w.miss() {
		w.Text(class)
	}
	w.Number(i.category + 1)
	if !w.miss() {
		w.Text(categories[i.category].name)
	}
	w.Number(i.maker)
	w.Text(spelled(i.maker))
	if !w.miss() {
		w.Text(itemSizes[i.size])
	}
	w.Padded(tpcdata.Colors[i.color][:3], w.r.Below(1_000_000), 9)
	if !w.miss() {
		w.Text(tpcdata.Colors[(i.color+v.number)%len(tpcdata.Colors)])
	}
	w.Text(units[i.unit])
	w.Text("Unknown")
	w.number(1, 100)
	w.Text(spelled(v.id + 1))
}
