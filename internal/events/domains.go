package events

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"
	"time"
)

const (
	countries     = 200
	urls          = 50_000
	campaigns     = 300
	usersLeast    = 10_000
	rowsPerUser   = 5
	urlBytesLeast = 30
	urlBytesMost  = 90
)

// countryCodes are the first 200 two-letter codes in an order that puts large countries
// first; their rank is their place in Zipf's law.
var countryCodes = strings.Fields(`US IN DE GB BR FR JP CA IT ES MX RU ID NL PL AU TR KR SE BE CH AT AR PH VN TH UA RO CZ PT
	GR HU DK NO FI IE IL SG MY ZA EG SA AE CO CL PE NZ HK TW PK BD NG KE MA DZ TN GH ET TZ UG KZ UZ BY BG RS HR SK SI LT LV
	EE IS LU MT CY GE AM AZ MD AL MK BA ME XK LK NP MM KH LA MN BN MO MV BT AF IR IQ SY JO LB KW QA BH OM YE PS VE EC BO PY
	UY GT HN SV NI CR PA CU DO HT JM TT BB BS BZ GY SR PR GP MQ GF RE NC PF FJ PG SB VU WS TO KI FM MH PW NR TV CV SN ML BF
	NE TD SD SS ER DJ SO RW BI CD CG GA GQ CM CF AO ZM ZW MW MZ NA BW SZ LS MG MU SC KM ST BJ TG CI LR SL GN GW GM MR EH AD
	MC SM VA LI FO GL GG JE GI BM KY AW CW`)[:countries]

// weighted is a value with its relative frequency.
type weighted[T any] struct {
	value  T
	weight int
}

// devices with their browsers.
var devices = []struct {
	name     string
	weight   int
	browsers []weighted[string]
}{
	{"mobile", 55, []weighted[string]{{"Chrome", 52}, {"Safari", 30}, {"Samsung Internet", 10}, {"Firefox", 4}, {"Opera", 2}, {"WebView", 2}}},
	{"desktop", 35, []weighted[string]{{"Chrome", 62}, {"Edge", 15}, {"Safari", 12}, {"Firefox", 8}, {"Opera", 3}}},
	{"tablet", 8, []weighted[string]{{"Safari", 55}, {"Chrome", 35}, {"Samsung Internet", 6}, {"Firefox", 4}}},
	{"tv", 2, []weighted[string]{{"WebView", 70}, {"Other", 30}}},
}

var statuses = []weighted[string]{{"200", 900}, {"304", 35}, {"301", 20}, {"302", 10}, {"404", 20}, {"403", 5}, {"500", 6}, {"503", 3}, {"502", 1}}

// choice draws values by weight: a table that a draw's upper bits index.
type choice[T any] [1 << choiceBits]T

const choiceBits = 10

func newChoice[T any](of []weighted[T]) *choice[T] {
	total := 0
	for _, w := range of {
		total += w.weight
	}
	var c choice[T]
	sum, at := 0, 0
	for _, w := range of {
		sum += w.weight
		for ; at < (sum*len(c)+total/2)/total; at++ {
			c[at] = w.value
		}
	}
	return &c
}

// zipf draws ranks 0..n-1 with probabilities in proportion to 1 / (rank + 1).
type zipf struct {
	upTo  []float64 // probability of the ranks up to this one
	first []int32   // by a draw's upper bits: the first rank that it can be
}

const zipfBits = 16

func newZipf(n int) *zipf {
	z := &zipf{upTo: make([]float64, n), first: make([]int32, 1<<zipfBits+1)}
	sum := 0.0
	for k := range n {
		sum += 1 / float64(k+1)
		z.upTo[k] = sum
	}
	for k := range z.upTo {
		z.upTo[k] /= sum
	}
	z.upTo[n-1] = 1
	for i := range z.first {
		at := float64(i) / (1 << zipfBits)
		z.first[i] = int32(min(n-1, sort.Search(n, func(k int) bool { return z.upTo[k] > at })))
	}
	return z
}

