package tpch

import "pgaccel/internal/tpcdata"

func appendRegion(b []byte, key int) []byte {
	r := rowRand(seedRegion, key)
	w := rowTo(b)
	w.Number(key)
	w.Text(tpcdata.Regions[key])
	w.comment(&r, 31, 115)
	w.Next()
	return w.B
}

func appendNation(b []byte, key int) []byte {
	r := rowRand(seedNation, key)
	w := rowTo(b)
	w.Number(key)
	w.Text(tpcdata.Nations[key].Name)
	w.Number(tpcdata.Nations[key].Region)
	w.comment(&r, 31, 114)
	w.Next()
	return w.B
}

const balanceMin, balanceMax = -999_99, 9999_99 // of suppliers and customers

func appendSupplier(b []byte, key int) []byte {
	r := rowRand(seedSupplier, key)
	nation := r.Below(len(tpcdata.Nations))
	w := rowTo(b)
	w.Number(key)
	w.tagged("Supplier#", key)
	w.address(&r)
	w.Number(nation)
	w.phone(&r, nation)
	w.Money(r.Between(balanceMin, balanceMax))
	start := len(w.B)
	w.comment(&r, 25, 100)
	if opinion := opinionOn(key); opinion != "" {
		overwrite(w.B[start:len(w.B)-1], &r, "Customer ", opinion)
	}
	w.Next()
	return w.B
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
	w := rowTo(b)
	w.Number(key)
	var colors [5]int
	tpcdata.DrawColors(&r, colors[:])
	for i, c := range colors {
		if i > 0 {
			w.B = append(w.B, ' ')
		}
		w.B = append(w.B, tpcdata.Colors[c]...)
	}
	w.Tab()
	maker, brand := r.Between(1, 5), r.Between(1, 5)
	w.B = append(w.B, "Manufacturer#"...)
	w.Number(maker)
	w.B = append(w.B, "Brand#"...)
	w.Number(10*maker + brand)
	w.B = tpcdata.AppendPartType(w.B, &r)
	w.Tab()
	w.Number(r.Between(1, 50))
	w.B = tpcdata.AppendContainer(w.B, &r)
	w.Tab()
	w.Money(tpcdata.RetailPrice(key))
	w.comment(&r, 5, 22)
	w.Next()
	return w.B
}

// suppliersOfPart is how many suppliers have a part.
const suppliersOfPart = 4

// supplierOf is the i-th (0..3) supplier of a part.
func supplierOf(part, i, suppliers int) int {
	return (part+i*(suppliers/suppliersOfPart+(part-1)/suppliers))%suppliers + 1
}

func appendPartsupp(b []byte, part, suppliers int) []byte {
	r := rowRand(seedPartsupp, part)
	w := rowTo(b)
	for i := range suppliersOfPart {
		w.Number(part)
		w.Number(supplierOf(part, i, suppliers))
		w.Number(r.Between(1, 9999))
		w.Money(r.Between(1_00, 1000_00))
		w.comment(&r, 49, 198)
		w.Next()
	}
	return w.B
}

func appendCustomer(b []byte, key int) []byte {
	r := rowRand(seedCustomer, key)
	nation := r.Below(len(tpcdata.Nations))
	w := rowTo(b)
	w.Number(key)
	w.tagged("Customer#", key)
	w.address(&r)
	w.Number(nation)
	w.phone(&r, nation)
	w.Money(r.Between(balanceMin, balanceMax))
	w.Text(r.Word(tpcdata.Segments))
	w.comment(&r, 29, 116)
	w.Next()
	return w.B
}
