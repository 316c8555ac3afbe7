package tpch

import "pgaccel/internal/tpcdata"

const (
	// Orders leave room for shipping and receipt before the end of 1998, so the last is of
	// 1998-08-02.
	orderDays    = dayCount - shipLast - receiptLast
	shipLast     = 121 // days between order and ship date, from 1
	receiptLast  = 30  // days between ship and receipt date, from 1
	commitFirst  = 30  // days between order and commit date
	commitLast   = 90
	linesLast    = 7
	quantityLast = 50
	discountLast = 10
	taxLast      = 8
)

// order is one order with its lines; values as in the columns' names, money in hundredths.
type order struct {
	number, key, custkey int
	date, priority       int // day; index into tpcdata.Priorities
	clerk                int
	n                    int // lines in use
	lines                [linesLast]line
}

type line struct {
	partkey, suppkey, quantity, extendedprice, discount, tax int
	ship, commit, receipt                                    int // days
	returned                                                 int // 0, 1: accepted, returned
	instruct, mode                                           int // indexes into instructions, tpcdata.ShipModes
}

var instructions = []string{"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"}

// lineCount draws the number of an order's lines. It comes first, so that counting
// lines is cheap.
func lineCount(r *tpcdata.Rand) int { return r.Between(1, linesLast) }

// make draws order number (1..orders) into o.
func (o *order) make(s *sizes, number int) {
	r := rowRand(seedOrder, number)
	o.n = lineCount(&r)
	o.number, o.key = number, tpcdata.OrderKey(number)
	// Customers whose key is a multiple of 3 have no orders.
	k := r.Below(s.customers - s.customers/3)
	o.custkey = k/2*3 + k%2 + 1
	o.date = r.Below(orderDays)
	o.priority = r.Below(len(tpcdata.Priorities))
	o.clerk = r.Between(1, s.clerks)
	for i := range o.n {
		l := &o.lines[i]
		l.partkey = r.Between(1, s.parts)
		l.suppkey = supplierOf(l.partkey, r.Below(suppliersOfPart), s.suppliers)
		l.quantity = r.Between(1, quantityLast)
		l.extendedprice = l.quantity * tpcdata.RetailPrice(l.partkey)
		l.discount = r.Between(0, discountLast)
		l.tax = r.Between(0, taxLast)
		l.ship = o.date + r.Between(1, shipLast)
		l.commit = o.date + r.Between(commitFirst, commitLast)
		l.receipt = l.ship + r.Between(1, receiptLast)
		l.returned = r.Below(2)
		l.instruct = r.Below(len(instructions))
		l.mode = r.Below(len(tpcdata.ShipModes))
	}
}

func (l *line) open() bool { return l.ship > currentDay }

// status is F where all lines have been shipped, O where none has, else P.
func (o *order) status() string {
	open := 0
	for i := range o.n {
		if o.lines[i].open() {
			open++
		}
	}
	switch open {
	case 0:
		return "F"
	case o.n:
		return "O"
	}
	return "P"
}

// total is the sum of the lines' prices, discounts and taxes included, rounded at last.
func (o *order) total() int {
	sum := 0
	for i := range o.n {
		l := &o.lines[i]
		sum += l.extendedprice * (100 - l.discount) * (100 + l.tax)
	}
	return (sum + 5000) / 10000
}

func (o *order) append(b []byte) []byte {
	r := rowRand(seedOrderComment, o.number)
	w := rowTo(b)
	w.Number(o.key)
	w.Number(o.custkey)
	w.Text(o.status())
	w.Money(o.total())
	w.Text(days[o.date])
	w.Text(tpcdata.Priorities[o.priority])
	w.tagged("Clerk#", o.clerk)
	w.Number(0) // o_shippriority
	w.comment(&r, 19, 78)
	w.Next()
	return w.B
}

func (o *order) appendLines(b []byte) []byte {
	r := rowRand(seedLineComment, o.number)
	w := rowTo(b)
	for i := range o.n {
		l := &o.lines[i]
		flag, status := "N", "F"
		if l.receipt <= currentDay {
			flag = "AR"[l.returned : l.returned+1]
		}
		if l.open() {
			status = "O"
		}
		w.Number(o.key)
		w.Number(l.partkey)
		w.Number(l.suppkey)
		w.Number(i + 1)
		w.Money(l.quantity * 100)
		w.Money(l.extendedprice)
		w.Money(l.discount)
		w.Money(l.tax)
		w.Text(flag)
		w.Text(status)
		w.Text(days[l.ship])
		w.Text(days[l.commit])
		w.Text(days[l.receipt])
		w.Text(instructions[l.instruct])
		w.Text(tpcdata.ShipModes[l.mode])
		w.comment(&r, 10, 43)
		w.Next()
	}
	return w.B
}
