// Command testcount reads the output of go test -json: it prints what failed or did not end, and
// at the end how many tests passed and failed, subtests included.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

func main() {
	var passed, failed, skipped int
	var unfinished []string // package and test
	output := map[string][]string{}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text())
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			output[key] = append(output[key], e.Output)
		case "pass":
			if e.Test == "" {
				fmt.Printf("ok    %-40s %6.1fs\n", e.Package, e.Elapsed)
				break
			}
			passed++
			delete(output, key)
		case "skip":
			if e.Test != "" {
				skipped++
				delete(output, key)
			}
		case "fail", "build-fail":
			if e.Test != "" {
				failed++
			}
			fmt.Printf("FAIL  %s\n%s", key, strings.Join(output[key], ""))
			delete(output, key)
			if e.Test == "" {
				unfinished = append(unfinished, printUnfinished(output, e.Package)...)
			}
		}
	}
	for _, key := range unfinished {
		fmt.Println("unfinished:", key)
	}
	fmt.Printf("%d passed, %d failed, %d unfinished, %d skipped\n", passed, failed, len(unfinished), skipped)
	if failed > 0 || len(unfinished) > 0 || passed == 0 {
		os.Exit(1)
	}
}

// printUnfinished prints what the tests of a package had written that neither passed nor failed,
// and returns their keys: the package ended in them, by a panic or because its time was over.
// The stacks of goroutines are in what they wrote.
func printUnfinished(output map[string][]string, pkg string) []string {
	var tests []string
	for _, key := range slices.Sorted(maps.Keys(output)) {
		if of, _, _ := strings.Cut(key, " "); of == pkg {
			fmt.Printf("UNFINISHED  %s\n%s", key, strings.Join(output[key], ""))
			tests = append(tests, key)
		}
	}
	return tests
}
