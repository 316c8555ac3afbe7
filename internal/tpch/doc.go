// Package tpch is TPC-H: its eight tables at any scale factor, its 22 queries with the
// parameters that each run draws anew, and a loader.
//
// The rules are those of the TPC Benchmark H specification, revision 3, clauses 2.4 (the
// queries and their parameters) and 4.2 (the tables). The random numbers and the words of
// comments are our own: each row (each part for partsupp, each order for lineitem) has a
// generator of its own, seeded by table and row number, so that any part of a table can be
// made without the rest and the same scale always gives the same bytes. Results are
// therefore not comparable with published ones, and none of this is an audited run.
//
//	table      rows                      key
//	region     5                         0..4
//	nation     25                        0..24
//	supplier   10,000 SF                 1..rows
//	part       200,000 SF                1..rows
//	partsupp   4 a part                  part, supplier
//	customer   150,000 SF                1..rows
//	orders     1,500,000 SF              8 of every 32 numbers
//	lineitem   1..7 an order             order, line
//
// Below scale factor 0.025 suppliers come in hundreds: by the formula that spreads a part
// over suppliers, other counts give some parts the same supplier twice.
//
// Comments are cut out of random sentences. As in the original about 1.1 % of orders speak
// of special requests, and 5 of 10,000 suppliers each of a customer's complaints and
// recommendations.
package tpch
