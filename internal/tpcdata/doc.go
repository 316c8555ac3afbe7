// Package tpcdata is what the generators of TPC-H and of the Star Schema Benchmark, which
// was made from it, have in common: value domains, random numbers, and how the rows of a
// table are written part by part.
package tpcdata
