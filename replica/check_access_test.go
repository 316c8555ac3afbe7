package replica

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRulesBehindPgaccel: what check says of each kind of line of pg_hba.conf.
func TestRulesBehindPgaccel(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	rule := func(kind, address, netmask, method string, options ...string) hbaRule {
		return hbaRule{line: 1, kind: kind, databases: []string{"all"}, users: []string{"all"}, address: address, netmask: netmask, method: method, options: options}
	}
	const all4, one = "0.0.0.0", "255.255.255.255"
	for _, c := range []struct {
		name  string
		rule  hbaRule
		a     access
		level Level
		text  string // part of it; "" where nothing is said, - where the line is not pgaccel's
	}{
		{"password for everybody", rule("host", all4, all4, "scram-sha-256"), access{address: loopback}, LevelOK, ""},
		{"all", rule("host", "all", "", "md5"), access{address: loopback}, LevelOK, ""},
		{"pgaccel's address", rule("host", "127.0.0.1", one, "scram-sha-256"), access{address: loopback}, LevelOK, "holds for everybody"},
		{"another address", rule("host", "10.1.2.3", one, "reject"), access{address: loopback}, LevelWarn, "-"},
		{"another family", rule("host", "::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "trust"), access{address: loopback}, LevelWarn, "-"},
		{"a network", rule("host", "127.0.0.0", "255.0.0.0", "trust"), access{address: loopback}, LevelWarn, "without a password"},
		{"local, over TCP", rule("local", "", "", "peer"), access{address: loopback}, LevelWarn, "-"},
		{"peer", rule("local", "", "", "peer"), access{socket: true}, LevelWarn, "operating system's user of pgaccel"},
		{"local password", rule("local", "", "", "scram-sha-256"), access{socket: true}, LevelOK, ""},
		{"ident", rule("host", all4, all4, "ident"), access{address: loopback}, LevelWarn, "operating system's user of pgaccel"},
		{"cert", rule("hostssl", all4, all4, "cert"), access{address: loopback, tls: true, follows: true, certificate: true}, LevelWarn, "client certificate"},
		{"clientcert", rule("hostssl", all4, all4, "scram-sha-256", "clientcert=verify-full"), access{address: loopback, tls: true, follows: true, certificate: true}, LevelWarn, "client certificate"},
		{"gss", rule("host", all4, all4, "gss"), access{address: loopback}, LevelWarn, "cannot be relayed"},
		{"hostgssenc", rule("hostgssenc", all4, all4, "gss"), access{address: loopback}, LevelWarn, "never matches"},
		{"hostssl, a leg without TLS", rule("hostssl", all4, all4, "md5"), access{address: loopback}, LevelWarn, "never matches"},
		{"hostssl, followed", rule("hostssl", all4, all4, "md5"), access{address: loopback, tls: true, follows: true, certificate: true}, LevelOK, ""},
		{"hostssl, followed, no certificate", rule("hostssl", all4, all4, "md5"), access{address: loopback, tls: true, follows: true}, LevelWarn, "clients cannot use TLS"},
		{"hostssl, always TLS", rule("hostssl", all4, all4, "md5"), access{address: loopback, tls: true, certificate: true}, LevelWarn, "--tls-require"},
		{"hostssl, always TLS, no certificate", rule("hostssl", all4, all4, "md5"), access{address: loopback, tls: true}, LevelWarn, "though its clients have none"},
		{"hostnossl reject, followed", rule("hostnossl", all4, all4, "reject"), access{address: loopback, tls: true, follows: true, certificate: true}, LevelOK, ""},
		{"hostnossl reject, always TLS", rule("hostnossl", all4, all4, "reject"), access{address: loopback, tls: true}, LevelWarn, "never matches"},
		{"hostnossl, always TLS", rule("hostnossl", all4, all4, "md5"), access{address: loopback, tls: true}, LevelWarn, "never matches"},
	} {
		if c.rule.covers(c.a) != (c.text != "-") {
			t.Errorf("%s: covers: %v", c.name, c.rule.covers(c.a))
		}
		if c.text == "-" {
			continue
		}
		level, text := c.rule.behind(c.a)
		if level != c.level || !strings.Contains(text, c.text) || (c.text == "") != (text == "") {
			t.Errorf("%s: %s %q", c.name, level, text)
		}
	}
}

// TestRulesForTLSAreNamed: without a certificate for clients every line that asks for TLS is
// named, with what to do, also where it speaks of the clients' addresses.
func TestRulesForTLSAreNamed(t *testing.T) {
	rule := func(line int, kind, address, netmask string) hbaRule {
		return hbaRule{line: line, kind: kind, databases: []string{"app"}, users: []string{"web", "+staff"}, address: address, netmask: netmask, method: "scram-sha-256"}
	}
	rules := []hbaRule{rule(3, "hostssl", "10.0.0.0", "255.0.0.0"), rule(5, "hostssl", "all", ""), rule(8, "hostssl", "::", "::"), rule(9, "host", "10.0.0.0", "255.0.0.0")}
	for name, a := range map[string]access{
		"require":    {address: netip.MustParseAddr("127.0.0.1"), tls: true},
		"prefer":     {address: netip.MustParseAddr("127.0.0.1"), tls: true, follows: true},
		"a socket":   {socket: true},
		"a neighbor": {address: netip.MustParseAddr("192.168.1.7"), tls: true},
	} {
		var c checker
		c.rules(a, rules)
		said := map[string]string{}
		for _, f := range c.found {
			if f.Level != LevelWarn {
				t.Errorf("%s: %+v", name, f)
			}
			said[f.Subject] = f.Text
		}
		for subject, line := range map[string]string{"pg_hba.conf line 3": "hostssl app web,+staff 10.0.0.0/8 scram-sha-256: ",
			"pg_hba.conf line 5": "hostssl app web,+staff all scram-sha-256: ", "pg_hba.conf line 8": "hostssl app web,+staff ::/0 scram-sha-256: "} {
			if text := said[subject]; !strings.HasPrefix(text, line) || !strings.Contains(text, "--tls-cert") {
				t.Errorf("%s: %s: %q", name, subject, text)
			}
		}
		if len(said) != 4 || said["pg_hba.conf lines 9"] == "" {
			t.Errorf("%s: %v", name, said)
		}
	}
	var c checker
	c.rules(access{address: netip.MustParseAddr("127.0.0.1"), tls: true, certificate: true}, rules[:1])
	if len(c.found) != 1 || c.found[0].Subject != "pg_hba.conf lines 3" {
		t.Errorf("with a certificate: %v", c.found)
	}
}

// TestCheckReadsRules: with a server's own file, as a superuser and as a role that may
// not read it.
func TestCheckReadsRules(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	db := queryText(t, c, "SELECT current_database()")
	file := filepath.Join(server.DataDir, "pg_hba.conf")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defer put(before)
	// Not loaded: the view reads the file.
	put([]byte(string(before) + fmt.Sprintf("host %s all 10.0.0.0/8 reject\nhostnossl %s all 0.0.0.0/0 reject\nhost %s all samehost ident\n", db, db, db)))
	found, err := Check(context.Background(), url, []string{"public.*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, f := range found {
		if strings.HasPrefix(f.Subject, "pg_hba.conf") || f.Subject == "TLS" {
			text += fmt.Sprintf("%s %s: %s\n", f.Level, f.Subject, f.Text)
		}
	}
	for _, want := range []string{"host all all 127.0.0.1/32 trust: covers 127.0.0.1", "lets in everybody who reaches pgaccel",
		"host " + db + " all samehost ident: covers", "operating system's user", "warn pg_hba.conf lines 1, ", "ok TLS: "} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing of %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "hostnossl "+db) {
		t.Errorf("a line that holds is complained of:\n%s", text)
	}
	role := "h" + db
	mustExec(t, c, "CREATE ROLE "+role+" LOGIN")
	defer mustExec(t, c, "DROP OWNED BY "+role+"; DROP ROLE "+role)
	as := strings.Replace(url, "postgres://postgres@", "postgres://"+role+"@", 1)
	if found, err = Check(context.Background(), as, []string{"public.*"}, nil); err != nil {
		t.Fatal(err)
	}
	f := finding(t, found, "pg_hba.conf")
	if f.Level != LevelWarn || !strings.Contains(f.Text, "may not read") {
		t.Fatalf("%+v", f)
	}
	mustExec(t, c, f.SQL)
	if found, err = Check(context.Background(), as, []string{"public.*"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if strings.Contains(f.Text, "may not read") {
			t.Errorf("%+v", f)
		}
	}
}
