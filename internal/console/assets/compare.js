import { h, replace, badge, routeBadge, meter } from "./dom.js";
import { post } from "./api.js";
import { ms, number, times } from "./format.js";

// What was asked last, so that a look at another page does not lose it.
let last = "";

export default {
	title: "Compare",
	login: true,
	create({ state }) {
		const sql = h("textarea", { id: "sql", rows: "6", spellcheck: "false", autocapitalize: "none", placeholder: "SELECT …" });
		sql.value = last;
		const button = h("button", { type: "submit", class: "primary" }, "Run on both sides");
		const out = h("div", { role: "status" });
		async function submit(event) {
			event?.preventDefault();
			if (button.disabled || sql.value.trim() === "") return;
			last = sql.value;
			button.disabled = true;
			replace(out, h("p", { class: "loading" }, "Running…"));
			try {
				show(await post("compare", { sql: sql.value }));
			} catch (error) {
				replace(out, h("p", { class: "error" }, error.message));
			} finally {
				button.disabled = false;
			}
		}
		function side(name, a, most, tone) {
			const rows = h("table", {}, h("thead", {}, h("tr", {}, a.columns.map((c) => h("th", { scope: "col" }, c)))),
				h("tbody", {}, a.shown.map((r) => h("tr", {}, r.map((v) => h("td", {}, v === null ? h("span", { class: "muted" }, "null") : v))))));
			return h("section", { "aria-label": name }, h("h2", {}, name), h("p", {}, h("strong", { class: "large" }, ms(a.ms)), " ", routeBadge(a.route), ` ${number(a.rows)} rows`, a.rows > a.shown.length && `, the first ${a.shown.length} shown`),
				meter(`${name}: ${ms(a.ms)}`, a.ms / most, tone), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Rows of ${name}` }, rows));
		}
		function show({ pgaccel, postgres, equal, notes }) {
			const most = Math.max(pgaccel.ms, postgres.ms), ratio = postgres.ms / pgaccel.ms;
			replace(out, h("p", { class: "verdict" },
				equal === "yes" ? badge("the same answer", "good") : equal === "order" ? badge("the same rows, in another order", "part") : badge("different answers", "bad"), " ",
				pgaccel.route === "forwarded" ? "PostgreSQL answered both." : ["pgaccel took ", ms(pgaccel.ms), ": ", h("strong", { class: ratio >= 1 ? "good" : "bad" }, times(ratio)), " as fast as PostgreSQL."]),
				equal === "no" && h("p", { class: "warn" }, "Statements with random(), clock_timestamp() and the like differ each time, and so may LIMIT without a total order and the last digits of sums of double precision."),
				notes.length > 0 && h("section", {}, h("h2", {}, "What it lacks"), h("pre", { class: "lines", tabindex: "0", "aria-label": "What it lacks" }, notes.join("\n"))),
				h("div", { class: "columns" }, side("Through pgaccel", pgaccel, most, "good"), side("PostgreSQL", postgres, most, "server")));
		}
		const node = h("div", {}, h("form", { onsubmit: submit, class: "compare" },
			h("label", { for: "sql" }, `One statement, as ${state.user}`), sql,
			h("p", { class: "muted" }, "Both answer in one transaction, which is READ ONLY, of one snapshot, and rolled back: PostgreSQL, relayed with pgaccel.mode = off, then pgaccel as it answers any client. Of what takes less than two seconds the faster of two runs counts. Ctrl+Enter runs it."), button), out);
		sql.addEventListener("keydown", (event) => {
			if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
		});
		return { node };
	},
};
