// Package docpage keeps parts of the pages in docs equal to what the code says: flags, metrics, views, reasons. The test of the
// package that knows them calls Section; `go test PACKAGE -update` writes the page anew.
package docpage
