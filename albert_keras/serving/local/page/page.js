// The page: loads the list of models and shows one view. The address ends in #model/view.

import { listModels } from "./ask.js";
import { view as attention } from "./attention.js";
import { view as classify } from "./classify.js";
import { element, fillSelect, make } from "./elements.js";
import { view as fillMask } from "./fill_mask.js";
import { view as multipleChoice } from "./multiple_choice.js";
import { Panel } from "./panel.js";
import { view as questionAnswering } from "./question_answering.js";
import { view as sentenceOrder } from "./sentence_order.js";
import { view as similarity } from "./similarity.js";
import { view as tags } from "./tags.js";
import { view as tokens } from "./tokens.js";

const VIEWS = [
  fillMask,
  sentenceOrder,
  classify,
  questionAnswering,
  multipleChoice,
  tags,
  tokens,
  attention,
  similarity,
];

const panels = VIEWS.map((view) => new Panel(view));
const links = new Map(); // id of a view -> its link
let models = [];
let shown = null; // the model that is shown

async function start() {
  element("trouble").hidden = true;
  element("loading").hidden = false;
  try {
    models = (await listModels()).map(described);
  } catch (error) {
    showTrouble(error.message);
    return;
  } finally {
    element("loading").hidden = true;
  }
  if (!models.length) {
    showTrouble("The server has no models.");
    return;
  }
  fillSelect(element("model"), models.map(({ name }) => [name, name]));
  element("model-choice").hidden = models.length === 1;
  route();
}

/** Adds the properties of a model that the views use. */
function described(model) {
  const takesPair = Boolean(model.task?.takes_pair) || "text_pair" in model.signatures;
  return { ...model, takesPair, readsSpans: Boolean(model.task?.finds_spans) };
}

/** Shows the model and the view in the address, or the first ones. */
function route() {
  if (!models.length) return;
  const [name, id] = location.hash.slice(1).split("/");
  const model = models.find((one) => one.name === name) ?? models[0];
  if (model !== shown) useModel(model);
  const offered = panels.filter((panel) => links.has(panel.view.id));
  const current = offered.find((panel) => panel.view.id === id) ?? offered[0];
  for (const panel of panels) panel.section.hidden = panel !== current;
  for (const link of links.values()) link.removeAttribute("aria-current");
  if (!current) {
    const names = Object.keys(model.signatures).sort().join(", ");
    showTrouble(`This page has no view for the signatures of ${model.name}: ${names}.`);
    return;
  }
  element("trouble").hidden = true;
  links.get(current.view.id).setAttribute("aria-current", "page");
  document.title = `${current.view.title(model)} · ${model.name} · albert-keras`;
}

function useModel(model) {
  shown = model;
  element("model").value = model.name;
  element("model-facts").textContent = facts(model);
  links.clear();
  const list = make("ul");
  for (const panel of panels) {
    panel.use(model);
    const { view } = panel;
    if (!view.isOffered(model)) continue;
    const link = make("a", { href: `#${model.name}/${view.id}`, textContent: view.title(model) });
    links.set(view.id, link);
    list.append(make("li", {}, link));
  }
  element("views").replaceChildren(list);
}

function facts({ name, version, precision, task, signatures }) {
  const parts = models.length === 1 ? [name] : [];
  parts.push(`version ${version}`);
  if (precision) parts.push(precision);
  if (task) parts.push(`task ${task.name}`);
  else if ("fill_mask" in signatures) parts.push("pre-trained");
  return parts.join(" · ");
}

function showTrouble(message) {
  element("trouble-message").textContent = message;
  element("trouble").hidden = false;
}

element("model").addEventListener("change", (event) => {
  const id = location.hash.split("/")[1] ?? "";
  location.hash = `${event.target.value}/${id}`;
});
element("trouble-again").addEventListener("click", start);
addEventListener("hashchange", route);
start();
