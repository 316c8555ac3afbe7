package tpcds

import "pgaccel/internal/tpcdata"

// channel is one of the three ways to sell.
type channel struct {
	seed                   uint64
	orders                 func(s *sizes) int
	fewestLines, mostLines int
	write                  func(o *order, w *row, l *line)
	writeReturn            func(o *order, w *row, l *line, r *returned)
}

const linesMost = 16

var (
	storeChannel = channel{seed: seedStoreSales, orders: func(s *sizes) int { return s.tickets }, fewestLines: 8, mostLines: linesMost,
		write: (*order).storeSale, writeReturn: (*order).storeReturn}
	catalogChannel = channel{seed: seedCatalogSales, orders: func(s *sizes) int { return s.catalogOrders }, fewestLines: 4, mostLines: 14,
		write: (*order).catalogSale, writeReturn: (*order).catalogReturn}
	webChannel = channel{seed: seedWebSales, orders: func(s *sizes) int { return s.webOrders }, fewestLines: 8, mostLines: linesMost,
		write: (*order).webSale, writeReturn: (*order).webReturn}
)

// returnedOneIn is how many lines have one that comes back.
const returnedOneIn = 10

// head draws what is counted before all else: the number of an order's lines, and a bit for each that is
// returned.
func (c *channel) head(r *tpcdata.Rand) (lines int, returns uint) {
	lines = r.Between(c.fewestLines, c.mostLines)
	for i := range lines {
		if r.Below(returnedOneIn) == 0 {
			returns |= 1 << i
		}
	}
	return lines, returns
}

// rows is how many rows order i has in sales, or in returns.
func (c *channel) rows(i int, returns bool) (n int) {
	r := rowRand(c.seed, i)
	lines, back := c.head(&r)
	if !returns {
		return lines
	}
	for ; back > 0; back &= back - 1 {
		n++
	}
	return n
}

// order is one order, or ticket, with its lines.
type order struct {
	channel *channel
	sizes   *sizes

	number, day, second int // number counts from 1
	bill, ship          buyer
	place, page         int // store; call center; web site
	n                   int
	returns             uint
	lines               [linesMost]line
}

// buyer is who pays, or who gets what was bought.
type buyer struct{ customer, demographics, household, address int }

// line has money in hundredths.
type line struct {
	id, item                         int // business key, its row at that time
	promotion, mode, warehouse, page int
	shipDay                          int
	quantity                         int

	wholesale, list, price, coupon, freight, taxRate int // of one; coupon and freight of all; hundredths of a percent
}

func (o *order) drawBuyer(r *tpcdata.Rand, customer int) buyer {
	b := buyer{customer: customer, demographics: r.Between(1, o.sizes.demographics), household: r.Between(1, households)}
	if r.Below(2) == 0 {
		b.address = addressOf(o.sizes, customer)
	} else {
		b.address = r.Between(1, o.sizes.addresses)
	}
	return b
}

// regulars is how many customers a day buy in all channels: one of regularOneIn orders is of theirs.
const regulars, regularOneIn = 8, 5

// followOneIn is how many catalog orders have one of a customer who bought the same in a store before.
const followOneIn = 4

// make draws order i (from 0).
func (o *order) make(i int) {
	r := rowRand(o.channel.seed, i)
	o.n, o.returns = o.channel.head(&r)
	o.number, o.day, o.second = i+1, salesDay(i, o.channel.orders(o.sizes)), secondOfDay(&r)
	customer := r.Between(1, o.sizes.customers)
	if r.Below(regularOneIn) == 0 {
		of := rowRand(seedDay, o.day*regulars+r.Below(regulars))
		customer = of.Between(1, o.sizes.customers)
	}
	ids := idsOf(o.sizes.items)
	for k := range o.n {
		for o.lines[k].id = o.drawID(&r, ids); o.has(o.lines[k].id, k); {
			o.lines[k].id = r.Below(ids)
		}
	}
	if o.channel == &catalogChannel && r.Below(followOneIn) == 0 {
		customer = o.follow(&r, customer)
	}
	o.bill = o.drawBuyer(&r, customer)
	if o.ship = o.bill; r.Below(7) == 0 { // a gift
		o.ship = o.drawBuyer(&r, r.Between(1, o.sizes.customers))
	}
	o.place, o.page = o.drawPlace(&r), r.Between(1, idsOf(o.sizes.pages))-1
	for k := range o.n {
		o.drawLine(&r, &o.lines[k])
	}
}

// drawID draws an item: half of what is sold are those that sell well.
func (o *order) drawID(r *tpcdata.Rand, ids int) int {
	if r.Below(2) == 0 {
		return skewed(r, ids)
	}
	return r.Below(ids)
}

// has reports whether one of the first k lines is of the item.
func (o *order) has(id, k int) bool {
	for _, l := range o.lines[:k] {
		if l.id == id {
			return true
		}
	}
	return false
}

// follow makes the first lines those of a ticket of the last months, and returns its customer.
func (o *order) follow(r *tpcdata.Rand, customer int) int {
	i := (o.number-1)*o.sizes.tickets/o.sizes.catalogOrders - r.Below(o.sizes.tickets/20+1)
	if i < 0 {
		return customer
	}
	ticket := order{channel: &storeChannel, sizes: o.sizes}
	ticket.make(i)
	// Those that came back are first.
	k := 0
	for _, back := range []uint{1, 0} {
		for j := 0; j < ticket.n && k < o.n; j++ {
			if ticket.returns>>j&1 == back {
				o.lines[k].id = ticket.lines[j].id
				k++
			}
		}
	}
	for ; k < o.n; k++ {
		for o.has(o.lines[k].id, k) {
			o.lines[k].id = r.Below(idsOf(o.sizes.items))
		}
	}
	return ticket.bill.customer
}

