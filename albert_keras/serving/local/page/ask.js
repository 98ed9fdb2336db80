// Requests to the server, with error messages for the user.

import { wellFormed } from "./unicode.js";

const TIMEOUT = 60_000; // milliseconds

/** A failed request; the message is for the user. */
export class AskError extends Error {}

/** Returns the models of the server: a list of {name, version, precision, signatures, task}. */
export async function listModels() {
  return (await send("models.json", {})).content;
}

/** Returns the body of a predict request for rows with the same inputs. */
export function bodyOf(signature, rows) {
  const inputs = Object.fromEntries(
    Object.keys(rows[0]).map((name) => [name, rows.map((row) => cleaned(row[name]))]),
  );
  return JSON.stringify({ signature_name: signature, inputs });
}

/**
 * Sends a predict request.
 *
 * Returns {outputs, milliseconds}; `outputs` contains the values of each row by name.
 */
export async function predict(model, signature, body, signal) {
  const { content, milliseconds } = await send(pathOf(model.name), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body,
    signal,
  });
  const names = Object.keys(model.signatures[signature].outputs);
  const outputs = content.outputs;
  if (outputs === undefined) throw new AskError("The answer of the server has no outputs.");
  // The server omits the name of a single output.
  const columns = names.length === 1 ? { [names[0]]: outputs } : outputs;
  const missing = names.filter((name) => !columns[name]?.length);
  if (missing.length) {
    throw new AskError(`The answer of the server has no ${missing.join(", ")}.`);
  }
  const rows = columns[names[0]].map((_, row) =>
    Object.fromEntries(names.map((name) => [name, columns[name][row]])),
  );
  return { outputs: rows, milliseconds };
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

function cleaned(value) {
  return Array.isArray(value) ? value.map(cleaned) : wellFormed(value);
}

async function send(path, request) {
  const begin = performance.now();
  const timeout = AbortSignal.timeout(TIMEOUT);
  const signal = request.signal ? AbortSignal.any([request.signal, timeout]) : timeout;
  let response, text;
  try {
    response = await fetch(path, { cache: "no-store", ...request, signal });
    text = await response.text();
  } catch (error) {
    if (request.signal?.aborted) throw error;
    if (timeout.aborted) {
      throw new AskError(`The server did not answer within ${TIMEOUT / 1000} seconds.`);
    }
    throw new AskError("The server cannot be reached. Is it still running?");
  }
  const milliseconds = performance.now() - begin;
  const content = parsed(text);
  if (!response.ok) throw new AskError(messageOf(response, content));
  if (content === undefined) throw new AskError("The answer of the server is not JSON.");
  return { content, milliseconds };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function messageOf(response, content) {
  const message = content?.error ? ` Its message: ${content.error}` : "";
  if (response.status === 429 || response.status === 503) {
    const seconds = Number(response.headers.get("Retry-After"));
    const when = seconds > 1 ? `in ${seconds} seconds` : "in a moment";
    return `The server is busy. Try again ${when}.${message}`;
  }
  if (response.status === 413) return `The text is too long for the server.${message}`;
  if (response.status === 404) return `The server no longer has this model.${message}`;
  if (response.status >= 500) return `The server failed (status ${response.status}).${message}`;
  return `The server refused the request (status ${response.status}).${message}`;
}
