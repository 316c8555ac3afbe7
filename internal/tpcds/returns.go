package tpcds

import "pgaccel/internal/tpcdata"

// returned is a line that comes back: some or all of its quantity, money in hundredths.
type returned struct {
	day, second, reason, quantity                     int
	amount, tax, fee, freight, cash, reversed, credit int
	by                                                buyer
}

func (o *order) drawReturn(r *tpcdata.Rand, l *line) returned {
	back := returned{day: max(o.day, l.shipDay) + r.Between(1, 90), second: secondOfDay(r), reason: r.Between(1, o.sizes.reasons)}
	back.quantity = r.Between(1, l.quantity)
	back.amount = l.price * back.quantity
	back.tax = back.amount * l.taxRate / 100
	back.fee = r.Between(50, 100_00)
	back.freight = l.list * back.quantity * r.Between(0, 50) / 100
	back.cash = back.amount * r.Between(0, 100) / 100
	back.reversed = (back.amount - back.cash) * r.Between(0, 100) / 100
	back.credit = back.amount - back.cash - back.reversed
	if back.by = o.ship; r.Below(5) == 0 { // somebody else brings it
		back.by = o.drawBuyer(r, r.Between(1, o.sizes.customers))
	}
	return back
}

// repaid writes the columns from quantity to net loss, which all channels have.
func (w *row) repaid(r *returned) {
	w.key(r.quantity)
	w.amount(r.amount)
	w.amount(r.tax)
	w.amount(r.amount + r.tax)
	w.amount(r.fee)
	w.amount(r.freight)
	w.amount(r.cash)
	w.amount(r.reversed)
	w.amount(r.credit)
	w.amount(r.tax + r.fee + r.freight)
}

func (o *order) storeReturn(w *row, l *line, r *returned) {
	w.key(r.day)
	w.key(r.second)
	w.Number(l.item)
	w.buyer(r.by)
	w.key(o.place)
	w.key(r.reason)
	w.Number(o.number)
	w.repaid(r)
}

func (o *order) catalogReturn(w *row, l *line, r *returned) {
	w.key(r.day)
	w.key(r.second)
	w.Number(l.item)
	w.buyer(o.bill)
	w.buyer(r.by)
	w.key(o.place)
	w.key(l.page)
	w.key(l.mode)
	w.key(l.warehouse)
	w.key(r.reason)
	w.Number(o.number)
	w.repaid(r)
}

func (o *order) webReturn(w *row, l *line, r *returned) {
	w.key(r.day)
	w.key(r.second)
	w.Number(l.item)
	w.buyer(o.bill)
	w.buyer(r.by)
	w.key(l.page)
	w.key(r.reason)
	w.Number(o.number)
	w.repaid(r)
}

// Stock is counted in weeks, from 1998-01-01 on.
const inventoryWeeks = 261

// rareOneIn is how many items have one that is out of stock most of the time.
const rareOneIn = 10

// appendInventory writes what the warehouses have of an item in a week.
func appendInventory(b []byte, week, id, warehouses int) []byte {
	w := row{Row: tpcdata.Row{B: b}, r: rowRand(seedInventory, week<<24+id)}
	day := salesFirst - 1 + 7*week
	for warehouse := range warehouses {
		w.Number(day)
		w.Number(keyAt(id, day))
		w.Number(warehouse + 1)
		quantity := w.r.Below(1000)
		if id%rareOneIn == 0 && w.r.Below(4) > 0 {
			quantity = skewed(&w.r, 20)
		}
		w.key(quantity)
		w.Next()
	}
	return w.B
}
