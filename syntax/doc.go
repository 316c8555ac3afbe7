// Package syntax is the text of a statement as PostgreSQL's own grammar reads it (pg_query). A
// text is parsed once (Parse); what kind of statement it is, the tree that is planned, its parts
// and what stands for it in statistics are read from the one Text.
package syntax
