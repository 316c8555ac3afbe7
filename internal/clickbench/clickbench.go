package clickbench

import (
	"embed"
	"math"

	"pgaccel/internal/tpcdata"
)

//go:embed sql
var files embed.FS

// million is the rows of scale 1.
const million = 1_000_000

// ScaleOf is the scale of a number of rows.
func ScaleOf(rows int64) float64 { return float64(rows) / million }

// Source is the table.
var Source = tpcdata.Source{
	Name: "ClickBench", Files: files, ScaleMin: ScaleOf(1000), ScaleMax: 1000, Tables: []string{"hits"},
	Units: func(table string, scale float64) tpcdata.Units {
		if table != "hits" {
			return tpcdata.Units{}
		}
		d := domainsOf(int(math.Round(scale * million)))
		return tpcdata.Units{N: d.rows, Append: d.appendHit}
	},
}

// Each kind of thing has sequences of its own.
const (
	seedHit = 1 + iota
	seedVisit
	seedUser
	seedPage
	seedPhrase
	seedSite
)

// visitRows is how many rows a visit has: one user looks at one site.
const visitRows = 4

const counters, regions, models = 6500, 9000, 160

// domains are how many different things there are among so many rows. They are drawn by rank (see ranked), so
// that fewer occur.
type domains struct{ rows, users, pages, phrases int }

func domainsOf(rows int) domains {
	return domains{rows: rows, users: max(rows/5, 10), pages: max(rows/40, 10), phrases: max(rows/8, 10)}
}

// busyPages are those of a site that most of the draws are of.
const busyPages = 4

// ranked draws from 0..n-1 the first the more often, by Zipf's law in steps: each power of two as often as
// the next.
func ranked(r *tpcdata.Rand, n int) int {
	steps := 0
	for 1<<steps <= n {
		steps++
	}
	for {
		first := 1 << r.Below(steps)
		if i := first - 1 + r.Below(first); i < n {
			return i
		}
	}
}

// evenly draws in one half of the cases by rank, else each as often as the others.
func evenly(r *tpcdata.Rand, n int) int {
	if r.Below(2) == 0 {
		return ranked(r, n)
	}
	return r.Below(n)
}

// random is the generator of thing i of a kind.
func random(kind uint64, i int) tpcdata.Rand { return tpcdata.RowRand(0, kind, i) }

// hash is a number of 63 bits for thing i of a kind.
func hash(kind uint64, i int) int {
	r := random(kind, i)
	return int(r.Next() >> 1)
}

// counterOf is the number of the site of a rank: that of rank 9 is the one that statements ask for.
const askedCounter, askedRank = 62, 9

func counterOf(rank int) int {
	if rank == askedRank {
		return askedCounter
	}
	return 37*rank + 100
}

// page is one of a site's.
type page struct{ site, number int }

func (p page) id() int   { return p.number*counters + p.site }
func (p page) hash() int { return hash(seedPage, p.id()) }
