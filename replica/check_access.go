package replica

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// access is how clients of pgaccel reach the server, as pg_hba.conf sees them.
type access struct {
	socket  bool       // pgaccel's connections come over a Unix socket
	address netip.Addr // they come from there otherwise
	tls     bool       // they have TLS, or may have
	// follows says that a session's connection has TLS where the client's has, as
	// upstream.Config.Dial has it.
	follows     bool
	certificate bool // clients may use TLS
}

// access looks at what the server's rules for logins mean behind pgaccel. certificate
// is the one that clients are shown, DER; nil without.
func (c *checker) access(certificate []byte) error {
	a := access{certificate: certificate != nil}
	conn := c.conn.PgConn().Conn()
	secured, isTLS := conn.(*tls.Conn)
	a.tls = isTLS
	if err := c.conn.QueryRow(c.ctx, `SELECT pg_catalog.inet_client_addr() IS NULL`).Scan(&a.socket); err != nil {
		return err
	}
	local := a.socket
	if remote, ok := conn.RemoteAddr().(*net.TCPAddr); ok && !a.socket {
		var text string
		if err := c.conn.QueryRow(c.ctx, `SELECT pg_catalog.host(pg_catalog.inet_client_addr())`).Scan(&text); err != nil {
			return err
		}
		var err error
		if a.address, err = netip.ParseAddr(text); err != nil {
			return err
		}
		mine, _ := conn.LocalAddr().(*net.TCPAddr)
		local = remote.IP.IsLoopback() || mine != nil && mine.IP.Equal(remote.IP)
	}
	plainAllowed := c.cfg.TLSConfig == nil
	for _, f := range c.cfg.Fallbacks {
		plainAllowed = plainAllowed || f.TLSConfig == nil
	}
	shared := false
	if secured != nil {
		list := secured.ConnectionState().PeerCertificates
		shared = len(list) > 0 && bytes.Equal(list[0].Raw, certificate)
	}
	a.follows = local && plainAllowed && a.tls && (shared || certificate == nil)
	switch {
	case !a.tls:
		c.add(LevelOK, "TLS", "pgaccel's connection to the server has none: SCRAM works for clients with TLS and without", "")
	case a.follows:
		c.add(LevelOK, "TLS", "a client's connection to the server has TLS where its connection to pgaccel has: SCRAM works for both", "")
	case local && plainAllowed:
		c.add(LevelOK, "TLS", "clients' connections to the server have none, because clients are shown another certificate than the server's: SCRAM works, without channel binding", "")
		a.tls = false
	case certificate == nil:
		c.add(LevelOK, "TLS", "pgaccel's connection to the server has TLS, clients' connections to pgaccel have none: SCRAM works, without channel binding", "")
	case shared:
		c.add(LevelOK, "TLS", "on both sides, with the server's own certificate: SCRAM works, channel binding included", "")
	default:
		c.add(LevelWarn, "TLS", "clients are shown another certificate than the server's, so that SCRAM, which binds to the server's, fails for them: "+
			"give pgaccel the server's certificate and key (--tls-cert, --tls-key), or have clients connect with channel_binding=disable", "")
	}
	return c.hba(a)
}

// hbaRule is one line of pg_hba.conf.
type hbaRule struct {
	line             int
	kind             string // local, host, hostssl, ...
	databases, users []string
	address, netmask string // "" for local
	method           string
	options          []string
}

