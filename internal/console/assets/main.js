import { h, replace } from "./dom.js";
import { get, post } from "./api.js";
import { loginForm } from "./login.js";
import overview from "./overview.js";
import queries from "./queries.js";
import tables from "./tables.js";
import replication from "./replication.js";
import sessions from "./sessions.js";
import warnings from "./warnings.js";
import compare from "./compare.js";

// A page is {title, login, create(context, argument)}; context has the state of the login; create returns {node, refresh, remove}. refresh asks for data and shows
// it; what it throws is shown above the page, and it is called again.
const pages = { overview, queries, tables, replication, sessions, warnings, compare };
const period = 5000; // ms between two calls of refresh, at least
const share = 20; // and so many times what one takes, so that no large answer is asked for all the time

const main = document.getElementById("main");
const account = document.getElementById("account");
const nav = document.getElementById("nav");
let state = { open: false, user: "" };
let turn = 0; // counts pages, so that what an earlier one has asked for is not shown
let current = null;

document.getElementById("skip").addEventListener("click", () => main.focus());
addEventListener("hashchange", () => show(true));
document.addEventListener("visibilitychange", () => {
	if (!document.hidden) current?.again();
});

async function know() {
	state = await get("state");
	document.getElementById("version").textContent = state.version;
	replace(account, state.user !== "" ? [h("span", { class: "muted as" }, "Logged in as "), h("strong", {}, state.user), state.several && [" in ", h("strong", {}, state.database)], " ",
		h("button", { type: "button", onclick: logout }, "Log out")] : state.open ? h("a", { class: "button", href: "#/login" }, "Log in") : null);
}

async function logout() {
	await post("logout").catch(() => {});
	location.hash = "#/overview";
	await start();
}

function where() {
	const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
	return { name: name === "login" || Object.hasOwn(pages, name) ? name : "overview", argument: rest.length > 0 ? decodeURIComponent(rest.join("/")) : null };
}

function show(moved) {
	const mine = ++turn;
	current?.page.remove?.();
	clearTimeout(current?.timer);
	current = null;
	const { name, argument } = where();
	replace(nav, Object.entries(pages).map(([key, p]) => h("a", { href: `#/${key}`, "data-key": key, "aria-current": key === name ? "page" : null }, p.title)));
	const page = pages[name];
	document.title = `${page?.title ?? "Log in"} – pgaccel`;
	if (!page || (state.user === "" && (page.login || !state.open))) {
		const why = page?.login && state.open ? `${page.title}: what a role of PostgreSQL may see of it is shown after a login.` : null;
		replace(main, loginForm(why, state, async () => {
			await know();
			if (!page) location.hash = "#/overview";
			else show(true);
		}));
		return;
	}
	const trouble = h("div", { role: "alert" });
	const loading = h("p", { class: "loading", role: "status" }, "Loading…");
	const one = page.create({ state }, argument);
	replace(main, h("h1", {}, page.title), trouble, loading, h("div", { class: "page", hidden: true }, one.node));
	if (moved) main.focus({ preventScroll: true });
	current = { page: one, timer: 0, again };
	let asking = false;
	async function again() {
		if (asking || turn !== mine) return;
		clearTimeout(current.timer);
		if (loading.hidden && !getSelection().isCollapsed && main.contains(getSelection().anchorNode)) { // somebody copies a text
			current.timer = setTimeout(again, period);
			return;
		}
		asking = true;
		const began = performance.now();
		try {
			await one.refresh?.();
			if (turn !== mine) return;
			if (trouble.hasChildNodes()) replace(trouble);
			loading.hidden = true;
			one.node.parentNode.hidden = false;
		} catch (error) {
			if (turn !== mine) return;
			if (error.status === 401) {
				await know().catch(() => {});
				if (turn === mine && state.user === "") show(false);
				return;
			}
			loading.hidden = true;
			replace(trouble, h("p", { class: "error" }, error.message, " ", h("button", { type: "button", onclick: again }, "Try again")));
			if (!("status" in error)) console.error(error);
		} finally {
			asking = false;
			if (turn === mine && current && one.refresh && !document.hidden) current.timer = setTimeout(again, Math.max(period, share * (performance.now() - began)));
		}
	}
	again();
}

async function start() {
	try {
		await know();
		show(false);
	} catch (error) {
		replace(main, h("h1", {}, "pgaccel"), h("p", { class: "error", role: "alert" }, error.message, " ", h("button", { type: "button", onclick: start }, "Try again")));
	}
}
start();
