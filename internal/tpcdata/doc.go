// Package tpcdata is what the generators of TPC-H, TPC-DS, ClickBench and the Star Schema Benchmark have in common:
// random numbers, sentences, how the rows of a table are written part by part, and how tables are loaded
// (Source); the value domains of TPC-H, which the Star Schema Benchmark keeps.
package tpcdata
