// Command testcount reads the output of go test -json: it prints what failed, and
// at the end how many tests passed and failed, subtests included.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
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
			}
		case "fail", "build-fail":
			if e.Test != "" {
				failed++
			}
			fmt.Printf("FAIL  %s\n%s", key, strings.Join(output[key], ""))
		}
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}
