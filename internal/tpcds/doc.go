// Package tpcds is retail data and statements after TPC-DS: its 24 tables at any scale factor, 99 statements of
// the shapes of its 99 queries with parameters that each run draws anew, and a loader.
//
// Tables, columns and types are those of the TPC Benchmark DS specification, version 3, clause 2, the numbers
// of rows those of its table 3-2. Values, their distributions and the texts of the statements are our own:
// each row (each order for sales and returns) has a generator of its own, seeded by table and row number, so
// that any part of a table can be made without the rest and the same scale always gives the same bytes. No
// result is comparable with published ones, and none of this is an audited run.
//
//	table                        rows
//	store_sales, store_returns   240,000 SF tickets of 8..16 lines; one of ten comes back
//	catalog_sales, _returns      160,000 SF orders of 4..14 lines
//	web_sales, web_returns       60,000 SF orders of 8..16 lines
//	inventory                    261 weeks of each item's business key and warehouse
//	customer, customer_address,  those of the specification at 1, 10 and 100, by the logarithm between; less by
//	item                         the factor below 1, but for 600 items at least
//	customer_demographics        1,920,800; 39,200 below scale factor 1
//	others                       those of the specification at 1, 10 and 100, by the logarithm between
//
// What is skewed: orders by day (a day of August to October has 1.6 times, one of November or December 2.8 times
// the sales of one before), items, brands, makers, last names, cities and zip codes by rank, addresses by state, sales by hour. A
// foreign key of a sale is null in 4.5 per cent of the rows, an amount in 2.5. Orders come in the order of days.
// A fifth of a day's orders are of eight customers, who buy in all channels; a quarter of the catalog orders are
// of what the customer has bought in a store in the last three months, first what came back.
//
// Items, stores, call centers, web sites and pages change slowly: of each three business keys one has one row, one
// two and one three, which hold one after another, and a sale refers to the row that held on its day.
package tpcds
