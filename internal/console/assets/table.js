import { h, replace, empty } from "./dom.js";

// table makes a table of columns {key, title, cell(row), number, sort(row), wide}. update(rows) shows others. With
// options.sort, [key, descending], the heads that have a sort are buttons, and on narrow screens, where rows are cards, so is a
// select. options.none is what to say of no rows. Roles are written out: cards are no table to a browser.
export function table(label, columns, options = {}) {
	let rows = [], [key, down] = options.sort ?? [null, false];
	const body = h("tbody", { role: "rowgroup" });
	const none = h("div", { hidden: true }, options.none ?? empty("There is nothing here yet."));
	const sortable = columns.filter((c) => c.sort && key !== null);
	const heads = columns.map((c) =>
		h("th", { role: "columnheader", scope: "col", class: c.number ? "number" : null },
			sortable.includes(c) ? h("button", { type: "button", class: "sort", onclick: () => order(c.key) }, c.title) : c.title));
	const select = h("select", { onchange: () => order(select.value, true) }, sortable.map((c) => h("option", { value: c.key }, c.title)));
	const element = h("table", { role: "table", "aria-label": label },
		h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)), body);
	const node = h("div", { class: "table" },
		sortable.length > 0 && h("label", { class: "narrow" }, "Sort by ", select), element, none);

	function order(by, always) {
		[key, down] = by === key && !always ? [key, !down] : [by, columns.find((c) => c.key === by).number ?? false];
		update(rows);
	}
	function update(now) {
		rows = now;
		const column = columns.find((c) => c.key === key);
		if (column) {
			const of = column.sort;
			rows = [...rows].sort((a, b) => {
				const x = of(a), y = of(b);
				if (x === null || x === undefined || y === null || y === undefined) return (x ?? null) === (y ?? null) ? 0 : (x ?? null) === null ? 1 : -1;
				return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
			});
			select.value = key;
			columns.forEach((c, i) => {
				if (c === column) heads[i].setAttribute("aria-sort", down ? "descending" : "ascending");
				else heads[i].removeAttribute("aria-sort");
			});
		}
		element.hidden = rows.length === 0;
		none.hidden = rows.length > 0;
		replace(body, rows.map((r) => h("tr", { role: "row" }, columns.map((c) =>
			h("td", { role: "cell", "data-label": c.title, class: [c.number && "number", c.wide && "wide"].filter(Boolean).join(" ") || null }, c.cell(r) ?? "–")))));
	}
	return { node, update };
}
