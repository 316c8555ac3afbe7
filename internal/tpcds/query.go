package tpcds

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"pgaccel/internal/tpcdata"
)

// Query is one of the 99 statements.
type Query struct {
	Name     string // q01 .. q99
	number   int
	template string // with [NAME] in the places of parameters: NAME is a domain's (domainOf), NAME1, NAME2 are different values
}

const queryCount = 99

// Queries returns the statements in the benchmark's order.
func Queries() []Query {
	queries := make([]Query, queryCount)
	for i := range queries {
		name := fmt.Sprintf("q%02d", i+1)
		queries[i] = Query{name, i + 1, strings.TrimSpace(Source.Read(name + ".sql"))}
	}
	return queries
}

var placeholder = regexp.MustCompile(`\[([A-Z]+)([0-9]*)\]`)

// Draw returns the text with parameters that are drawn for a run: the same ones each time for the run.
func (q Query) Draw(run int, scale float64) string {
	r := rowRand(seedParameters, run*queryCount+q.number)
	drawn := map[string][]string{}
	var values []string
	for _, p := range placeholder.FindAllStringSubmatch(q.template, -1) {
		domain, number := p[1], 1
		if p[2] != "" {
			number, _ = strconv.Atoi(p[2])
		}
		if drawn[domain] == nil {
			drawn[domain] = shuffled(&r, domainOf(domain, scale))
		}
		values = append(values, domain+p[2], drawn[domain][number-1])
	}
	return tpcdata.Fill(q.template, values)
}

func shuffled(r *tpcdata.Rand, values []string) []string {
	of := make([]string, len(values))
	for i, k := range tpcdata.Different(r, len(values), len(values)) {
		of[i] = values[k]
	}
	return of
}

// domainOf returns the values of a parameter, which are those of the tables.
func domainOf(name string, scale float64) []string {
	switch name {
	case "YEAR": // with one before and one after in which there are sales, too
		return numbers(1999, 2001)
	case "MSEQ": // the first of twelve months, counted as d_month_seq
		return numbers((1999-1900)*12, (2001-1900)*12)
	case "EARLY": // months of the first zone of comparability, and the last
		return numbers(1, 7)
	case "LATE":
		return numbers(11, 12)
	case "QUARTER":
		return numbers(1, 4)
	case "DATE":
		var days []string
		for d := day(1998, 3, 1); d < day(2002, 8, 1); d++ {
			days = append(days, dateText(d))
		}
		return days
	case "HOUR":
		return numbers(8, 19)
	case "STATE":
		return stateCodes(16)
	case "SHOPSTATE":
		return stateCodes(shopStates)
	case "COUNTY":
		var names []string
		for s := range 4 {
			for c := range 6 {
				names = append(names, county(s, c))
			}
		}
		return names
	case "CITY":
		return cities[:12]
	case "OFFSET":
		return numbers(-6, -5)
	case "CATEGORY":
		return categoryNames()
	case "COLOR":
		return tpcdata.Colors
	case "UNIT":
		return units
	case "SIZE":
		return itemSizes
	case "GENDER":
		return genders
	case "MARITAL":
		return maritals
	case "EDUCATION":
		return educations
	case "CREDIT":
		return credits
	case "POTENTIAL":
		return potentials
	case "CARRIER":
		return carriers
	case "MODE":
		return modeTypes
	case "PAGE":
		return pageTypes
	case "REASON":
		return numbers(1, sizesAt(scale).reasons)
	case "COUNT": // around a fifth of the sales in stores
		fifth := int(scale * 2_880_000 / 5)
		return numbers(fifth-fifth/10, fifth-fifth/10+40)
	case "MANAGER":
		return numbers(1, 80)
	case "MAKER":
		return numbers(1, 60)
	case "DEPENDENTS":
		return numbers(0, 9)
	case "VEHICLES":
		return numbers(0, 4)
	case "PRICE":
		return numbers(5, 60)
	case "QUANTITY":
		return numbers(1, 60)
	case "PERCENT":
		return numbers(0, 7)
	}
	panic("BUG: no domain " + name)
}

// numbers are those from lo to hi.
func numbers(lo, hi int) []string {
	var of []string
	for i := lo; i <= hi; i++ {
		of = append(of, strconv.Itoa(i))
	}
	return of
}

func stateCodes(n int) []string {
	var codes []string
	for _, s := range states[:n] {
		codes = append(codes, s.code)
	}
	return codes
}
