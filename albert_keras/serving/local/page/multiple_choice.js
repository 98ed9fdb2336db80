// The answer to a question, chosen from several options.

import { AskError } from "./ask.js";
import { bars, element, make, percent } from "./elements.js";
import { suggest } from "./panel.js";

const FEWEST = 2;
const context = element("multiple-choice-context");
const question = element("multiple-choice-question");
const list = element("multiple-choice-options");
let suggested = ""; // the options of the example

export const view = {
  id: "multiple-choice",
  isOffered: (model) => "multiple_choice" in model.signatures,
  title: () => "Multiple choice",

  setUp({ samples }) {
    suggest(context, samples.context);
    suggest(question, samples.question);
    const options = fields().map((field) => field.value);
    if (options.join("\n") !== suggested) return;
    list.replaceChildren();
    suggested = samples.options.join("\n");
    samples.options.forEach(add);
  },

  ask() {
    const options = fields().map((field) => field.value);
    if (options.every((option) => !option.trim())) {
      throw new AskError("At least one option must contain a text.");
    }
    const row = { context: context.value, question: question.value, options };
    return { signature: "multiple_choice", row };
  },

  show(output, row, { say, answer }) {
    const share = output.probabilities[output.choice];
    say(`${letter(output.choice)}: ${output.option} (${percent(share)})`);
    const rows = row.options.map((option, at) => ({
      label: `${letter(at)}: ${option}`,
      share: output.probabilities[at],
      isBest: at === output.choice,
    }));
    answer.append(bars(rows, "long"));
  },
};

function fields() {
  return [...list.querySelectorAll("input")];
}

function letter(number) {
  return number < 26 ? String.fromCharCode(65 + number) : String(number + 1);
}

function add(text) {
  const field = make("input", { type: "text", value: text, autocomplete: "off" });
  const remove = make("button", { type: "button", className: "plain", textContent: "Remove" });
  const item = make("li", {}, make("span"), field, remove);
  remove.addEventListener("click", () => {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    number();
    next.querySelector("input").focus();
  });
  list.append(item);
  number();
  return field;
}

/** Renumbers the options; the last two cannot be removed. */
function number() {
  const items = [...list.children];
  items.forEach((item, at) => {
    const [name, field, remove] = item.children;
    name.textContent = letter(at);
    name.ariaHidden = "true";
    field.ariaLabel = `Option ${letter(at)}`;
    remove.ariaLabel = `Remove option ${letter(at)}`;
    remove.disabled = items.length <= FEWEST;
  });
}

element("multiple-choice-add").addEventListener("click", () => add("").focus());
