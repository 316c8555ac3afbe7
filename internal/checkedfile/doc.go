// Package checkedfile has files that are whole or of no use: written beside their place and moved there, with a
// checksum that a reader compares.
//
//	magic     what the file is, and the version of its form; a line
//	32 bytes  SHA-256 of what follows
//	content
package checkedfile