// rank is that of a uniform u in [0, 1).
func (z *zipf) rank(u float64) int {
	i := int(u * (1 << zipfBits))
	from, to := int(z.first[i]), int(z.first[i+1])
	return from + sort.Search(to-from, func(k int) bool { return z.upTo[from+k] > u })
}

// surfing is a device with a browser.
type surfing struct{ device, browser string }

// domains are what values are drawn from, made once.
type domains struct {
	surfing                *choice[*choice[surfing]]
	status                 *choice[string]
	country, url, campaign *zipf
	urls                   []string
	days                   []string // of ts, yyyy-mm-dd, by days after the first; jitter reaches one day more
}

var theDomains = sync.OnceValue(func() *domains {
	var d domains
	var surfings []weighted[*choice[surfing]]
	for _, device := range devices {
		var of []weighted[surfing]
		for _, b := range device.browsers {
			of = append(of, weighted[surfing]{surfing{device.name, b.value}, b.weight})
		}
		surfings = append(surfings, weighted[*choice[surfing]]{newChoice(of), device.weight})
	}
	d.surfing, d.status = newChoice(surfings), newChoice(statuses)
	d.country, d.url, d.campaign = newZipf(countries), newZipf(urls), newZipf(campaigns)
	for rank := range urls {
		d.urls = append(d.urls, urlAt(rank))
	}
	for day := range daysOfYear + 1 {
		d.days = append(d.days, firstDay.AddDate(0, 0, day).Format(time.DateOnly))
	}
	return &d
})

// urlAt is the URL of a rank in Zipf's law. Each has its rank in it, so that no two are
// equal. The kinds of pages take turns, so that each has its share of frequent ones.
func urlAt(rank int) string {
	const site = "https://shop.example.com"
	g := rand.NewPCG(seedURLs, uint64(rank))
	word := func() string { return words[below(g, len(words))] }
	slug := func() string {
		s := word()
		for range below(g, 5) {
			s += "-" + word()
		}
		return s
	}
	var path string
	switch kind := rank % 20; kind {
	case 0:
		path = fmt.Sprintf("/?ref=%s-%05d", word(), rank)
	case 1, 3, 5, 7, 9, 11, 13, 15, 17:
		path = fmt.Sprintf("/product/%s-%05d", slug(), rank)
	case 2, 10, 18:
		path = fmt.Sprintf("/category/%s/page/%d", slug(), rank)
	case 4, 12, 16:
		path = fmt.Sprintf("/blog/2025/%02d/%s-%d", 1+below(g, 12), slug(), rank)
	case 6:
		path = fmt.Sprintf("/checkout/%s/%08x%05d", []string{"cart", "address", "payment", "review"}[below(g, 4)], g.Uint64()>>32, rank)
	case 8, 14:
		path = fmt.Sprintf("/search?q=%s+%s&page=%d", word(), word(), rank)
	default:
		path = fmt.Sprintf("/account/Checkout/%08x/%d", g.Uint64()>>32, rank)
	}
	return site + path
}

var words = strings.Fields(`amber anchor apple autumn bamboo basket birch blanket bottle bright canvas carbon cedar ceramic
	chair classic clear cloud coffee copper cotton cream crystal desk double easy echo ember fabric feather field fine
	flannel forest frame garden glass gold grand granite green grey harbor heavy home indigo iron island ivory jacket
	kettle lamp large leather light linen lunar maple marble metal midnight mini modern mountain natural night north
	oak ocean olive orange outdoor paper pearl pillow pine plain pocket portable prime quiet rain red river round
	sand sea shadow shelf shirt silk silver simple small smart snow soft solid spring steel stone storm summer sun
	table tea travel ultra urban velvet vintage walnut warm water white wide wild winter wood wool yellow zero`)
