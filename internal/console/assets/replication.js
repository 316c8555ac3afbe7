import { h, replace, badge, empty } from "./dom.js";
import { get, rows } from "./api.js";
import { number, bytes, ms, seconds, ago, clock } from "./format.js";
import { chart } from "./chart.js";
import { table } from "./table.js";

export default {
	title: "Replication",
	login: true,
	create() {
		const facts = h("dl", { class: "facts" }), trouble = h("div", {});
		const lag = chart("Lag, the last hour", [{ key: "lag", name: "lag", color: "server", fill: true, scale: 1e3 }], ms);
		const found = table("Changes since the copy", [
			{ key: "name", title: "Table", wide: true, sort: (t) => t.name, cell: (t) => t.name },
			{ key: "inserted", title: "Inserted", number: true, sort: (t) => t.inserted, cell: (t) => number(t.inserted) },
			{ key: "updated", title: "Updated", number: true, sort: (t) => t.updated, cell: (t) => number(t.updated) },
			{ key: "deleted", title: "Deleted", number: true, sort: (t) => t.deleted, cell: (t) => number(t.deleted) },
			{ key: "deltas", title: "Commits not folded in", number: true, sort: (t) => t.deltas, cell: (t) => number(t.deltas) },
			{ key: "history", title: "Their memory", number: true, sort: (t) => t.history_bytes, cell: (t) => bytes(t.history_bytes) },
			{ key: "copied", title: "Copied", number: true, sort: (t) => t.copied, cell: (t) => ago(t.copied) },
		], { sort: ["name", false], none: empty("No table that this role may select from is copied.") });
		return {
			node: h("div", {}, facts, trouble, h("div", { class: "charts one" }, lag.node), h("h2", {}, "Changes since the copy"), found.node),
			async refresh() {
				const [[s], tables, { time, curves }] = await Promise.all([rows("status"), rows("tables"), get("overview?window=1h")]);
				const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
				replace(facts,
					fact("Stream", badge(s.stream_connected ? "connected" : "not connected", s.stream_connected ? "good" : "bad")),
					fact("Lag", s.stream_connected ? (s.lag_seconds > 0 ? seconds(s.lag_seconds) : "none") : "–"), fact("Behind", bytes(s.lag_bytes)),
					fact("Seen up to", s.applied_lsn), fact("Server", `PostgreSQL ${s.server_version ?? "–"}`),
					fact("Copies", number(s.copies)), fact("Copied again", number(s.recopies)),
					fact("Saved", s.checkpoint_at ? ago(s.checkpoint_at) : "not kept (--data-dir)"), fact("Saves that failed", number(s.checkpoint_failures)));
				replace(trouble, s.last_error_at && h("p", { class: "warn" }, `The last error, ${clock(s.last_error_at)}: `, s.last_error ?? "its text is shown to members of pg_read_all_stats."));
				lag.update(time, curves);
				found.update(tables.filter((t) => t.state !== "refused" && t.state !== "left"));
			},
			remove: () => lag.remove(),
		};
	},
};
