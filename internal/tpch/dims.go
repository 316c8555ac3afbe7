package tpch

import "pgaccel/internal/tpcdata"

func appendRegion(b []byte, key int) []byte {
	r := rowRand(seedRegion, key)
	w := row{b}
	w.number(key)
	w.text(tpcdata.Regions[key])
	w.comment(&r, 31, 115)
	w.next()
	return w.b
}

func appendNation(b []byte, key int) []byte {
	r := rowRand(seedNation, key)
	w := row{b}
	w.number(key)
	w.text(tpcdata.Nations[key].Name)
	w.number(tpcdata.Nations[key].Region)
	w.comment(&r, 31, 114)
	w.next()
	return w.b
}

const balanceMin, balanceMax = -999_99, 9999_99 // of suppliers and customers

func appendSupplier(b []byte, key int) []byte {
	r := rowRand(seedSupplier, key)
	nation := r.Below(len(tpcdata.Nations))
	w := row{b}
	w.number(key)
	w.tagged("Supplier#", key)
	w.address(&r)
	w.number(nation)
	w.phone(&r, nation)
	w.money(r.Between(balanceMin, balanceMax))
	start := len(w.b)
	w.comment(&r, 25, 100)
	if opinion := opinionOn(key); opinion != "" {
		overwrite(w.b[start:len(w.b)-1], &r, "Customer ", opinion)
	}
	w.next()
	return w.b
}

// opinionBlock is how many suppliers share one that customers complain of, and one that
// they recommend: 5 of 10,000 each.
const opinionBlock = 2000

// opinionOn is what the comment on a supplier has of customers, for most nothing.
func opinionOn(supplier int) string {
	r := rowRand(seedComplaint, (supplier-1)/opinionBlock)
	complaint := r.Below(opinionBlock)
	switch (supplier - 1) % opinionBlock {
	case complaint:
		return "Complaints"
	case (complaint + r.Between(1, opinionBlock-1)) % opinionBlock:
		return "Recommends"
	}
	return ""
}

// overwrite puts two words into a text of at least their length, in this order.
func overwrite(text []byte, r *tpcdata.Rand, first, second string) {
	at := r.Between(0, len(text)-len(first)-len(second))
	copy(text[at:], first)
	copy(text[r.Between(at+len(first), len(text)-len(second)):], second)
}

func appendPart(b []byte, key int) []byte {
	r := rowRand(seedPart, key)
	w := row{b}
	w.number(key)
	var colors [5]int
	tpcdata.DrawColors(&r, colors[:])
	for i, c := range colors {
		if i > 0 {
			w.b = append(w.b, ' ')
		}
		w.b = append(w.b, tpcdata.Colors[c]...)
	}
	w.tab()
	maker, brand := r.Between(1, 5), r.Between(1, 5)
	w.b = append(w.b, "Manufacturer#"...)
	w.number(maker)
	w.b = append(w.b, "Brand#"...)
	w.number(10*maker + brand)
	w.b = tpcdata.AppendPartType(w.b, &r)
	w.tab()
	w.number(r.Between(1, 50))
	w.b = tpcdata.AppendContainer(w.b, &r)
	w.tab()
	w.money(tpcdata.RetailPrice(key))
	w.comment(&r, 5, 22)
	w.next()
	return w.b
}

// suppliersOfPart is how many suppliers have a part.
const suppliersOfPart = 4

// supplierOf is the i-th (0..3) supplier of a part.
func supplierOf(part, i, suppliers int) int {
	return (part+i*(suppliers/suppliersOfPart+(part-1)/suppliers))%suppliers + 1
}

func appendPartsupp(b []byte, part, suppliers int) []byte {
	r := rowRand(seedPartsupp, part)
	w := row{b}
	for i := range suppliersOfPart {
		w.number(part)
		w.number(supplierOf(part, i, suppliers))
		w.number(r.Between(1, 9999))
		w.money(r.Between(1_00, 1000_00))
		w.comment(&r, 49, 198)
		w.next()
	}
	return w.b
}

func appendCustomer(b []byte, key int) []byte {
	r := rowRand(seedCustomer, key)
	nation := r.Below(len(tpcdata.Nations))
	w := row{b}
	w.number(key)
	w.tagged("Customer#", key)
	w.address(&r)
	w.number(nation)
	w.phone(&r, nation)
	w.money(r.Between(balanceMin, balanceMax))
	w.text(r.Word(tpcdata.Segments))
	w.comment(&r, 29, 116)
	w.next()
	return w.b
}
