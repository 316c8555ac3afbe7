// Package ssb is the Star Schema Benchmark: its five tables at any scale factor,
// its 13 queries, and a loader.
//
// The rules are those of O'Neil, O'Neil, Chen, "Star Schema Benchmark", revision 3
// (2009), and, where the paper is silent, of the original dbgen. The random numbers
// are our own: each row (each order, for lineorder) has a generator of its own, seeded
// by table and row number, so that any part of a table can be made without the rest
// and the same scale always gives the same bytes.
//
//	table      rows                                    key
//	customer   30,000 SF                               1..rows
//	supplier   2,000 SF                                1..rows
//	part       200,000 floor(1 + log2 SF)              1..rows
//	dates      2,556 (1992-01-01 .. 1998-12-30)        yyyymmdd
//	lineorder  1,500,000 SF orders of 1..7 lines       order number, 8 of every 32 used; line
//
// Below scale factor 1, where the paper says nothing, part has 200,000 SF rows. dates
// has one day less than seven years, as in the original.
//
// Money is in hundredths, as in the original: a part costs 90000 + (key/10) mod 20001 +
// 100 (key mod 1000), lo_extendedprice is that times lo_quantity, lo_revenue is
// lo_extendedprice (100 - lo_discount) / 100 and lo_supplycost is 6/10 of the part's
// price. Orders fall on the first 2,406 days (the last 151 are left for deliveries), and
// customers whose key is a multiple of 3 have none; what would be theirs goes to the
// next key.
//
// Different from the original, on purpose: it misspells two months, inverts
// d_lastdayinmonthfl, shifts d_daynuminweek by one day and leaves seasons empty on some
// days. None of the 13 queries can see these.
package ssb
