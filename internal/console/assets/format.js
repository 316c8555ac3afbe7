const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

// number prints three digits, or all of a larger one.
export function number(v) {
	if (v === null || v === undefined || Number.isNaN(v)) return "–";
	return Math.abs(v) >= 100 ? whole.format(v) : fine.format(v);
}

export function bytes(v) {
	if (v === null || v === undefined) return "–";
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	while (Math.abs(v) >= 1024 && i < units.length - 1) {
		v /= 1024;
		i++;
	}
	return `${number(v)} ${units[i]}`;
}

// ms prints a time given in milliseconds.
export function ms(v) {
	if (v === null || v === undefined || Number.isNaN(v)) return "–";
	const a = Math.abs(v);
	if (a >= 3600e3) return `${fine.format(v / 3600e3)} h`;
	if (a >= 60e3) return `${fine.format(v / 60e3)} min`;
	if (a >= 1e3) return `${fine.format(v / 1e3)} s`;
	if (a >= 1 || a === 0) return `${fine.format(v)} ms`;
	return `${fine.format(v * 1e3)} µs`;
}

export const seconds = (v) => (v === null || v === undefined ? "–" : ms(v * 1e3));

export const percent = (v) => (v === null || v === undefined || Number.isNaN(v) ? "–" : `${fine.format(v * 100)} %`);

// times prints a ratio: how many times as fast.
export const times = (v) => (v === null || v === undefined || !Number.isFinite(v) ? "–" : `${v >= 10 ? whole.format(v) : fine.format(v)}×`);

// ago prints how long a moment is past.
export function ago(moment) {
	if (!moment) return "–";
	const s = Math.max(0, (Date.now() - new Date(moment).getTime()) / 1e3);
	if (s < 60) return `${Math.floor(s)} s ago`;
	if (s < 3600) return `${Math.floor(s / 60)} min ago`;
	if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
	return `${Math.floor(s / 86400)} d ago`;
}

export const clock = (moment) => (moment ? new Date(moment).toLocaleString() : "–");
