package ssb

import (
	"strconv"

	"pgaccel/internal/tpcdata"
)

const (
	dateRows = 2556
	// Orders leave room for shipping (121 days) and receipt (30) before the end of
	// 1998, so the last is of 1998-08-02.
	orderDays    = 2557 - 121 - 30
	commitFirst  = 30 // days between order and commit date
	commitLast   = 90
	linesLast    = 7
	quantityLast = 50
	discountLast = 10
	taxLast      = 8
)

// order is one order with its lines; values as in the columns' names.
type order struct {
	key, custkey, total int
	date                int // days after 1992-01-01
	priority            int // index into tpcdata.Priorities
	n                   int // lines in use
	lines               [linesLast]line
}

type line struct {
	partkey, suppkey, quantity, discount, tax int
	extendedprice, revenue, supplycost        int
	commit                                    int // days after 1992-01-01
	shipmode                                  int // index into tpcdata.ShipModes
}

// sizes are the key ranges that a scale factor gives.
type sizes struct{ customers, suppliers, parts, orders int }

// lineCount draws the number of an order's lines. It comes first, so that counting
// lines is cheap.
func lineCount(r *tpcdata.Rand) int { return r.Between(1, linesLast) }

// make draws order number (1..orders) into o.
func (o *order) make(s *sizes, number int) {
	r := rowRand(seedLineorder, number)
	o.n = lineCount(&r)
	o.key = tpcdata.OrderKey(number)
	o.date = r.Below(orderDays)
	o.custkey = r.Between(1, s.customers)
	if o.custkey%3 == 0 { // customers without orders
		if o.custkey++; o.custkey > s.customers {
			o.custkey -= 2
		}
	}
	o.priority = r.Below(len(tpcdata.Priorities))
	o.total = 0
	for i := range o.n {
		l := &o.lines[i]
		l.partkey = r.Between(1, s.parts)
		l.suppkey = r.Between(1, s.suppliers)
		l.quantity = r.Between(1, quantityLast)
		l.discount = r.Between(0, discountLast)
		l.tax = r.Between(0, taxLast)
		l.commit = o.date + r.Between(commitFirst, commitLast)
		l.shipmode = r.Below(len(tpcdata.ShipModes))
		p := tpcdata.RetailPrice(l.partkey)
		l.extendedprice = p * l.quantity
		l.revenue = l.extendedprice * (100 - l.discount) / 100
		l.supplycost = 6 * p / 10
		o.total += l.revenue * (100 + l.tax) / 100
	}
}

// dateKeys are the keys of the days in text, by days after 1992-01-01.
var dateKeys = func() (keys [orderDays + commitLast]string) {
	for i := range keys {
		keys[i] = strconv.Itoa(dateKey(day(i)))
	}
	return keys
}()

func (o *order) append(b []byte) []byte {
	number := func(v int) {
		b = strconv.AppendInt(b, int64(v), 10)
		b = append(b, '\t')
	}
	text := func(s string) {
		b = append(b, s...)
		b = append(b, '\t')
	}
	for i := range o.n {
		l := &o.lines[i]
		number(o.key)
		number(i + 1)
		number(o.custkey)
		number(l.partkey)
		number(l.suppkey)
		text(dateKeys[o.date])
		text(tpcdata.Priorities[o.priority])
		text("0") // lo_shippriority
		number(l.quantity)
		number(l.extendedprice)
		number(o.total)
		number(l.discount)
		number(l.revenue)
		number(l.supplycost)
		number(l.tax)
		text(dateKeys[l.commit])
		b = append(b, tpcdata.ShipModes[l.shipmode]...)
		b = append(b, '\n')
	}
	return b
}
