import { h, replace, meter, empty, routeBadge } from "./dom.js";
import { get, rows } from "./api.js";
import { number, bytes, ms, seconds, percent, times } from "./format.js";
import { chart } from "./chart.js";
import { table } from "./table.js";
import { serverTime, link } from "./queries.js";

// Reasons that nothing is lacking: PostgreSQL is the right one, or was asked to answer.
const fine = ["not a plain SELECT", "mode off", "trial", "slower here", "cheap anyway", "shadow check"];
const spans = { "15m": "15 minutes", "1h": "hour", "4h": "4 hours" };

export default {
	title: "Overview",
	create({ state }) {
		let span = "15m", asked = -Infinity; // when statements were asked for
		const tiles = h("dl", { class: "tiles" });
		const note = h("p", { class: "muted" });
		const rate = chart("Statements per second", [
			{ key: "accelerated", name: "pgaccel", color: "good", fill: true }, { key: "partial", name: "in part", color: "part" },
			{ key: "forwarded", name: "PostgreSQL", color: "server" }, { key: "other", name: "over other tables", color: "other", dash: [4, 4] }], number);
		const latency = chart("Latency", [
			{ key: "fast_mean", name: "pgaccel, mean", color: "good", scale: 1e3 }, { key: "fast_p95", name: "95 %", color: "good", scale: 1e3, dash: [4, 4] },
			{ key: "slow_mean", name: "PostgreSQL, mean", color: "server", scale: 1e3 }, { key: "slow_p95", name: "95 %", color: "server", scale: 1e3, dash: [4, 4] }], ms);
		const saved = chart("Time saved, in each second", [{ key: "saved", name: "saved", color: "good", fill: true, scale: 1e3 }], ms);
		const memory = chart("Memory", [{ key: "columns", name: "columns", color: "good", fill: true }, { key: "query", name: "queries", color: "part" }, { key: "reuse", name: "kept results", color: "other" }], bytes);
		const lag = chart("Lag of the replication stream", [{ key: "lag", name: "lag", color: "server", fill: true, scale: 1e3 }], ms);
		const charts = [rate, latency, saved, memory, lag];
		const choice = h("fieldset", { class: "choice" }, h("legend", {}, "The last"), Object.entries(spans).map(([key, text]) =>
			h("label", {}, h("input", { type: "radio", name: "span", value: key, checked: key === span, onchange: () => { span = key; refresh(); } }), h("span", {}, text))));

		const gains = table("Statements that gain most", [
			{ key: "query", title: "Statement", wide: true, cell: link },
			{ key: "ms", title: "pgaccel", number: true, cell: (q) => ms(q.mean_ms) },
			{ key: "server", title: "PostgreSQL", number: true, cell: (q) => ms(serverTime(q).ms) },
			{ key: "times", title: "Faster", number: true, cell: (q) => h("strong", { class: "good" }, times(serverTime(q).ms / q.mean_ms)) },
		], { none: empty("No statement of which both times are known yet.") });
		const lacking = table("What others lack", [
			{ key: "query", title: "Statement", wide: true, cell: (q) => [link(q), h("p", { class: "why" }, q.reason, q.detail ? `: ${q.detail}` : "")] },
			{ key: "route", title: "Answered by", cell: (q) => routeBadge(q.route) },
			{ key: "share", title: "Share of time", number: true, cell: (q) => percent(q.share) },
		], { none: empty("Nothing that pgaccel could not answer.") });
		const reasons = table("Why statements were forwarded", [
			{ key: "reason", title: "Reason", wide: true, cell: (r) => r.reason },
			{ key: "route", title: "Answered by", cell: (r) => routeBadge(r.route) },
			{ key: "n", title: "Executions", number: true, cell: (r) => number(r.n) },
		], { none: empty("Nothing was forwarded.") });
		const bests = h("div", { class: "columns" },
			h("section", {}, h("h2", {}, "Statements that gain most"), gains.node), h("section", {}, h("h2", {}, "What others lack"), lacking.node));

		async function refresh() {
			const mine = span, now = await get(`overview?window=${mine}`);
			if (mine !== span) return;
			show(now);
			// They are statements themselves, which the curves show.
			if (state.user === "" || performance.now() - asked < 30e3) return;
			const queries = await rows("queries").catch((error) => {
				if (error.status === 422) return []; // there are none where nothing is accelerated
				throw error;
			});
			asked = performance.now();
			gains.update(queries.filter((q) => q.gain_ms > 0 && q.accelerated + q.partial > 0)
				.sort((a, b) => b.gain_ms * (b.accelerated + b.partial) - a.gain_ms * (a.accelerated + a.partial)).slice(0, 5));
			lacking.update(queries.filter((q) => q.route !== "accelerated" && !fine.includes(q.reason)).sort((a, b) => b.share - a.share).slice(0, 5));
		}
		function show({ now, curves, time }) {
			for (const c of charts) c.update(time, curves);
			const { accelerated = 0, partial = 0, forwarded = 0 } = now.totals;
			const others = now.reasons.reduce((n, r) => n + (r.reason === "not a plain SELECT" && r.route === "forwarded" ? r.n : 0), 0);
			const all = accelerated + partial + forwarded - others;
			const v = now.values, lagging = v.pgaccel_stream_lag_seconds;
			const ready = now.tables.filter((t) => t.state === "ready").length;
			const tile = (name, value, more) => h("div", {}, h("dt", {}, name), h("dd", {}, h("strong", {}, value), more && h("span", { class: "muted" }, more)));
			replace(tiles,
				tile("Answered by pgaccel", all > 0 ? percent((accelerated + partial) / all) : "–", `${number(accelerated + partial)} of ${number(all)} SELECTs over copied tables`),
				tile("Time saved", seconds(v.pgaccel_saved_seconds), "where PostgreSQL’s time is known"),
				tile("Tables ready", `${ready} of ${now.tables.length}`, ready < now.tables.length ? h("a", { href: "#/warnings" }, "why not all") : `${number(now.tables.reduce((n, t) => n + t.rows, 0))} rows`),
				tile("Column memory", bytes(v.pgaccel_store_bytes), [`of ${bytes(v.pgaccel_store_limit_bytes)} `, meter(`${percent(v.pgaccel_store_bytes / v.pgaccel_store_limit_bytes)} of column memory in use`, v.pgaccel_store_bytes / v.pgaccel_store_limit_bytes)]),
				tile("Stream", v.pgaccel_stream_connected ? (lagging > 0 ? seconds(lagging) : "up to date") : "not connected", v.pgaccel_stream_connected ? `${bytes(v.pgaccel_stream_lag_bytes)} behind` : h("a", { href: "#/replication" }, "why")),
				tile("Clients", number(v.pgaccel_connections), now.refused_connections > 0 ? `${number(now.refused_connections)} were refused` : "connected now"));
			note.textContent = all === 0 ? "No statement over a copied table has come yet: have your clients connect to pgaccel’s port in place of PostgreSQL’s." : "";
			note.hidden = all > 0;
			reasons.update([...now.reasons].sort((a, b) => b.n - a.n).slice(0, 12));
		}
		const node = h("div", {}, tiles, note, choice, h("div", { class: "charts" }, charts.map((c) => c.node)),
			state.user === "" ? h("p", { class: "hint" }, "Which statements got faster, and what the others lack, is shown after a ", h("a", { href: "#/login" }, "login"), ".") : bests,
			h("h2", {}, "Why statements were forwarded"), reasons.node);
		return { node, refresh, remove: () => charts.forEach((c) => c.remove()) };
	},
};
