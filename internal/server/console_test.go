package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// browser asks the console as a browser does, and keeps its cookies.
type browser struct {
	t       *testing.T
	base    string
	cookies []*http.Cookie
	header  http.Header // more of each request
	host    string
}

// newConsole starts a server with pgaccel and the console in front, at an address, and roles with passwords.
func newConsole(t *testing.T, address string) (*bench, *browser) {
	t.Helper()
	b := startBench(t, `CREATE ROLE watcher LOGIN PASSWORD 'right' IN ROLE pg_monitor; CREATE ROLE other LOGIN PASSWORD 'right';
CREATE TABLE bare (a int); GRANT SELECT ON fact TO watcher, other`, Config{HTTP: address})
	b.asksPasswords("watcher,other")
	_, port, err := net.SplitHostPort(b.s.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return b, &browser{t: t, base: "http://127.0.0.1:" + port + "/console/"}
}

// asksPasswords has pg_hba.conf ask roles for one.
func (b *bench) asksPasswords(roles string) {
	b.t.Helper()
	file := filepath.Join(b.pg.DataDir, "pg_hba.conf")
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, append([]byte("host all "+roles+" all scram-sha-256\n"), text...), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.exec(b.direct("postgres"), "SELECT pg_reload_conf()")
	eventually(b.t, "pg_hba.conf is read", func() bool {
		return strings.Contains(b.said(b.direct("postgres"), "SELECT pg_conf_load_time() > (pg_stat_file('pg_hba.conf')).modification", -1), "t")
	})
}

// do sends a request, with a body that is not "" as JSON, and returns the answer.
func (w *browser) do(method, path, body string) (status int, answer string, head http.Header) {
	w.t.Helper()
	r, err := http.NewRequest(method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, values := range w.header {
		r.Header[name] = values
	}
	if w.host != "" {
		r.Host = w.host
	}
	for _, c := range w.cookies {
		r.AddCookie(c)
	}
	answered, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answered.Body.Close()
	text, err := io.ReadAll(answered.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range answered.Cookies() {
		w.cookies = []*http.Cookie{c}
		if c.MaxAge < 0 {
			w.cookies = nil
		}
	}
	return answered.StatusCode, string(text), answered.Header
}

// want asks and compares the status, and looks for a text.
func (w *browser) want(method, path, body string, status int, text string) string {
	w.t.Helper()
	got, answer, head := w.do(method, path, body)
	if got != status || !strings.Contains(answer, text) {
		w.t.Errorf("%s %s %s: %d %.300s, want %d %s", method, path, body, got, answer, status, text)
	}
	for name, part := range map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'self'", "X-Content-Type-Options": "nosniff"} {
		if !strings.Contains(head.Get(name), part) {
			w.t.Errorf("%s %s: %s is %q", method, path, name, head.Get(name))
		}
	}
	return answer
}

func (w *browser) login(user, password string) {
	w.t.Helper()
	w.want("POST", "api/login", fmt.Sprintf(`{"user":%q,"password":%q}`, user, password), 200, user)
	if len(w.cookies) != 1 {
		w.t.Fatal("no cookie")
	}
}

// TestConsole has one server for what changes little of it.
func TestConsole(t *testing.T) {
	b, w := newConsole(t, "127.0.0.1:0")
	for _, c := range []struct {
		name string
		test func(*testing.T, *bench, *browser)
	}{{"rights", consoleRights}, {"strangers", consoleStrangers}, {"compare", consoleCompare}, {"guesses", consoleGuesses}} {
		t.Run(c.name, func(t *testing.T) {
			inner := *b
			inner.t = t
			c.test(t, &inner, &browser{t: t, base: w.base})
		})
	}
}

// consoleRights: who has not logged in sees what /metrics shows, who has what the role sees in the schema pgaccel.
func consoleRights(t *testing.T, b *bench, w *browser) {
	b.said(b.through("postgres"), "SELECT g, sum(v) AS watched FROM fact GROUP BY g", 0)
	if _, page := b.get("/"); !strings.Contains(page, "<title>pgaccel</title>") {
		t.Errorf("/ does not lead to the console: %.100s", page)
	}
	w.want("GET", "", "", 200, "<title>pgaccel</title>")
	w.want("GET", "main.js", "", 200, "import")
	w.want("GET", "api/state", "", 200, `"open":true,"user":"","database":"postgres"`)
	eventually(t, "a sample", func() bool {
		_, answer, _ := w.do("GET", "api/overview?window=15m", "")
		return strings.Contains(answer, `"name":"public.fact","state":"ready","rows":5000`)
	})
	w.want("GET", "api/overview?window=2y", "", 400, "")
	for _, name := range []string{"queries", "tables", "columns", "status", "sessions", "devices"} {
		w.want("GET", "api/rows/"+name, "", 401, "Log in first")
	}
	w.want("POST", "api/compare", `{"sql":"SELECT 1"}`, 401, "Log in first")
	w.cookies = []*http.Cookie{{Name: fmt.Sprintf("pgaccel_console_%d", b.s.HTTPAddr().(*net.TCPAddr).Port), Value: "GUESSED"}}
	w.want("GET", "api/rows/queries", "", 401, "Log in first")
	w.cookies = nil
	w.want("POST", "api/login", `{"user":"watcher","password":"wrong"}`, 401, "password authentication failed")
	w.want("POST", "api/login", `{"user":"watcher","password":""}`, 401, "")
	w.want("POST", "api/login", `{"user":""}`, 400, "")
	if w.cookies != nil {
		t.Fatal("a cookie of a login that failed")
	}

	w.login("watcher", "right")
	if c := w.cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.MaxAge <= 0 || c.Path != "/console/" || len(c.Value) < 26 {
		t.Errorf("the cookie: %v", c)
	}
	w.want("GET", "api/state", "", 200, `"user":"watcher"`)
	w.want("GET", "api/rows/queries", "", 200, "AS watched FROM fact")
	w.want("GET", "api/rows/tables", "", 200, "public.secret")
	w.want("GET", "api/rows/columns", "", 200, `"codec":`)
	w.want("GET", "api/rows/devices", "", 200, `"device":`)
	w.want("GET", "api/rows/status", "", 200, `"stream_connected":true`)
	w.want("GET", "api/rows/sessions", "", 200, `"application_name":"pgaccel console"`)
	w.want("GET", "api/rows/pg_authid", "", 404, "")
	old := w.cookies
	w.want("POST", "api/logout", "{}", 200, "")
	w.cookies = old
	w.want("GET", "api/rows/queries", "", 401, "Log in first")
	eventually(t, "its connection is closed", func() bool {
		return strings.Contains(b.said(b.through("postgres"), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgaccel console'", -1), "0")
	})

	w.cookies = nil
	w.login("other", "right")
	if got := w.want("GET", "api/rows/queries", "", 200, "insufficient privilege"); strings.Contains(got, "watched") {
		t.Errorf("texts are shown to who may not see them: %s", got)
	}
	if got := w.want("GET", "api/rows/tables", "", 200, "public.fact"); strings.Contains(got, "secret") {
		t.Errorf("tables are shown to who may not read them: %s", got)
	}
	b.exec(b.direct("postgres"), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgaccel console'")
	eventually(t, "the login has ended with its connection", func() bool {
		status, _, _ := w.do("GET", "api/rows/tables", "")
		return status == 401
	})
}

// consoleStrangers: pages of other sites, and names that others' DNS points here, get nothing.
func consoleStrangers(t *testing.T, _ *bench, w *browser) {
	const login = `{"user":"watcher","password":"right"}`
	for _, c := range []struct {
		host, name, value string
		status            int
	}{
		{"evil.example", "", "", 421}, {"evil.example:8432", "", "", 421}, {"127.0.0.1.evil.example", "", "", 421}, {"10.0.0.1", "", "", 421},
		{"", "Origin", "http://evil.example", 403}, {"", "Origin", "null", 403}, {"", "Sec-Fetch-Site", "cross-site", 403}, {"", "Sec-Fetch-Site", "same-site", 403},
		{"", "Content-Type", "text/plain", 415}, {"", "Content-Type", "application/x-www-form-urlencoded", 415},
	} {
		w.host, w.header = c.host, http.Header{}
		if c.name != "" {
			w.header.Set(c.name, c.value)
		}
		w.want("POST", "api/login", login, c.status, "error")
		if c.host != "" {
			w.want("GET", "api/overview?window=15m", "", c.status, "error")
		}
	}
	if w.cookies != nil {
		t.Fatal("a stranger has a cookie")
	}
	w.host, w.header = "", http.Header{"X-Forwarded-For": {"192.0.2.1"}}
	w.want("GET", "api/overview?window=15m", "", 401, "Log in first") // a proxy may let others in
	w.want("POST", "api/login", `{"user":"postgres","password":""}`, 403, "without a password")
	for _, host := range []string{"localhost:1", "LOCALHOST", "[::1]:8432", "127.0.0.1"} {
		w.host, w.header = host, http.Header{"Origin": {"http://" + host}}
		w.want("GET", "api/state", "", 200, `"open":true`)
		w.want("POST", "api/login", login, 200, "watcher")
	}
}

// consoleGuesses: an address that fails to log in is refused for a while, with the right password, too.
func consoleGuesses(t *testing.T, _ *bench, w *browser) {
	for range 20 { // logins that succeed do not count
		w.want("POST", "api/login", `{"user":"watcher","password":"right"}`, 200, "")
	}
	guesses := 0
	for status := 0; status != 429; guesses++ {
		if status, _, _ = w.do("POST", "api/login", `{"user":"watcher","password":"wrong"}`); status != 401 && status != 429 || guesses > 10 {
			t.Fatalf("guess %d: %d", guesses, status)
		}
	}
	w.want("POST", "api/login", `{"user":"other","password":"right"}`, 429, "Too many")
	w.want("GET", "api/rows/tables", "", 200, "public.fact") // who is in stays in
}

// TestConsoleElsewhere: where others reach the listener everything needs a login, and a login a password.
func TestConsoleElsewhere(t *testing.T) {
	_, w := newConsole(t, "0.0.0.0:0")
	w.want("GET", "", "", 200, "<title>pgaccel</title>")
	w.want("GET", "api/state", "", 200, `"open":false,"user":"","database":"","version":""`)
	w.want("GET", "api/overview?window=15m", "", 401, "Log in first")
	w.want("POST", "api/login", `{"user":"postgres","password":""}`, 403, "without a password")
	w.want("POST", "api/login", `{"user":"postgres","password":"any"}`, 403, "without a password")
	w.host = "evil.example"
	w.want("GET", "api/state", "", 421, "")
	w.host = ""
	w.login("watcher", "right")
	w.want("GET", "api/overview?window=15m", "", 200, `"time":[`)
}

// consoleCompare: a statement is answered by both sides in one snapshot, and changes nothing.
func consoleCompare(t *testing.T, b *bench, w *browser) {
	b.exec(b.direct("postgres"), "ALTER ROLE postgres SET pgaccel.mode = 'force'")
	w.login("postgres", "")
	type side struct {
		Route   string
		MS      float64
		Rows    int
		Columns []string
		Shown   [][]*string
	}
	type comparison struct {
		PgAccel, Postgres side
		Equal             string
		Notes             []string
	}
	compare := func(sql string) (c comparison) {
		t.Helper()
		body, _ := json.Marshal(map[string]string{"sql": sql})
		if err := json.Unmarshal([]byte(w.want("POST", "api/compare", string(body), 200, "")), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := compare("SELECT g, sum(v), NULL AS n FROM fact GROUP BY g ORDER BY g")
	if c.PgAccel.Route != "accelerated" || c.Postgres.Route != "forwarded" || c.Equal != "yes" || c.PgAccel.Rows != 7 || c.Postgres.Rows != 7 || len(c.PgAccel.Shown) != 7 || *c.PgAccel.Shown[6][0] != "6" || c.PgAccel.Shown[0][2] != nil || fmt.Sprint(c.Postgres.Columns) != "[g sum n]" || len(c.Notes) > 0 {
		t.Errorf("accelerated: %+v", c)
	}
	c = compare("SELECT id FROM fact ORDER BY id")
	if c.PgAccel.Rows != 5000 || len(c.PgAccel.Shown) != 200 || c.Equal != "yes" {
		t.Errorf("many rows: %d, %d shown, %s", c.PgAccel.Rows, len(c.PgAccel.Shown), c.Equal)
	}
	c = compare("SELECT g, json_agg(v) OVER () FROM fact WHERE id < 5")
	if c.PgAccel.Route == "accelerated" || c.Equal != "yes" || !strings.Contains(strings.Join(c.Notes, "\n"), "json_agg") {
		t.Errorf("not accelerated: %s %s %q", c.PgAccel.Route, c.Equal, c.Notes)
	}
	if c = compare("SELECT random()"); c.Equal != "no" {
		t.Errorf("random(): %s", c.Equal)
	}
	b.exec(b.direct("postgres"), "CREATE SEQUENCE turn")
	if c = compare("SELECT i FROM generate_series(1, 100) i ORDER BY i * CASE WHEN current_setting('pgaccel.mode') = 'off' THEN 1 ELSE -1 END"); c.Equal != "order" {
		t.Errorf("another order: %s", c.Equal)
	}
	for sql, said := range map[string]string{
		"INSERT INTO dim VALUES (77, 'x') RETURNING g":      "read-only transaction",
		"SELECT nextval('turn')":                            "read-only transaction",
		"COMMIT":                                            "returns rows",
		"SET TRANSACTION READ WRITE":                        "returns rows",
		"COPY dim TO PROGRAM 'false'":                       "returns rows",
		"DROP TABLE dim":                                    "returns rows",
		"SELECT 1; DROP TABLE dim":                          "multiple commands",
		"SELECT nonsense":                                   "does not exist",
		"SELECT count(*) FROM fact WHERE id / (id - 7) > 0": "division by zero",
		"": "returns rows",
	} {
		body, _ := json.Marshal(map[string]string{"sql": sql})
		w.want("POST", "api/compare", string(body), 422, said)
	}
	w.want("POST", "api/compare", "no JSON", 400, "")
	if got := b.said(b.direct("postgres"), "SELECT count(*), (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgaccel console' AND state <> 'idle') FROM dim", -1); !strings.Contains(got, "7|0") {
		t.Errorf("afterwards: %s", got)
	}
}
