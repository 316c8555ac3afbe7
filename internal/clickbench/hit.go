package clickbench

import (
	"strconv"
	"time"

	"pgaccel/internal/tpcdata"
)

// hit writes the columns of a row.
type hit struct {
	tpcdata.Row
	r tpcdata.Rand
}

func (w *hit) numbers(v ...int) {
	for _, v := range v {
		w.Number(v)
	}
}

// below writes a number in 0..n-1 for each n.
func (w *hit) below(n ...int) {
	for _, n := range n {
		w.Number(w.r.Below(n))
	}
}

// rarely writes 1 once in so many rows, else 0.
func (w *hit) rarely(oneIn ...int) {
	for _, n := range oneIn {
		if w.r.Below(n) == 0 {
			w.Number(1)
		} else {
			w.Number(0)
		}
	}
}

func (w *hit) empty(n int) {
	for range n {
		w.Tab()
	}
}

func (w *hit) time(t time.Time) { w.Text(t.Format(time.DateTime)) }

var (
	firstSecond = time.Date(2013, time.July, 1, 0, 0, 0, 0, time.UTC)
	seconds     = 31 * 24 * 60 * 60

	widths, heights = []int{1366, 1920, 1280, 1024, 1600, 1440, 1680, 2560, 320, 768}, []int{768, 1080, 1024, 600, 900, 1200, 1050, 1440, 480}
	languages       = []string{"ru", "en", "uk", "de", "tr", "kk"}
	charsets        = []string{"windows", "utf-8", "koi8-r"}
)

// visitor is what the rows of a visit have in common.
type visitor struct {
	user, ip, region, width, height, os, agent, model, site int
	search, phrase                                          int // engine, 0 for none
	advert                                                  int // engine, 0 for none
}

func (d domains) visitor(i int) visitor {
	r := random(seedVisit, i)
	user := evenly(&r, d.users)
	of := random(seedUser, user)
	v := visitor{user: int(of.Next() >> 1), ip: int(int32(hash(seedUser, -1-user/2))), region: regionOf(ranked(&of, regions))}
	at := ranked(&of, len(widths))
	v.width, v.height, v.os, v.agent = widths[at], heights[at%len(heights)], ranked(&of, 90), ranked(&of, 80)
	if of.Below(20) == 0 {
		v.model = 1 + ranked(&of, models)
	}
	v.site = ranked(&r, counters)
	switch r.Below(40) {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12:
		v.search, v.phrase = 1+ranked(&r, 60), r.Below(d.phrases)
	case 13:
		if r.Below(4) == 0 {
			v.advert = 1 + ranked(&r, 18)
		}
	}
	return v
}

func regionOf(rank int) int { return (rank*7 + 229) % (2 * regions) }

// pageOf draws a page of the site.
func (d domains) pageOf(r *tpcdata.Rand, site int) page {
	if r.Below(4) > 0 {
		return page{site, r.Below(busyPages)}
	}
	return page{site, ranked(r, d.pages)}
}

