package olap

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"pgaccel/sqlfn"
	"pgaccel/sqltype"
)

// goCases is a server with the cases of Go.
type goCases struct{}

func (goCases) Changing(last rune) ([]sqltype.CaseMapping, error) {
	var list []sqltype.CaseMapping
	for r := rune(1); r <= last; r++ {
		if l, u := unicode.ToLower(r), unicode.ToUpper(r); l != r || u != r {
			list = append(list, sqltype.CaseMapping{Char: r, Lower: string(l), Upper: string(u)})
		}
	}
	return list, nil
}

func (goCases) Both(texts []string) (lower, upper []string, err error) {
	for _, s := range texts {
		lower, upper = append(lower, strings.Map(unicode.ToLower, s)), append(upper, strings.Map(unicode.ToUpper, s))
	}
	return lower, upper, nil
}

// TestILike compares ILIKE in its forms with LIKE of both in lower case, where only ASCII has a case, and where other letters do.
func TestILike(t *testing.T) {
	cases, err := sqltype.AskCases(goCases{})
	if cases == nil || err != nil {
		t.Fatal(err)
	}
	lower := sqlfn.ByOID(sqlfn.OIDLower)
	r := rand.New(rand.NewPCG(31, 31))
	text := func(n int, letters string, more string) string {
		all := []rune(letters + more)
		s := make([]rune, n)
		for i := range s {
			s[i] = all[r.IntN(len(all))]
		}
		return string(s)
	}
	matched := 0
	for n := range 100_000 {
		letters := []string{"abABß/", "aAéÉKk\u212Aİ\U00010400\U00010428"}[n%2]
		s, p := text(r.IntN(12), letters, "%_"), text(r.IntN(8), letters, `%%%%%_\`)
		for _, f := range []*sqlfn.Function{lower.InASCII, lower.InCases(cases)} {
			ls, _ := lowered(s, f)
			lp, _ := lowered(p, f)
			want, wantErr := likeSteps(ls, lp, false)
			got, err := ilike(s, p, f)
			prepared, preparedErr := prepareILike(p, f).match(s)
			if got != want || prepared != want || (err != nil) != (wantErr != nil) || (preparedErr != nil) != (wantErr != nil) {
				t.Fatalf("%q ilike %q: %v, %v and %v, %v instead of %v, %v", s, p, got, err, prepared, preparedErr, want, wantErr)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 5000 {
		t.Errorf("%d matches", matched)
	}
	for _, f := range []*sqlfn.Function{nil, lower} { // of which no cases are known
		if ok, err := prepareILike("%b%", f).match("ABC"); !ok || err != nil {
			t.Errorf("of ASCII: %v, %v", ok, err)
		}
		for _, x := range [][2]string{{"É", "a"}, {"a", "%É"}, {"É", "É"}} {
			_, err := prepareILike(x[1], f).match(x[0])
			if _, wrong := ilike(x[0], x[1], f); err == nil || wrong == nil {
				t.Errorf("%q ilike %q is answered", x[0], x[1])
			}
		}
	}
}
