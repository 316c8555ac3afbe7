package docpage

import "testing"

func TestReplace(t *testing.T) {
	const page = "# A\n\n<!-- begin x -->\nold\n<!-- end x -->\n\nrest\n"
	old, anew, err := replace(page, "x", "| new |\n")
	if want := "# A\n\n<!-- begin x -->\n\n| new |\n\n<!-- end x -->\n\nrest\n"; err != nil || old != "old" || anew != want {
		t.Errorf("%q %q %v", old, anew, err)
	}
	if _, again, err := replace(anew, "x", "| new |\n"); err != nil || again != anew {
		t.Errorf("the same part changes the page: %q %v", again, err)
	}
	for _, bad := range []string{"", "<!-- begin x -->\n", "<!-- end x -->", page + page} {
		if _, _, err := replace(bad, "x", ""); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
