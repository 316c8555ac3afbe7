// ApiError is what a request came to that failed; status is 0 where there was no answer.
export class ApiError extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}

async function request(path, options) {
	let response, body;
	try {
		response = await fetch(`api/${path}`, { ...options, signal: AbortSignal.timeout(60e3) });
		body = await response.json();
	} catch {
		throw new ApiError(response?.status ?? 0, "pgaccel does not answer.");
	}
	if (!response.ok) throw new ApiError(response.status, body.error ?? response.statusText);
	return body;
}

export const get = (path) => request(path, {});

export const post = (path, body) => request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}) });

// rows returns a relation of the schema pgaccel, as the role that has logged in sees it.
export const rows = (name) => get(`rows/${name}`);
