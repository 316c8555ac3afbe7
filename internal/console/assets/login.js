import { h } from "./dom.js";
import { post } from "./api.js";

// loginForm asks for a role of PostgreSQL, and of several databases for one. done is called once it is logged in.
export function loginForm(why, state, done) {
	const said = h("p", { class: "error", role: "alert", hidden: true });
	const user = h("input", { id: "user", name: "username", autocomplete: "username", required: true, autocapitalize: "none", spellcheck: "false" });
	const password = h("input", { id: "password", name: "password", type: "password", autocomplete: "current-password" });
	const database = state.several && h("input", { id: "database", name: "database", list: "databases", placeholder: state.database, autocapitalize: "none", spellcheck: "false" });
	const button = h("button", { type: "submit", class: "primary" }, "Log in");
	async function submit(event) {
		event.preventDefault();
		button.disabled = true;
		said.hidden = true;
		try {
			await post("login", { user: user.value, password: password.value, database: database ? database.value : "" });
			password.value = "";
			await done();
		} catch (error) {
			said.textContent = error.message;
			said.hidden = false;
			password.select();
		} finally {
			button.disabled = false;
		}
	}
	return h("section", { class: "login" },
		h("h1", {}, "Log in"),
		why && h("p", {}, why),
		h("p", { class: "muted" }, "With a role of PostgreSQL and its password, as any client of pgaccel. You see what that role may see: texts of statements with ",
			h("code", {}, "pg_read_all_stats"), " or ", h("code", {}, "pg_monitor"), "."),
		!isSecureContext && h("p", { class: "warn" }, "This connection is not encrypted: others on the network can read the password. Put a proxy with TLS in front, or use a tunnel (ssh -L)."),
		h("form", { onsubmit: submit }, h("label", { for: "user" }, "Role"), user, h("label", { for: "password" }, "Password"), password,
			database && [h("label", { for: "database" }, "Database"), database, h("datalist", { id: "databases" }, (state.databases ?? []).map((name) => h("option", { value: name })))],
			said, button));
}