// appendHit writes row i. Rows come in the order of time, those of a visit one after another.
func (d domains) appendHit(b []byte, i int) []byte {
	v := d.visitor(i / visitRows)
	w := hit{tpcdata.Row{B: b}, random(seedHit, i)}
	at := firstSecond.Add(time.Duration(int64(seconds)*int64(i)/int64(d.rows)) * time.Second)
	p := d.pageOf(&w.r, v.site)
	search, phrase := v.search, v.phrase
	if search > 0 && w.r.Below(4) > 0 { // each looks for the frequent, too
		phrase = ranked(&w.r, d.phrases)
	}
	if w.r.Below(5) < 3 {
		search = 0
	}
	source := []int{-1, -1, 0, 0, 1, 6, 3, 8, 5, 7}[ranked(&w.r, 10)]
	from, referer := d.pageOf(&w.r, v.site), w.r.Below(10)
	switch {
	case search > 0:
		source = 2
	case v.advert > 0:
		source = 3
	}

	w.numbers(hash(seedHit, -1-i))
	w.rarely(4)
	w.B = p.appendTitle(w.B)
	w.Tab()
	w.Number(1)
	w.time(at)
	w.Text(at.Format(time.DateOnly))
	w.numbers(counterOf(v.site), v.ip, v.region, v.user)
	w.rarely(3)
	w.numbers(v.os, v.agent)
	w.B = p.appendURL(w.B)
	w.Tab()
	refererHash := 0
	switch {
	case search > 0:
		w.B = strconv.AppendInt(append(w.B, "http://www.search.example/find?engine="...), int64(search), 10)
		w.B = strconv.AppendInt(append(w.B, "&text="...), int64(phrase), 10)
		refererHash = hash(seedPhrase, phrase)
	case referer < 2: // none
	case referer < 4: // another site
		other := page{ranked(&w.r, counters), 0}
		w.B = other.appendURL(w.B)
		refererHash = other.hash()
	default:
		w.B = from.appendURL(w.B)
		refererHash = from.hash()
	}
	w.Tab()
	w.rarely(7)
	w.below(30)
	w.Number(v.region / 3)
	w.below(20)
	w.numbers(v.region/2, v.width, v.height)
	w.numbers([]int{32, 24, 16}[v.user%3], 11, v.user%9)
	w.Text([]string{"700", "", "800", "0"}[v.user%4])
	w.below(3, 2)
	w.Number(v.agent % 30)
	w.Text([]string{"D", "0", "s", "nA"}[v.agent%4])
	w.numbers(1, 1)
	if v.model > 0 {
		w.numbers(1, 1+v.model%12)
		w.Text([]string{"iPhone", "iPad", "Nokia ", "HTC ", "GT-"}[v.model%5] + strconv.Itoa(v.model))
	} else {
		w.numbers(0, 0)
		w.empty(1)
	}
	w.empty(1)
	w.numbers(v.ip/256, source, search)
	if search > 0 {
		w.B = appendPhrase(w.B, phrase)
	}
	w.Tab()
	w.Number(v.advert)
	w.rarely(50)
	w.numbers(v.width-w.r.Below(20)*8, v.height-w.r.Below(20)*8, []int{135, 157, 117, 150}[v.region%4])
	w.time(at.Add(time.Duration(w.r.Below(7200)-3600) * time.Second))
	w.numbers(v.user%6, v.user%2, v.user%50000, 0)
	w.Text(charsets[v.site%len(charsets)])
	w.Number([]int{1601, 291, 0}[v.site%3])
	w.rarely(12, 80)
	w.Number(1 - w.r.Below(20)/19)
	w.Number(hash(seedUser, v.user))
	if w.r.Below(10) == 0 {
		w.B = p.appendURL(w.B)
	}
	w.Tab()
	w.below(1 << 30)
	w.rarely(100, 40, 1000, 60, 2)
	w.Text([]string{"5", "T", "g", "E", "9"}[w.r.Below(5)])
	w.time(at.Add(time.Duration(v.region%12) * time.Hour))
	w.numbers([]int{0, 22, 31, 50, 16}[v.user%5], v.user%3, v.user%4, v.user%1000)
	w.below(50)
	w.numbers(v.ip ^ 0x5a5a5a)
	w.numbers(-1-v.user%9000, -1)
	w.Number(1 + ranked(&w.r, 100))
	w.Text(languages[v.region%len(languages)])
	w.Text([]string{"RU", "US", "UA", "DE"}[v.region%4])
	w.empty(2)
	w.rarely(300)
	w.below(3000, 200, 500, 2000, 4000, 1)
	w.numbers(0)
	w.empty(1)
	w.numbers(0)
	w.empty(1)
	w.Text("NH")
	w.numbers(0)
	w.empty(4)
	if v.advert > 0 {
		w.Text("market")
		w.Text("cpc")
		w.Text("campaign" + strconv.Itoa(v.advert*v.site))
	} else {
		w.empty(3)
	}
	w.empty(3)
	w.rarely(200)
	w.numbers(refererHash, p.hash(), v.site%50)
	w.Next()
	return w.B
}
