package clickbench

import (
	"strconv"

	"pgaccel/internal/tpcdata"
)

// letters are those by which sentences of a third of the sites, and a third of the phrases, are written.
var letters = []rune("абцдефгхижклмнопярстувщьыз")

// appendSentence writes n letters of random sentences.
func appendSentence(b []byte, r *tpcdata.Rand, n int, foreign bool) []byte {
	from := len(b)
	b = tpcdata.AppendText(b, r, n)
	if !foreign {
		return b
	}
	text := string(b[from:])
	b = b[:from]
	for _, c := range text {
		if c >= 'a' && c <= 'z' {
			c = letters[c-'a']
		}
		b = append(b, string(c)...)
	}
	return b
}

func foreign(i int) bool { return i%3 == 1 }

// appendHost writes the name of a site.
func appendHost(b []byte, site int) []byte {
	r := random(seedSite, site)
	b = append(b, []string{"http://", "http://www.", "https://", "http://m."}[r.Below(4)]...)
	b = append(b, r.Word(tpcdata.Colors)...)
	b = strconv.AppendInt(append(b, '-'), int64(site), 10)
	return append(b, []string{".com", ".net", ".example", ".org"}[r.Below(4)]...)
}

// rareOneIn is how many pages have the words that statements look for.
const rareOneIn = 400

// appendURL writes the address of a page: that of page 0 is the site's.
func (p page) appendURL(b []byte) []byte {
	b = append(appendHost(b, p.site), '/')
	if p.number == 0 {
		return b
	}
	r := random(seedPage, p.id())
	for range 1 + r.Below(4) {
		b = append(append(b, r.Word(tpcdata.Colors)...), '/')
	}
	if r.Below(rareOneIn) == 0 {
		b = append(b, []string{"google", "by.google.com/", "google_ads"}[r.Below(3)]...)
	}
	b = strconv.AppendInt(append(b, "?id="...), int64(p.number), 10)
	for range r.Below(4) {
		b = append(append(b, '&'), r.Word(tpcdata.Colors)...)
		b = strconv.AppendInt(append(b, '='), int64(r.Below(1_000_000)), 10)
	}
	return b
}

// appendTitle writes the title of a page, none for some.
func (p page) appendTitle(b []byte) []byte {
	r := random(seedPage, -1-page{p.site, p.number / 2}.id()) // two pages have one
	if r.Below(8) == 0 {
		return b
	}
	if r.Below(rareOneIn) == 0 {
		b = append(b, "Google: "...)
	}
	return appendSentence(b, &r, 15+r.Below(80), foreign(p.site))
}

// appendPhrase writes what is searched for.
func appendPhrase(b []byte, phrase int) []byte {
	r := random(seedPhrase, phrase)
	return appendSentence(b, &r, 6+r.Below(40), foreign(phrase))
}
