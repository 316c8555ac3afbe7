package tpch

import (
	"fmt"
	"strconv"

	"pgaccel/internal/tpcdata"
)

// parameters are those of the 22 queries in order.
var parameters = []parameter{
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"DELTA", between(r, 60, 120)}
	}, []string{"DELTA", "90"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"SIZE", between(r, 1, 50), "TYPE", r.Word(tpcdata.TypeMetals), "REGION", r.Word(tpcdata.Regions)}
	}, []string{"SIZE", "15", "TYPE", "BRASS", "REGION", "EUROPE"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"SEGMENT", r.Word(tpcdata.Segments), "DATE", fmt.Sprintf("1995-03-%02d", r.Between(1, 31))}
	}, []string{"SEGMENT", "BUILDING", "DATE", "1995-03-15"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"DATE", month(r, 1993, 1, 1997, 10)}
	}, []string{"DATE", "1993-07-01"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"REGION", r.Word(tpcdata.Regions), "DATE", year(r)}
	}, []string{"REGION", "ASIA", "DATE", "1994-01-01"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"DATE", year(r), "DISCOUNT", "0.0" + between(r, 2, 9), "QUANTITY", between(r, 24, 25)}
	}, []string{"DATE", "1994-01-01", "DISCOUNT", "0.06", "QUANTITY", "24"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		n := tpcdata.Different(r, 2, len(tpcdata.Nations))
		return []string{"NATION1", tpcdata.Nations[n[0]].Name, "NATION2", tpcdata.Nations[n[1]].Name}
	}, []string{"NATION1", "FRANCE", "NATION2", "GERMANY"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		n := tpcdata.Nations[r.Below(len(tpcdata.Nations))]
		return []string{"NATION", n.Name, "REGION", tpcdata.Regions[n.Region], "TYPE", string(tpcdata.AppendPartType(nil, r))}
	}, []string{"NATION", "BRAZIL", "REGION", "AMERICA", "TYPE", "ECONOMY ANODIZED STEEL"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"COLOR", r.Word(tpcdata.Colors)}
	}, []string{"COLOR", "green"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"DATE", month(r, 1993, 2, 1995, 1)}
	}, []string{"DATE", "1993-10-01"}},
	{func(r *tpcdata.Rand, scale float64) []string {
		return []string{"NATION", nation(r), "FRACTION", fmt.Sprintf("%.10f", 0.0001/scale)}
	}, []string{"NATION", "GERMANY", "FRACTION", "0.0001000000"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		n := tpcdata.Different(r, 2, len(tpcdata.ShipModes))
		return []string{"SHIPMODE1", tpcdata.ShipModes[n[0]], "SHIPMODE2", tpcdata.ShipModes[n[1]], "DATE", year(r)}
	}, []string{"SHIPMODE1", "MAIL", "SHIPMODE2", "SHIP", "DATE", "1994-01-01"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"WORD1", r.Word(tpcdata.AskedAdjectives), "WORD2", r.Word(tpcdata.AskedNouns)}
	}, []string{"WORD1", "special", "WORD2", "requests"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"DATE", month(r, 1993, 1, 1997, 12)}
	}, []string{"DATE", "1995-09-01"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"DATE", month(r, 1993, 1, 1997, 10)}
	}, []string{"DATE", "1996-01-01"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		values := []string{"BRAND", brand(r), "TYPE", r.Word(tpcdata.TypeClasses) + " " + r.Word(tpcdata.TypeFinish)}
		return append(values, numbered("SIZE", tpcdata.Different(r, 8, 50), 1)...)
	}, append([]string{"BRAND", "Brand#45", "TYPE", "MEDIUM POLISHED"}, numbered("SIZE", []int{49, 14, 23, 45, 19, 3, 36, 9}, 0)...)},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"BRAND", brand(r), "CONTAINER", string(tpcdata.AppendContainer(nil, r))}
	}, []string{"BRAND", "Brand#23", "CONTAINER", "MED BOX"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"QUANTITY", between(r, 312, 315)}
	}, []string{"QUANTITY", "300"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"QUANTITY1", between(r, 1, 10), "QUANTITY2", between(r, 10, 20), "QUANTITY3", between(r, 20, 30),
			"BRAND1", brand(r), "BRAND2", brand(r), "BRAND3", brand(r)}
	}, []string{"QUANTITY1", "1", "QUANTITY2", "10", "QUANTITY3", "20", "BRAND1", "Brand#12", "BRAND2", "Brand#23", "BRAND3", "Brand#34"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"COLOR", r.Word(tpcdata.Colors), "DATE", year(r), "NATION", nation(r)}
	}, []string{"COLOR", "forest", "DATE", "1994-01-01", "NATION", "CANADA"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return []string{"NATION", nation(r)}
	}, []string{"NATION", "SAUDI ARABIA"}},
	{func(r *tpcdata.Rand, _ float64) []string {
		return numbered("I", tpcdata.Different(r, 7, len(tpcdata.Nations)), tpcdata.CountryCode(0))
	}, numbered("I", []int{13, 31, 23, 29, 30, 18, 17}, 0)},
}

func between(r *tpcdata.Rand, lo, hi int) string { return strconv.Itoa(r.Between(lo, hi)) }

func nation(r *tpcdata.Rand) string { return tpcdata.Nations[r.Below(len(tpcdata.Nations))].Name }

func brand(r *tpcdata.Rand) string {
	return fmt.Sprintf("Brand#%d%d", r.Between(1, 5), r.Between(1, 5))
}

// year is the first day of one of 1993 to 1997.
func year(r *tpcdata.Rand) string { return fmt.Sprintf("%d-01-01", r.Between(1993, 1997)) }

// month is the first day of a month from that of one year to that of another.
func month(r *tpcdata.Rand, fromYear, from, toYear, to int) string {
	m := r.Between(fromYear*12+from-1, toYear*12+to-1)
	return fmt.Sprintf("%d-%02d-01", m/12, m%12+1)
}

// numbered names values NAME1, NAME2, ..., and adds a number to each.
func numbered(name string, values []int, plus int) (pairs []string) {
	for i, v := range values {
		pairs = append(pairs, name+strconv.Itoa(i+1), strconv.Itoa(v+plus))
	}
	return pairs
}
