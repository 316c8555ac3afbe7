package server

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unsafe"

	"github.com/jackc/pgx/v5/pgconn"
)

// WithPassword returns upstream (a URL or libpq's keywords) with the password in a
// file, one line. As libpq with its password file, it takes no file that others than
// its owner may read.
func WithPassword(upstream, file string) (string, error) {
	if _, err := pgconn.ParseConfig(upstream); err != nil { // which hides passwords
		return "", fmt.Errorf("--upstream: %w; want a URL such as postgres://user@host:5432/db", err)
	}
	if file == "" {
		return upstream, nil
	}
	fail := func(err error) (string, error) { return "", fmt.Errorf("--upstream-password-file: %w", err) }
	info, err := os.Stat(file)
	if err != nil {
		return fail(err)
	}
	if !info.Mode().IsRegular() {
		return fail(fmt.Errorf("%s is not a plain file", file))
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fail(fmt.Errorf("%s has group or world access; permissions should be u=rw (0600) or less", file))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fail(err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" || strings.ContainsAny(password, "\r\n\x00") {
		return fail(fmt.Errorf("%s: a password in one line is wanted", file))
	}
	if givenPassword(upstream) != nil {
		return fail(errors.New("--upstream has a password, too"))
	}
	out := upstream
	if isURL(upstream) {
		separator := "?"
		if strings.Contains(upstream, "?") {
			separator = "&"
		}
		out += separator + "password=" + strings.ReplaceAll(url.QueryEscape(password), "+", "%20") // libpq's URLs have no + for a space
	} else {
		out += " password='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password) + "'"
	}
	if c, err := pgconn.ParseConfig(out); err != nil || c.Password != password { // err has the password
		return fail(errors.New("the password could not be put into --upstream"))
	}
	return out, nil
}

func isURL(upstream string) bool {
	return strings.HasPrefix(upstream, "postgres://") || strings.HasPrefix(upstream, "postgresql://")
}

var (
	urlPassword = regexp.MustCompile(`^postgres(?:ql)?://[^:/?#@]*:([^/?#]*)@|[?&]password=([^&#]*)`)
	keyword     = regexp.MustCompile(`([^\s=]+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)+)`)
)

// givenPassword returns where in upstream a password stands, [from, to), nil without.
func givenPassword(upstream string) []int {
	if isURL(upstream) {
		at := urlPassword.FindStringSubmatchIndex(upstream)
		for i := 2; i+1 < len(at); i += 2 {
			if at[i] >= 0 && at[i+1] > at[i] {
				return at[i : i+2]
			}
		}
		return nil
	}
	for _, at := range keyword.FindAllStringSubmatchIndex(upstream, -1) {
		if upstream[at[2]:at[3]] == "password" {
			return at[4:6]
		}
	}
	return nil
}

// HidePassword overwrites a password of --upstream in the process's arguments (args,
// of os.Args), so that ps does not show it any longer, and reports whether there was
// one. Strings that were taken from the arguments before change with them: the caller
// clones what it needs.
func HidePassword(args []string) (found bool) {
	for i, a := range args {
		value, ok := strings.CutPrefix(a, "--upstream=")
		if !ok && (i == 0 || args[i-1] != "--upstream") {
			continue
		}
		at := givenPassword(value)
		if at == nil {
			continue
		}
		found = true
		// Go's arguments are the memory that the kernel shows, not copies.
		b := unsafe.Slice(unsafe.StringData(value), len(value))
		for j := at[0]; j < at[1]; j++ {
			b[j] = 'x'
		}
	}
	return found
}

// LoosePasswordFile returns what libpq says of a password file (PGPASSFILE, ~/.pgpass)
// that others may read, "" where there is nothing to say. libpq ignores such a file;
// pgx reads it.
func LoosePasswordFile() string {
	file := os.Getenv("PGPASSFILE")
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		file = filepath.Join(home, ".pgpass")
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		return fmt.Sprintf("password file %q has group or world access; permissions should be u=rw (0600) or less", file)
	}
	return ""
}
