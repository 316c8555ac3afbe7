import { h, replace, empty, badge, routeBadge, meter } from "./dom.js";
import { rows } from "./api.js";
import { number, ms, percent, times, ago, clock } from "./format.js";
import { table } from "./table.js";

export const hidden = "<insufficient privilege>";

// serverTime is what PostgreSQL takes for an execution of a row of pgaccel.queries: as measured, or else by its estimate.
export function serverTime(q) {
	if (q.forwarded_mean_ms > 0) return { ms: q.forwarded_mean_ms, estimated: false };
	if (q.gain_ms !== null) return { ms: q.gain_ms + q.mean_ms, estimated: true };
	return { ms: null, estimated: false };
}

// gainOf is how many times as fast pgaccel answers; null where one side's time is not known.
function gainOf(q) {
	const server = serverTime(q).ms;
	return server !== null && q.mean_ms > 0 ? server / q.mean_ms : null;
}

// keyOf names a statement in an address: FNV-1a of its text.
function keyOf(text) {
	let sum = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193) >>> 0;
	return sum.toString(16).padStart(8, "0");
}

// link is a statement's text, shortened, which leads to all of it.
export function link(q) {
	if (q.query === hidden) return h("span", { class: "muted" }, "hidden from this role");
	const key = keyOf(q.query);
	return h("a", { href: `#/queries/${key}`, class: "sql", "data-key": key }, q.query.length > 300 ? `${q.query.slice(0, 300)}…` : q.query);
}

function server(q) {
	const { ms: v, estimated } = serverTime(q);
	return v === null ? "–" : `${estimated ? "≈ " : ""}${ms(v)}`;
}

function faster(q) {
	const v = gainOf(q);
	return v === null ? "–" : h("strong", { class: v >= 1 ? "good" : "bad" }, times(v));
}

const filters = {
	all: ["All", () => true],
	faster: ["Faster here", (q) => gainOf(q) > 1 && q.accelerated + q.partial > 0],
	accelerated: ["Answered by pgaccel", (q) => q.route === "accelerated"],
	partial: ["In part", (q) => q.route === "partial"],
	forwarded: ["Answered by PostgreSQL", (q) => q.route === "forwarded"],
	mismatch: ["With mismatches", (q) => q.mismatches > 0],
};

export default {
	title: "Queries",
	login: true,
	create(context, argument) {
		return argument === null ? list() : detail(argument);
	},
};

function list() {
	let all = [];
	const search = h("input", { type: "search", placeholder: "text or reason", oninput: show });
	const choose = h("select", { onchange: show }, Object.entries(filters).map(([key, [text]]) => h("option", { value: key }, text)));
	const count = h("p", { class: "muted", role: "status" });
	const note = h("p", { class: "hint", hidden: true }, "This role does not see the texts of statements. A superuser grants that: ", h("code", {}, "GRANT pg_read_all_stats TO …"), ".");
	const found = table("Statements", [
		{ key: "query", title: "Statement", wide: true, cell: (q) => [link(q), q.route !== "accelerated" && h("p", { class: "why" }, q.reason, q.detail ? `: ${q.detail.split("\n")[0]}` : "")] },
		{ key: "route", title: "Answered by", sort: (q) => q.route, cell: (q) => [routeBadge(q.route), q.mismatches > 0 && [" ", badge("mismatch", "bad")]] },
		{ key: "calls", title: "Calls", number: true, sort: (q) => q.calls, cell: (q) => number(q.calls) },
		{ key: "mean", title: "pgaccel", number: true, sort: (q) => q.mean_ms || null, cell: (q) => (q.mean_ms > 0 ? ms(q.mean_ms) : "–") },
		{ key: "server", title: "PostgreSQL", number: true, sort: (q) => serverTime(q).ms, cell: server },
		{ key: "times", title: "Faster", number: true, sort: gainOf, cell: faster },
		{ key: "gain", title: "Saved a call", number: true, sort: (q) => q.gain_ms, cell: (q) => ms(q.gain_ms) },
		{ key: "share", title: "Share of time", number: true, sort: (q) => q.share, cell: (q) => [percent(q.share), meter(`${percent(q.share)} of the time`, q.share)] },
		{ key: "used", title: "Last", number: true, sort: (q) => q.last_used, cell: (q) => ago(q.last_used) },
	], { sort: ["share", true], none: empty("No statement. Those over copied tables come here at once, others if they take PostgreSQL 5 ms or more.") });
	function show() {
		const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
		const some = all.filter(filters[choose.value][1]).filter((q) => {
			const text = `${q.query} ${q.reason} ${q.detail ?? ""}`.toLowerCase();
			return words.every((w) => text.includes(w));
		});
		count.textContent = `${number(some.length)} of ${number(all.length)} statements`;
		note.hidden = !all.some((q) => q.query === hidden);
		found.update(some);
	}
	return {
		node: h("div", {}, note, h("div", { class: "tools" }, h("label", {}, "Find ", search), h("label", {}, "Show ", choose), count), found.node),
		async refresh() {
			all = await rows("queries");
			show();
		},
	};
}

