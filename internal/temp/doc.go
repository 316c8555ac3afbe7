// Package temp has the temporary files of queries: what memory does not hold lies there while a
// query runs, and its result until it has been read.
//
// A file has no name: it is unlinked when it is made (O_TMPFILE where there is such), so that it
// goes with its descriptor, whatever ends the process. All files of a Space together have one limit.
// They are written at their end only and read anywhere, by any goroutines.
package temp