// hba reads pg_hba.conf, where the role may, and names the lines that cannot mean
// behind pgaccel what they say.
func (c *checker) hba(a access) error {
	const view = "pg_catalog.pg_hba_file_rules"
	var may bool
	err := c.conn.QueryRow(c.ctx, `SELECT pg_catalog.has_table_privilege('`+view+`', 'SELECT') AND pg_catalog.has_function_privilege('pg_catalog.pg_hba_file_rules()', 'EXECUTE')`).Scan(&may)
	if err != nil {
		return err
	}
	if !may {
		c.add(LevelWarn, "pg_hba.conf", "this role may not read pg_hba_file_rules: whether lines for TLS, addresses, trust, peer or certificates hold behind pgaccel has not been looked at; a superuser lets it",
			"GRANT SELECT ON pg_hba_file_rules TO "+c.quotedRole+"; GRANT EXECUTE ON FUNCTION pg_hba_file_rules() TO "+c.quotedRole)
		return nil
	}
	rows, err := c.conn.Query(c.ctx, `SELECT line_number, type, database::text[], user_name::text[], coalesce(address, ''), coalesce(netmask, ''), auth_method, coalesce(options, '{}')::text[]
		FROM `+view+` WHERE error IS NULL ORDER BY line_number`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var rules []hbaRule
	for rows.Next() {
		var r hbaRule
		if err := rows.Scan(&r.line, &r.kind, &r.databases, &r.users, &r.address, &r.netmask, &r.method, &r.options); err != nil {
			return err
		}
		rules = append(rules, r)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	c.rules(a, rules)
	return nil
}

// rules says which lines do not mean behind pgaccel what they say.
func (c *checker) rules(a access, rules []hbaRule) {
	odd := false
	var others []string
	for _, r := range rules {
		switch {
		case slices.Equal(r.databases, []string{"replication"}): // pgaccel's own stream, not clients
		case !r.covers(a) && r.kind == "hostssl" && r.method != "reject" && !a.certificate:
			odd = true
			c.add(LevelWarn, fmt.Sprintf("pg_hba.conf line %d", r.line), r.String()+": asks for TLS, which clients cannot use with pgaccel, and speaks of other addresses than pgaccel's ("+a.from()+
				"): who logs in by this line now is let in or refused by another one. Give pgaccel the server's certificate and key (--tls-cert, --tls-key), refuse clients without TLS (--tls-require), "+
				"and restrict who reaches pgaccel (--listen, a firewall)", "")
		case !r.covers(a):
			others = append(others, fmt.Sprint(r.line))
		default:
			if level, text := r.behind(a); text != "" {
				odd = odd || level != LevelOK
				c.add(level, fmt.Sprintf("pg_hba.conf line %d", r.line), r.String()+": "+text, "")
			}
		}
	}
	if len(others) > 0 {
		c.add(LevelWarn, "pg_hba.conf lines "+strings.Join(others, ", "), "they speak of other addresses than pgaccel's, which is every client's behind it ("+a.from()+"): "+
			"they let in or stop nobody there; restrict who reaches pgaccel (--listen, a firewall), and give pgaccel's address the strictest rule", "")
	} else if !odd {
		c.add(LevelOK, "pg_hba.conf", "every line means behind pgaccel what it says", "")
	}
}

func (a access) from() string {
	if a.socket {
		return "a Unix socket"
	}
	return a.address.String()
}

// String returns the line about as it stands in the file.
func (r hbaRule) String() string {
	parts := []string{r.kind, strings.Join(r.databases, ","), strings.Join(r.users, ",")}
	if p, ok := r.prefix(); ok {
		parts = append(parts, p.String())
	} else if r.address != "" {
		parts = append(parts, r.address)
	}
	return strings.Join(append(append(parts, r.method), r.options...), " ")
}

func (r hbaRule) prefix() (netip.Prefix, bool) {
	addr, err := netip.ParseAddr(r.address)
	if err != nil {
		return netip.Prefix{}, false
	}
	mask := net.ParseIP(r.netmask)
	if v4 := mask.To4(); v4 != nil && addr.Is4() {
		mask = v4
	}
	ones, _ := net.IPMask(mask).Size()
	return netip.PrefixFrom(addr, ones), true
}

// covers reports whether the line speaks of pgaccel's own address, whatever it says of
// TLS. Names that only the server can resolve are taken to.
func (r hbaRule) covers(a access) bool {
	if r.kind == "local" || a.socket {
		return (r.kind == "local") == a.socket
	}
	p, ok := r.prefix()
	return !ok || p.Contains(a.address)
}

// everywhere reports whether the line speaks of every address.
func (r hbaRule) everywhere() bool {
	p, ok := r.prefix()
	return r.address == "all" || ok && p.Bits() == 0
}

// behind says what a line that covers pgaccel's address does not do, and what to do;
// "" where it means what it says.
func (r hbaRule) behind(a access) (Level, string) {
	var list []string
	level := LevelWarn
	if r.kind != "local" && !r.everywhere() {
		list = append(list, "covers "+a.from()+", so that it holds for everybody who reaches pgaccel, whatever their own address: restrict who does (--listen, a firewall)")
	}
	remarks := len(list)
	switch tls := r.kind == "hostssl" || r.kind == "hostgssenc"; {
	case r.kind == "hostgssenc":
		list = append(list, "pgaccel does not speak GSSAPI encryption: this line never matches")
	case tls && !a.tls:
		list = append(list, "pgaccel's connection has no TLS, so that this line never matches: use sslmode=require in --upstream, or the server's certificate as --tls-cert")
	case tls && a.follows && !a.certificate:
		list = append(list, "clients cannot use TLS with pgaccel, so that this line never matches: give pgaccel the server's certificate and key (--tls-cert, --tls-key)")
	case tls && !a.follows && !a.certificate:
		list = append(list, "pgaccel's connection has TLS though its clients have none: give pgaccel the server's certificate and key (--tls-cert, --tls-key), and clients without TLS are refused")
	case tls && !a.follows:
		list = append(list, "pgaccel's connection has TLS whatever its clients have: it must refuse clients without TLS (--tls-require, on by default here)")
	case r.kind == "hostnossl" && a.tls && !a.follows && r.method == "reject":
		list = append(list, "pgaccel's connection has TLS, so that this line never matches: pgaccel must refuse clients without TLS (--tls-cert, --tls-key, --tls-require)")
	case r.kind == "hostnossl" && a.tls && !a.follows:
		list = append(list, "pgaccel's connection has TLS, so that this line never matches")
	}
	switch {
	case r.method == "trust":
		list = append(list, "lets in everybody who reaches pgaccel, without a password: use scram-sha-256")
	case r.method == "peer", r.method == "ident":
		list = append(list, "asks for the operating system's user of pgaccel, not of the client: clients are refused, or all of them taken for that user; use scram-sha-256")
	case r.method == "cert", slices.ContainsFunc(r.options, func(o string) bool { return strings.HasPrefix(o, "clientcert=") }):
		list = append(list, "asks for a client certificate, which cannot be relayed: clients are refused, or all of them let in by the one in --upstream (sslcert); use scram-sha-256")
	case r.method == "gss", r.method == "sspi":
		list = append(list, "cannot be relayed: clients are refused; use scram-sha-256")
	}
	if len(list) == remarks {
		level = LevelOK // as is to be expected
	}
	return level, strings.Join(list, "; ")
}