// marked is the text with the character at a position, from 1, and the rest of its word marked.
function marked(text, position) {
	if (!position) return text;
	const all = [...text], from = position - 1;
	let to = from + 1;
	while (to < all.length && /\w/.test(all[to - 1]) && /\w/.test(all[to])) to++;
	return [all.slice(0, from).join(""), h("mark", {}, all.slice(from, to).join("")), all.slice(to).join("")];
}

function detail(key) {
	const node = h("div", {});
	return {
		node,
		async refresh() {
			const q = (await rows("queries")).find((r) => keyOf(r.query) === key);
			const back = h("p", {}, h("a", { href: "#/queries", "data-key": "back" }, "← All statements"));
			if (!q) {
				replace(node, back, empty("This statement is not remembered any longer."));
				return;
			}
			const s = serverTime(q), most = Math.max(q.mean_ms, s.ms ?? 0, 1e-9);
			const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
			const bar = (name, v, tone, text) => h("div", { class: "bar" }, h("span", {}, name), v > 0 ? meter(`${name}: ${text}`, v / most, tone) : h("span", { class: "muted" }, "has not answered it yet"), v > 0 && h("strong", {}, text));
			const also = (q.also ?? "").split("\n").filter(Boolean);
			replace(node, back,
				h("p", {}, "The last execution was answered by ", routeBadge(q.route), q.mismatches > 0 && [" ", badge(`${q.mismatches} mismatches in shadow checks`, "bad")]),
				h("pre", { class: "statement", tabindex: "0", "aria-label": "Text, without constants", "data-key": "text" }, marked(q.query, q.position)),
				q.route !== "accelerated" && h("section", {}, h("h2", {}, q.route === "partial" ? "What PostgreSQL still does" : "What it lacks"),
					h("ul", { class: "reasons" }, h("li", {}, h("strong", {}, q.reason), q.detail && [": ", h("span", { class: "lines" }, q.detail)], q.position && h("span", { class: "muted" }, ` (at ${q.position})`)), also.map((a) => h("li", {}, a))),
					q.hint && h("p", { class: "hint" }, q.hint)),
				h("section", {}, h("h2", {}, "Both sides, mean of an execution"),
					bar("pgaccel", q.mean_ms, "good", ms(q.mean_ms)), bar("PostgreSQL", s.ms, "server", `${s.estimated ? "≈ " : ""}${ms(s.ms)}`),
					s.estimated && h("p", { class: "muted" }, "PostgreSQL’s time is by its planner’s estimate: it has not been timed."),
					gainOf(q) !== null && h("p", {}, "pgaccel is ", faster(q), gainOf(q) >= 1 ? " as fast." : " as fast: slower.")),
				h("section", {}, h("h2", {}, "Executions"), h("dl", { class: "facts" },
					fact("Calls", number(q.calls)), fact("By pgaccel", number(q.accelerated)), fact("In part", number(q.partial)), fact("By PostgreSQL", number(q.forwarded)),
					fact("Rows by pgaccel", number(q.rows)), fact("Fastest here", q.accelerated + q.partial > 0 ? ms(q.min_ms) : "–"), fact("Total here", ms(q.total_ms)), fact("Total of PostgreSQL", ms(q.forwarded_total_ms)),
					fact("Share of all time", percent(q.share)), fact("Saved a call", ms(q.gain_ms)), fact("Device", q.device || "–"), fact("Shadow checks", number(q.checks)), fact("Last", clock(q.last_used)))));
		},
	};
}
