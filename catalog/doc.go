// Package catalog describes the tables that pgaccel may copy: columns, types,
// unique keys and what identifies a table's shape, as immutable snapshots of the
// server's catalog. It does no I/O: package replica reads the server's catalog
// and builds the snapshots.
package catalog
