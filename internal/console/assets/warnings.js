import { h, replace, empty, badge } from "./dom.js";
import { get, rows } from "./api.js";
import { number, bytes, percent, seconds } from "./format.js";
import { link, hidden } from "./queries.js";

const lagMax = 5; // seconds behind the server that are worth a word
const full = 0.9; // share of a limit

// warningsOf lists what somebody should look at: {tone, title, text, remedy, sql, query}.
export function warningsOf({ status: s, tables, queries, now }) {
	const all = [];
	const add = (tone, title, text, remedy, more) => all.push({ tone, title, text, remedy, ...more });
	if (!s.stream_connected)
		add("bad", "The replication stream is not connected", s.last_error ?? "Queries that would have to wait for it are forwarded.", "pgaccel tries again by itself. pgaccel check says what the server lacks.");
	else if (s.lag_seconds > lagMax)
		add("part", `The replication stream is ${seconds(s.lag_seconds)} behind`, `${bytes(s.lag_bytes)} of log. Queries wait for it up to --wait-limit, and are forwarded then.`, "Large transactions take their time. Dashboards that may show older answers: SET pgaccel.max_staleness = '5s'.");
	const known = new Set(now.tables.map((t) => t.name)); // views that a pattern covers are not among them
	for (const t of tables.filter((t) => t.state !== "ready" && known.has(t.name))) {
		const [text, ...sql] = (t.detail || "It is being copied.").split("; ");
		if (t.state === "refused") add("bad", `${t.name} is not copied`, text, sql.length > 0 ? "This would mend it:" : "Queries over it are forwarded.", { sql: sql.join("; ") || null });
		else add("part", `${t.name}: ${t.state}`, t.detail || "It is being copied.", "Queries over it are forwarded until then.");
	}
	const wrong = queries.filter((q) => q.mismatches > 0);
	for (const q of wrong)
		add("bad", `${number(q.mismatches)} of ${number(q.checks)} shadow checks found another answer`, "Statements of this shape are forwarded from then on.", "The log says how to see it again. It is a bug of pgaccel’s: please report it.", { query: q.query === hidden ? null : q });
	if (wrong.length === 0 && now.mismatches > 0)
		add("bad", `${number(now.mismatches)} shadow checks found another answer`, "Statements of these shapes are forwarded from then on.", "The log says how to see it again. It is a bug of pgaccel’s: please report it.");
	for (const [name, used, limit, flag] of [["Column", s.column_bytes, s.column_limit_bytes, "--memory (SIGHUP reads it anew)"], ["Query", s.query_bytes, s.query_limit_bytes, "--query-memory, or use --temp-dir"]])
		if (limit > 0 && used > full * limit)
			add("part", `${name} memory is ${percent(used / limit)} full`, `${bytes(used)} of ${bytes(limit)} are in use.`, `Raise ${flag}.`);
	if (s.checkpoint_failures > 0) add("part", `${number(s.checkpoint_failures)} times the columns could not be saved`, s.last_error ?? "The log says why.", "Look at the folder of --data-dir, and at the room there.");
	if (now.refused_connections > 0) add("part", `${number(now.refused_connections)} clients were refused`, "pgaccel_refused_connections_total has the reasons: the server, --max-clients, TLS, or the end of the process.", "Raise --max-clients, or max_connections of the server, where these are the reason.");
	return all;
}

export default {
	title: "Warnings",
	login: true,
	create() {
		const list = h("ul", { class: "warnings" }), none = h("div", { hidden: true }, empty("Nothing to warn of: tables are ready, the stream is up, and memory suffices."));
		return {
			node: h("div", {}, none, list),
			async refresh() {
				const [[status], tables, queries, { now }] = await Promise.all([rows("status"), rows("tables"), rows("queries"), get("overview?window=15m")]);
				const all = warningsOf({ status, tables, queries, now });
				none.hidden = all.length > 0;
				replace(list, all.map((w) => h("li", { class: `warning ${w.tone}` }, h("h2", {}, badge(w.tone === "bad" ? "error" : "warning", w.tone), " ", w.title),
					h("p", {}, w.text), w.query && h("p", {}, link(w.query)), w.remedy && h("p", { class: "hint" }, w.remedy), w.sql && h("pre", { tabindex: "0", "aria-label": "SQL", "data-key": w.title }, w.sql))));
			},
		};
	},
};
