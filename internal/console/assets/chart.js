import { h, replace } from "./dom.js";
import { bytes } from "./format.js";

const powers = Array.from({ length: 50 }, (_, i) => 2 ** i); // steps of an axis of bytes
const scheme = matchMedia("(prefers-color-scheme: dark)");
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const spanMin = 60; // seconds that the axis of time has at least
const clock = (t, seconds) => new Date(t * 1e3).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined, hourCycle: "h23" });

// alone are the points that no line leads to.
function alone(plot, index) {
	const v = plot.data[index], nothing = (x) => x === null || x === undefined;
	return v.map((_, i) => i).filter((i) => !nothing(v[i]) && nothing(v[i - 1]) && nothing(v[i + 1]));
}

// chart draws curves over time: series {key, name, color (a custom property's name), fill}. format prints a value.
// It is a figure whose legend has the values at the pointer, or the last ones.
export function chart(title, series, format) {
	const values = series.map(() => h("strong", {}, "–"));
	const legend = h("ul", { class: "legend" }, series.map((s, i) => h("li", {}, h("i", { class: `c-${s.color}` }), `${s.name} `, values[i])));
	const box = h("div", { class: "plot", role: "img", "aria-label": title });
	const node = h("figure", {}, h("figcaption", {}, title), legend, box);
	let plot = null, data = null;

	function say(index) {
		const last = data ? data[0].length - 1 : -1;
		series.forEach((_, i) => {
			const v = last < 0 ? null : data[i + 1][index ?? last];
			values[i].textContent = v === null || v === undefined ? "–" : format(v);
		});
		if (index === null) box.setAttribute("aria-label", `${title}: ${series.map((s, i) => `${s.name} ${values[i].textContent}`).join(", ")}`);
	}
	const axis = { stroke: () => color("muted"), grid: { stroke: () => color("grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
	function make() {
		plot = new window.uPlot({
			width: Math.max(1, box.clientWidth), height: 170, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
			scales: { x: { range: () => [Math.min(data[0][0], data[0].at(-1) - spanMin), data[0].at(-1)] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
			axes: [{ ...axis, space: 70, size: 28, values: (_, all, __, ___, step) => all.map((t) => clock(t, step < 60)) }, { ...axis, size: 68, incrs: format === bytes ? powers : undefined, values: (_, all) => all.map(format) }],
			series: [{}, ...series.map((s) => ({ label: s.name, stroke: () => color(s.color), width: 2, dash: s.dash, fill: s.fill ? () => `${color(s.color)}2e` : undefined, points: { show: true, filter: alone, size: 5, fill: () => color(s.color) } }))],
			hooks: { setCursor: [(u) => say(u.cursor.idx ?? null)] },
		}, data, box);
	}
	const resize = new ResizeObserver(() => plot?.setSize({ width: Math.max(1, box.clientWidth), height: 170 }));
	resize.observe(box);
	const redraw = () => plot?.redraw(false, true);
	scheme.addEventListener("change", redraw);

	return {
		node,
		// update shows curves, as the console's API has them.
		update(time, curves) {
			if (time.length === 0) {
				replace(box, h("p", { class: "empty" }, "The first points come within ten seconds."));
				return;
			}
			data = [time, ...series.map((s) => curves[s.key].map((v) => (v === null || !s.scale ? v : v * s.scale)))];
			if (plot) plot.setData(data);
			else {
				replace(box);
				make();
			}
			say(null);
		},
		remove() {
			resize.disconnect();
			scheme.removeEventListener("change", redraw);
			plot?.destroy();
		},
	};
}
