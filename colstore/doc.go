// Package colstore holds tables as versions of compressed columns, and what the
// stream has told about them. Queries and replication meet here and nowhere else.
package colstore
