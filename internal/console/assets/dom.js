// h makes an element. Properties that begin with "on" are listeners, others attributes (false and null for none); children are nodes,
// texts, lists of these, or null. Text stays text: nothing is parsed as HTML.
export function h(tag, properties, ...children) {
	const node = document.createElement(tag);
	for (const [name, value] of Object.entries(properties ?? {})) {
		if (value === null || value === undefined || value === false) continue;
		if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
		else if (name === "value") node.value = value;
		else node.setAttribute(name, value === true ? "" : value);
	}
	node.append(...flat(children));
	return node;
}

function flat(children) {
	return children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c)));
}

// replace exchanges a node's children. What had the focus has it again, if something with its data-key is there.
export function replace(node, ...children) {
	const key = node.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
	node.replaceChildren(...flat(children));
	if (key !== undefined) node.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
	return node;
}

// meter is a bar of a share from 0 to 1.
export function meter(label, share, tone = "") {
	const fill = h("span", {});
	fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
	return h("span", { class: `meter ${tone}`, role: "img", "aria-label": label }, fill);
}

export const empty = (...text) => h("p", { class: "empty" }, ...text);

export const badge = (text, tone) => h("span", { class: `badge ${tone ?? ""}` }, text);

const routes = { accelerated: ["pgaccel", "good"], partial: ["in part", "part"], forwarded: ["PostgreSQL", "plain"] };

// routeBadge says who answered.
export function routeBadge(route) {
	const [text, tone] = routes[route] ?? [route ?? "–", "plain"];
	return badge(text, tone);
}
