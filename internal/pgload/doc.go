// Package pgload fills a Postgres table with generated rows in the way that leaves it
// ready to be measured: frozen by the COPY itself, in the order in which the rows come,
// the primary key built after the rows, vacuumed and analyzed.
package pgload
