// The tags of words, shown as colours.

import { element, make, percent, tint } from "./elements.js";
import { suggest } from "./panel.js";

const OUTSIDE = "O";
const field = element("tags-text");

export const view = {
  id: "tags",
  isOffered: (model) => "tags" in model.signatures,
  title: () => "Tags",
  setUp: ({ samples }) => suggest(field, samples.words),

  ask() {
    return { signature: "tags", row: { text: field.value } };
  },

  show(output, row, { say, answer, model }) {
    const words = output.words.filter((word) => word);
    const tags = output.tags.slice(0, words.length);
    const tagged = tags.filter((tag) => tag && tag !== OUTSIDE).length;
    const unread = tags.filter((tag) => !tag).length;
    if (!words.length) {
      say("The text has no words.");
      return;
    }
    say(`${counted(words.length)}, ${tagged} with another tag than ${OUTSIDE}`);
    const colours = coloursOf([...(model.task?.labels ?? []), ...tags]);
    const items = words.map((word, at) => {
      const tag = tags[at];
      const shown = tag ? `${tag} ${percent(output.probability[at])}` : "not read";
      const name = make("span", { className: "word", textContent: word });
      const note = make("span", { className: "note", textContent: shown });
      const className = colours.get(typeOf(tag)) ?? "";
      return make("li", { className }, name, " ", note);
    });
    answer.append(make("ol", { className: "chips" }, ...items));
    if (unread) {
      const text = `${counted(unread)} did not fit into the input of the model.`;
      answer.append(make("p", { className: "hint", textContent: text }));
    }
    answer.append(legend(colours));
  },
};

function counted(words) {
  return words === 1 ? "1 word" : `${words} words`;
}

/** B-PER and I-PER have the same type. */
function typeOf(tag) {
  return tag.replace(/^[BIESLU]-/, "");
}

function coloursOf(tags) {
  const types = new Set(tags.filter((tag) => tag && tag !== OUTSIDE).map(typeOf));
  return new Map([...types].map((type, number) => [type, tint(number)]));
}

function legend(colours) {
  const items = [...colours].map(([type, className]) =>
    make("li", {}, make("span", { className: `swatch ${className}` }), type),
  );
  const list = make("ul", { className: "legend" }, ...items);
  list.ariaLabel = "Colours";
  return list;
}
