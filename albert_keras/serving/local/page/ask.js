// Requests to the server, with error messages for the user.

const TIMEOUT = 60_000; // milliseconds

/** A failed request; the message is for the user. */
export class AskError extends Error {}

/** Returns the models of the server: a list of {name, version, precision, signatures, task}. */
export async function listModels() {
  return send("models.json", {});
}

/** Returns the body of a predict request for rows with the same inputs. */
export function bodyOf(signature, rows) {
  const columns = Object.keys(rows[0]).map((name) => [name, rows.map((row) => cleaned(row[name]))]);
  return JSON.stringify({ signature_name: signature, inputs: Object.fromEntries(columns) });
}

/** Sends a predict request; returns the values of each row by the name of the output. */
export async function predict(model, signature, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const { outputs } = await send(pathOf(model.name), { method: "POST", headers, body, signal });
  const names = Object.keys(model.signatures[signature].outputs);
  // The server omits the name of a single output.
  const columns = names.length === 1 ? { [names[0]]: outputs } : outputs;
  return columns[names[0]].map((_, row) =>
    Object.fromEntries(names.map((name) => [name, columns[name][row]])),
  );
}

/** Returns a curl command that sends the same request. */
export function curlLine(model, body) {
  const url = new URL(pathOf(model.name), document.baseURI).href;
  const type = "Content-Type: application/json";
  return `curl -s ${quoted(url)} -H ${quoted(type)} -d ${quoted(body)}`;
}

function pathOf(name) {
  return `v1/models/${encodeURIComponent(name)}:predict`;
}

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Replaces lone surrogates, which are not valid text and cannot be sent. */
function cleaned(value) {
  return Array.isArray(value) ? value.map(cleaned) : value.toWellFormed();
}

async function send(path, request) {
  const timeout = AbortSignal.timeout(TIMEOUT);
  const signal = request.signal ? AbortSignal.any([request.signal, timeout]) : timeout;
  let response, content;
  try {
    response = await fetch(path, { cache: "no-store", ...request, signal });
    content = await response.json();
  } catch (error) {
    if (request.signal?.aborted) throw error;
    if (timeout.aborted) throw new AskError(`No answer within ${TIMEOUT / 1000} seconds.`);
    throw new AskError("The server cannot be reached, or is busy. Is it still running?");
  }
  if (response.ok) return content;
  throw new AskError(`The server refused the request (status ${response.status}). ${content.error}`);
}
