import { h, empty, badge, routeBadge } from "./dom.js";
import { rows } from "./api.js";
import { number, bytes, ago } from "./format.js";
import { table } from "./table.js";

export default {
	title: "Sessions",
	login: true,
	create() {
		const found = table("Sessions", [
			{ key: "pid", title: "Process", sort: (s) => s.pid, cell: (s) => s.pid },
			{ key: "usename", title: "Role", sort: (s) => s.usename, cell: (s) => s.usename },
			{ key: "application", title: "Application", sort: (s) => s.application_name, cell: (s) => s.application_name || "–" },
			{ key: "address", title: "Client", sort: (s) => s.client_addr, cell: (s) => (s.client_addr ? `${s.client_addr}:${s.client_port}` : "–") },
			{ key: "state", title: "State", sort: (s) => s.state, cell: (s) => [s.state ? badge(s.state, s.state === "active" ? "good" : "plain") : h("span", { class: "muted" }, "not shown"), s.route && [" ", routeBadge(s.route)]] },
			{ key: "since", title: "For", number: true, sort: (s) => s.state_change, cell: (s) => (s.state_change ? ago(s.state_change).replace(" ago", "") : "–") },
			{ key: "accelerated", title: "By pgaccel", number: true, sort: (s) => s.accelerated, cell: (s) => number(s.accelerated) },
			{ key: "partial", title: "In part", number: true, sort: (s) => s.partial, cell: (s) => number(s.partial) },
			{ key: "forwarded", title: "By PostgreSQL", number: true, sort: (s) => s.forwarded, cell: (s) => number(s.forwarded) },
			{ key: "held", title: "Unread results", number: true, sort: (s) => s.held_bytes, cell: (s) => bytes(s.held_bytes) },
		], { sort: ["pid", false], none: empty("No client is connected.") });
		return { node: h("div", {}, found.node), refresh: async () => found.update(await rows("sessions")) };
	},
};
