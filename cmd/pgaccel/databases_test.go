package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgaccel/internal/server"
)

// readFile returns the configuration of a file.
func readFile(t *testing.T, text string) (*configuration, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "serve.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &configuration{file: path, known: map[string]bool{"upstream": true}}
	return c, c.read()
}

// TestDatabasesInFile: what is wrong is named with its line and what to write; what is right is read in order.
func TestDatabasesInFile(t *testing.T) {
	for want, text := range map[string]string{
		`serve.yml:3: databases: shop: line 3: unknown key "acelerate": want upstream`:     "\ndatabases:\n  shop: {upstream: a, acelerate: b}",
		"serve.yml:2: databases: shop: line 3: upstream is there twice":                    "databases:\n  shop: {upstream: a,\n    upstream: b}",
		"serve.yml:2: databases: shop: upstream is missing":                                "databases:\n  shop: {accelerate: b}",
		"serve.yml:2: databases: shop: want its upstream":                                  "databases:\n  shop: postgres://x",
		"serve.yml:3: databases: shop is there twice, first at ":                           "databases:\n  shop: {upstream: a}\n  shop: {upstream: b}",
		"serve.yml:1: databases: want a line for each":                                     "databases: [shop]",
		"serve.yml:2: databases is there twice, first in line 1":                           "databases: {}\ndatabases: {}",
		"serve.yml:3: databases: shop: line 5: accelerate: line 6: a value that begins":    "\ndatabases:\n  shop:\n    upstream: a\n    accelerate:\n    - !b",
		"serve.yml:2: databases: shop: line 2: upstream: want one value":                   "databases:\n  shop: {upstream: [a]}",
		`serve.yml:1: unknown key "database": keys are the names of flags without --, and`: "database: {}",
	} {
		if _, err := readFile(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	c, err := readFile(t, "databases:\n  shop: {upstream: 'postgres://u@h/shop', accelerate: [a, 'b.*'], data-dir: d}\n  \"Other one\":\n    upstream: host=x dbname=y\n    accelerate: a,b\n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.withPasswords(func(string) {})
	want := []server.Database{{Name: "shop", Upstream: "postgres://u@h/shop", Accelerate: []string{"a", "b.*"}, DataDir: "d"},
		{Name: "Other one", Upstream: "host=x dbname=y", Accelerate: []string{"a", "b"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %+v", err, got)
	}
	if c, err = readFile(t, "databases:\n"); err != nil || len(c.databases) != 0 {
		t.Errorf("%v %v", err, c.databases)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("geheim"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = readFile(t, "databases:\n  shop: {upstream: 'postgres://u@h/shop', upstream-password-file: '"+secret+"'}"); err != nil {
		t.Fatal(err)
	}
	if got, err = c.withPasswords(func(string) {}); err != nil || got[0].Upstream != "postgres://u@h/shop?password=geheim" {
		t.Errorf("%v %+v", err, got)
	}
	if c, err = readFile(t, "databases:\n  shop: {upstream: 'postgres://u@h/shop', upstream-password-file: nowhere}"); err != nil {
		t.Fatal(err)
	}
	if _, err = c.withPasswords(func(string) {}); err == nil || !strings.Contains(err.Error(), "serve.yml:2: databases: shop: --upstream-password-file: stat nowhere") {
		t.Error(err)
	}
}

// TestDatabasesAfter: patterns change, the rest takes a restart.
func TestDatabasesAfter(t *testing.T) {
	const before = "databases:\n  a: {upstream: ua, accelerate: x}\n  b: {upstream: ub}\n"
	running := []server.Database{{Name: "a", Upstream: "ua with a password", Accelerate: []string{"x"}}, {Name: "b", Upstream: "ub"}}
	for _, c := range []struct {
		now              string
		patterns         string
		changed, restart bool
	}{
		{before, "x", false, false},
		{"databases:\n  b: {upstream: ub}\n  a: {upstream: ua, accelerate: [x, y]}\n", "x y", true, false},
		{before + "  c: {upstream: uc}\n", "x", false, true},
		{"databases:\n  a: {upstream: ua, accelerate: [x]}\n", "x", false, true},
		{"", "x", false, true},
		{strings.Replace(before, "ub", "elsewhere", 1), "x", false, true},
		{strings.Replace(before, "upstream: ua,", "upstream: ua, data-dir: d,", 1), "x", false, true},
	} {
		was, err := readFile(t, before)
		if err != nil {
			t.Fatal(err)
		}
		now, err := readFile(t, c.now)
		if err != nil {
			t.Fatal(err)
		}
		list, changed, restart := now.databasesAfter(was, running)
		if changed != c.changed || restart != c.restart || len(list) != 2 || strings.Join(list[0].Accelerate, " ") != c.patterns || list[0].Upstream != running[0].Upstream {
			t.Errorf("%s: %v %v %+v", c.now, changed, restart, list)
		}
	}
}
