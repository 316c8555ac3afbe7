import { h, replace, empty, badge } from "./dom.js";
import { rows } from "./api.js";
import { number, bytes, ago } from "./format.js";
import { table } from "./table.js";

export const stateBadge = (state) => badge(state, state === "ready" ? "good" : state === "refused" ? "bad" : "part");

export default {
	title: "Tables",
	login: true,
	create(context, argument) {
		return argument === null ? list() : columnsOf(argument);
	},
};

function list() {
	const found = table("Tables", [
		{ key: "name", title: "Table", wide: true, sort: (t) => t.name, cell: (t) => [h("a", { href: `#/tables/${encodeURIComponent(t.name)}`, "data-key": t.name }, t.name), [t.detail, t.choice].map((text) => text && h("p", { class: "why" }, text))] },
		{ key: "state", title: "State", sort: (t) => t.state, cell: (t) => stateBadge(t.state) },
		{ key: "rows", title: "Rows", number: true, sort: (t) => t.rows, cell: (t) => number(t.rows) },
		{ key: "bytes", title: "Memory", number: true, sort: (t) => t.bytes, cell: (t) => bytes(t.bytes) },
		{ key: "row", title: "Bytes a row", number: true, sort: (t) => (t.rows > 0 ? t.bytes / t.rows : null), cell: (t) => (t.rows > 0 ? number(t.bytes / t.rows) : "–") },
		{ key: "segments", title: "Segments", number: true, sort: (t) => t.segments, cell: (t) => number(t.segments) },
		{ key: "changes", title: "Changed rows", number: true, sort: (t) => t.inserted + t.updated + t.deleted, cell: (t) => number(t.inserted + t.updated + t.deleted) },
		{ key: "copied", title: "Copied", number: true, sort: (t) => t.copied, cell: (t) => ago(t.copied) },
	], { sort: ["bytes", true], none: empty("No table that this role may select from is copied: see --accelerate.") });
	return { node: h("div", {}, found.node), refresh: async () => found.update(await rows("tables")) };
}

// gather makes one row a column of the rows of pgaccel.columns, which are one a codec.
function gather(parts, count) {
	const all = new Map();
	for (const p of parts) {
		const c = all.get(p.column) ?? { name: p.column, place: all.size, codecs: [], bytes: 0, index: 0, nulls: 0, device: 0 };
		all.set(p.column, c);
		if (p.codec === "index") c.index += p.bytes;
		else {
			c.codecs.push(p.segments > 1 ? `${p.codec} × ${p.segments}` : p.codec);
			c.bytes += p.bytes;
			c.nulls += p.null_bytes;
		}
		c.device += p.device_bytes;
	}
	for (const c of all.values()) c.bits = count > 0 ? (8 * c.bytes) / count : null;
	return [...all.values()];
}

function columnsOf(name) {
	const head = h("div", {});
	const found = table(`Columns of ${name}`, [
		{ key: "place", title: "Column", wide: true, sort: (c) => c.place, cell: (c) => c.name },
		{ key: "codec", title: "Codecs and segments", cell: (c) => c.codecs.join(", ") },
		{ key: "bytes", title: "Memory", number: true, sort: (c) => c.bytes, cell: (c) => bytes(c.bytes) },
		{ key: "bits", title: "Bits a value", number: true, sort: (c) => c.bits, cell: (c) => number(c.bits) },
		{ key: "nulls", title: "Null bitmaps", number: true, sort: (c) => c.nulls, cell: (c) => bytes(c.nulls) },
		{ key: "index", title: "Bitmap index", number: true, sort: (c) => c.index, cell: (c) => (c.index > 0 ? bytes(c.index) : "none") },
		{ key: "device", title: "On devices", number: true, sort: (c) => c.device, cell: (c) => bytes(c.device) },
	], { sort: ["place", false], none: empty("No column of it is held here.") });
	return {
		node: h("div", {}, h("p", {}, h("a", { href: "#/tables", "data-key": "back" }, "← All tables")), head, found.node),
		async refresh() {
			const [tables, columns] = await Promise.all([rows("tables"), rows("columns")]);
			const t = tables.find((r) => r.name === name);
			replace(head, h("h2", {}, name), t ? h("p", {}, stateBadge(t.state), ` ${number(t.rows)} rows, ${bytes(t.bytes)}, ${number(t.segments)} segments`, [t.detail, t.choice].map((text) => text && h("span", { class: "why" }, ` ${text}`))) : empty("There is no such table that this role may see."));
			found.update(gather(columns.filter((c) => c.table === name), t?.rows ?? 0));
		},
	};
}
