// The page: loads the list of models and shows one view. The address ends in #model/view.

import { AskError, bodyOf, curlLine, listModels, predict } from "./ask.js";
import { counted, element, make } from "./elements.js";
import { VIEWS } from "./views.js";

const section = document.querySelector("section");
const form = section.querySelector("form");
const [button, error, headline, truncated, time, answer, request, curl] = [
  ".ask",
  ".error",
  ".headline",
  ".truncated",
  ".time",
  ".answer",
  ".request",
  "code",
].map((selector) => section.querySelector(selector));
const drafts = new Map(); // id of a field -> what the user has typed
let models = [];
let model, view; // that are shown
let pending; // AbortController of the request that is running

async function start() {
  try {
    models = await listModels();
  } catch (error) {
    showTrouble(error.message);
    return;
  }
  const options = models.map(({ name }) => make("option", { value: name, textContent: name }));
  element("model").replaceChildren(...options);
  element("model-choice").hidden = models.length === 1;
  route();
}

/** Shows the model and the view in the address, or the first ones. */
function route() {
  pending?.abort();
  const [name, id] = location.hash.slice(1).split("/");
  model = models.find((one) => one.name === name) ?? models[0];
  const offered = VIEWS.filter((one) => one.signature(model));
  view = offered.find((one) => one.id === id) ?? offered[0];
  element("model").value = model.name;
  const { version, precision, task } = model;
  const known = [model.name, `version ${version}`, precision, task ? `task ${task}` : ""];
  element("model-facts").textContent = known.filter(Boolean).join(" · ");
  const links = offered.map((one) => {
    const link = make("a", { href: `#${model.name}/${one.id}`, textContent: titleOf(one) });
    if (one === view) link.ariaCurrent = "page";
    return make("li", {}, link);
  });
  element("views").replaceChildren(...links);
  section.hidden = !view;
  element("trouble").hidden = Boolean(view);
  if (view) showView();
  else {
    const names = Object.keys(model.signatures).sort().join(", ");
    showTrouble(`This page has no view for the signatures of ${model.name}: ${names}.`);
  }
}

function showView() {
  section.id = view.id;
  element("title").textContent = titleOf(view);
  element("view-hint").textContent = view.hint;
  document.title = `${titleOf(view)} · ${model.name} · albert-keras`;
  const fields = view.fields(model).map(({ name, label, lines }) => {
    const id = `${view.id}-${name}`;
    const properties = { id, rows: lines, dir: "auto", value: drafts.get(id) ?? "" };
    const field = make("textarea", properties);
    field.addEventListener("input", () => drafts.set(id, field.value));
    return make("div", {}, make("label", { htmlFor: id, textContent: label }), field);
  });
  element("fields").replaceChildren(...fields);
  clear();
}

function titleOf({ title }) {
  return typeof title === "string" ? title : title(model);
}

function field(name) {
  return element(`${view.id}-${name}`);
}

async function ask() {
  if (pending) return;
  const current = new AbortController();
  pending = current;
  button.textContent = "Running…";
  clear();
  try {
    const names = view.fields(model).map(({ name }) => name);
    const texts = Object.fromEntries(names.map((name) => [name, field(name).value]));
    const rows = view.rows?.(texts, model) ?? [texts];
    const signature = view.signature(model);
    const body = bodyOf(signature, rows);
    curl.textContent = curlLine(model, body);
    request.hidden = false;
    const begin = performance.now();
    const outputs = await predict(model, signature, body, current.signal);
    time.textContent = `Answered in ${Math.round(performance.now() - begin)} ms.`;
    truncated.textContent = outputs.map(truncationNotice).find(Boolean) ?? "";
    const say = (text) => {
      headline.textContent = text;
    };
    view.show(outputs, { rows, model, say, field, answer });
    section.querySelector(".live").scrollIntoView({ block: "nearest" });
  } catch (failure) {
    if (current.signal.aborted) return;
    error.textContent = failure instanceof AskError ? failure.message : `The page failed: ${failure}`;
    error.hidden = false;
  } finally {
    if (pending === current) pending = undefined;
    button.textContent = "Run";
  }
}

/** Returns what an answer reports as dropped, or "" for none. */
function truncationNotice({ dropped_tokens = 0, dropped_words = 0 }) {
  const dropped = [
    [dropped_tokens, "token"],
    [dropped_words, "word"],
  ].filter(([number]) => number);
  if (!dropped.length) return "";
  const parts = dropped.map(([number, noun]) => counted(number, noun));
  return `The input was truncated: ${parts.join(" and ")} did not fit.`;
}

function clear() {
  error.hidden = true;
  request.hidden = true;
  for (const part of [headline, truncated, time, answer]) part.replaceChildren();
}

function showTrouble(message) {
  element("trouble").textContent = message;
  element("trouble").hidden = false;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
form.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  ask();
});
element("model").addEventListener("change", (event) => {
  location.hash = `${event.target.value}/${view?.id ?? ""}`;
});
addEventListener("hashchange", route);
start();
