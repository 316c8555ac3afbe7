// Package inspect says what is in a data directory (--data-dir), for people: which
// checkpoint, which tables, and what a file of it holds. It only reads, and takes no lock,
// so that it serves beside a running pgaccel, too: what that removes meanwhile is an error
// that says so. Package colstore reads the bytes; docs/format.md draws them.
package inspect