func (o *order) drawPlace(r *tpcdata.Rand) int {
	switch o.channel {
	case &storeChannel:
		return keyAt(r.Below(idsOf(o.sizes.stores)), o.day)
	case &catalogChannel:
		return keyAt(r.Below(idsOf(o.sizes.centers)), o.day)
	}
	return keyAt(r.Below(idsOf(o.sizes.sites)), o.day)
}

func (o *order) drawLine(r *tpcdata.Rand, l *line) {
	l.item = keyAt(l.id, o.day)
	l.promotion = r.Between(1, o.sizes.promotions)
	l.quantity = r.Between(1, 100)
	l.wholesale = r.Between(1_00, 100_00)
	l.list = l.wholesale * r.Between(100, 250) / 100
	l.price = l.list * r.Between(0, 100) / 100
	l.coupon = 0
	if r.Below(5) == 0 {
		l.coupon = l.price * l.quantity * r.Between(0, 100) / 100
	}
	l.taxRate = r.Between(0, 9)
	if o.channel == &storeChannel {
		return
	}
	l.mode, l.warehouse = r.Between(1, shipModes), r.Between(1, o.sizes.warehouses)
	l.shipDay = o.day + r.Between(2, 125)
	l.page = r.Between(1, o.sizes.catalogPages)
	if o.channel == &webChannel {
		l.page = keyAt(o.page, o.day)
	}
	l.freight = l.list * l.quantity * r.Between(0, 50) / 100
}

// appendSales writes the lines of an order.
func (o *order) appendSales(b []byte) []byte {
	w := row{Row: tpcdata.Row{B: b}, r: rowRand(o.channel.seed+1, o.number)}
	for k := range o.n {
		o.channel.write(o, &w, &o.lines[k])
		w.Next()
	}
	return w.B
}

// appendReturns writes what comes back of an order.
func (o *order) appendReturns(b []byte) []byte {
	w := row{Row: tpcdata.Row{B: b}, r: rowRand(o.channel.seed+2, o.number)}
	for k := range o.n {
		if o.returns>>k&1 == 0 {
			continue
		}
		l := &o.lines[k]
		r := o.drawReturn(&w.r, l)
		o.channel.writeReturn(o, &w, l, &r)
		w.Next()
	}
	return w.B
}

func (w *row) buyer(b buyer) {
	w.key(b.customer)
	w.key(b.demographics)
	w.key(b.household)
	w.key(b.address)
}

// ext are the amounts of a line.
type ext struct{ sales, paid, tax int }

func (l *line) ext() ext {
	e := ext{sales: l.price * l.quantity}
	e.paid = e.sales - l.coupon
	e.tax = e.paid * l.taxRate / 100
	return e
}

// prices writes the columns from quantity to coupon, which all channels have.
func (w *row) prices(l *line, e ext) {
	if w.miss() { // a quantity that is not known
	} else {
		w.Number(l.quantity)
	}
	w.amount(l.wholesale)
	w.amount(l.list)
	w.amount(l.price)
	w.amount((l.list - l.price) * l.quantity)
	w.amount(e.sales)
	w.amount(l.wholesale * l.quantity)
	w.amount(l.list * l.quantity)
	w.amount(e.tax)
	w.amount(l.coupon)
}

// amount writes hundredths or null.
func (w *row) amount(cents int) {
	if !w.miss() {
		w.Money(cents)
	}
}

func (o *order) storeSale(w *row, l *line) {
	e := l.ext()
	w.key(o.day)
	w.key(o.second)
	w.Number(l.item)
	w.buyer(o.bill)
	w.key(o.place)
	w.key(l.promotion)
	w.Number(o.number)
	w.prices(l, e)
	w.amount(e.paid)
	w.amount(e.paid + e.tax)
	w.amount(e.paid - l.wholesale*l.quantity)
}

// shipped writes the last columns of what is sent.
func (w *row) shipped(l *line, e ext) {
	w.amount(l.freight)
	w.amount(e.paid)
	w.amount(e.paid + e.tax)
	w.amount(e.paid + l.freight)
	w.amount(e.paid + l.freight + e.tax)
	w.amount(e.paid - l.wholesale*l.quantity)
}

func (o *order) catalogSale(w *row, l *line) {
	e := l.ext()
	w.key(o.day)
	w.key(o.second)
	w.key(l.shipDay)
	w.buyer(o.bill)
	w.buyer(o.ship)
	w.key(o.place)
	w.key(l.page)
	w.key(l.mode)
	w.key(l.warehouse)
	w.Number(l.item)
	w.key(l.promotion)
	w.Number(o.number)
	w.prices(l, e)
	w.shipped(l, e)
}

func (o *order) webSale(w *row, l *line) {
	e := l.ext()
	w.key(o.day)
	w.key(o.second)
	w.key(l.shipDay)
	w.Number(l.item)
	w.buyer(o.bill)
	w.buyer(o.ship)
	w.key(l.page)
	w.key(o.place)
	w.key(l.mode)
	w.key(l.warehouse)
	w.key(l.promotion)
	w.Number(o.number)
	w.prices(l, e)
	w.shipped(l, e)
}
