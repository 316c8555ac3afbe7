// Command gen writes the assembly of package simd: one group of kernels a run, to
// the files that avo's -out and -stubs name. scripts/simd.sh runs it for each.
// It is a module of its own so that nobody who builds pgaccel needs avo.
package main

import (
	"flag"
	"log"
	"maps"
	"slices"

	"github.com/mmcloughlin/avo/build"
)

// groups are the files: their kernels in the order in which they stand.
var groups = map[string]func(){
	"unpack":    unpackKernels,
	"filter":    filterKernels,
	"set":       setKernels,
	"values":    valueKernels,
	"arith":     arithKernels,
	"select":    selectKernels,
	"gatherfor": gatherFORKernels,
	"entries":   entryKernels,
	"runs":      runKernels,
	"byteset":   byteSetKernels,
}

func main() {
	name := flag.String("kernels", "", "group of kernels to write")
	flag.Parse()
	write, ok := groups[*name]
	if !ok {
		log.Fatalf("no group %q: there are %v", *name, slices.Sorted(maps.Keys(groups)))
	}
	write()
	build.Generate()
}
