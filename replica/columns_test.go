package replica

import "testing"

// TestCasesASCII: databases in which letters outside of ASCII have no case.
func TestCasesASCII(t *testing.T) {
	for db, want := range map[dbCollation]bool{
		{provider: "c", locale: "C", ctype: "C"}: true, {provider: "c", locale: "en_US.utf8", ctype: "POSIX"}: true, {provider: "b", locale: "C", ctype: "C"}: true,
		{provider: "c", locale: "C", ctype: "en_US.utf8"}: false, {provider: "c", locale: "C", ctype: "C.UTF-8"}: false,
		{provider: "b", locale: "C.UTF-8", ctype: "C.UTF-8"}: false, {provider: "i", locale: "C", ctype: "C"}: false,
	} {
		if got := db.casesASCII(); got != want {
			t.Errorf("%+v: %v", db, got)
		}
	}
}

// TestTurkic: languages whose lower case of I is not i, by every provider's names.
func TestTurkic(t *testing.T) {
	for name, want := range map[string]bool{
		"tr-x-icu": true, "tr": true, "tr-TR": true, "tr_TR.utf8": true, "az_AZ": true, "crh_UA": true, "ku_TR.UTF-8": true, "tt_RU@iqtelif": true,
		"Turkish_Turkey.1254": true, "az-Latn-AZ-u-co-search": true,
		"": false, "C": false, "POSIX": false, "C.UTF-8": false, "en_US.UTF-8": false, "und": false, "root": false, "de-u-co-phonebk": false, "trv": false, "English_United States.1252": false,
	} {
		if got := (&attribute{collation: 1, collCtype: name}).turkic(&dbCollation{ctype: "en"}); got != want {
			t.Errorf("collation of %q: %v", name, got)
		}
		if got := (&attribute{collation: defaultCollationOID, collCtype: "en"}).turkic(&dbCollation{ctype: name}); got != want {
			t.Errorf("database with %q: %v", name, got)
		}
	}
}
