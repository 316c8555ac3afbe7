package referee

import (
	"fmt"
	"strings"

	"pgaccel/internal/pgserver"
)

// Collations are those that a run may be under: the database's, and with "ci" beside it a
// nondeterministic one of ICU, which takes 'a' and 'A' as equal, of every other column of
// text.
var Collations = []string{"C", "en_US.UTF-8", "icu", "ci"}

// serverOptions returns how to make the server of a collation; "" is C.
func serverOptions(collation string) (o pgserver.Options, err error) {
	switch collation {
	case "", "C":
	case "en_US.UTF-8":
		o.Locale = collation
	case "icu", "ci":
		o.InitArgs = []string{"--locale-provider=icu", "--icu-locale=und"}
	default:
		return o, fmt.Errorf("there is no collation %q: take %s", collation, strings.Join(Collations, ", "))
	}
	return o, nil
}

// explainLocale says what is missing where initdb could not make a database of the
// collation.
func explainLocale(collation string, err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "invalid locale"):
		return fmt.Errorf("the locale %s is missing on this machine: scripts/install-deps.sh test makes it (%w)", collation, err)
	case strings.Contains(text, "ICU is not supported"):
		return fmt.Errorf("the server was built without ICU: name another by PGACCEL_PG_BINDIR (%w)", err)
	}
	return err
}
