// The candidates for each [MASK]; the chosen ones are inserted into the text.

import { AskError } from "./ask.js";
import { bars, element, make, partsOfPiece } from "./elements.js";
import { suggest } from "./panel.js";

const MASK = "[MASK]";
const MOST_LISTS = 50; // masks whose candidates are listed
const field = element("fill-mask-text");
let lists = []; // the candidates of each mask

export const view = {
  id: "fill-mask",
  isOffered: (model) => "fill_mask" in model.signatures,
  title: () => "Fill mask",
  setUp: ({ samples }) => suggest(field, samples.masked),

  ask() {
    if (!field.value.includes(MASK)) {
      throw new AskError(`The text must contain ${MASK} at least once.`);
    }
    return { signature: "fill_mask", row: { text: field.value } };
  },

  show(output, row, { say, answer }) {
    const parts = row.text.split(MASK);
    const count = parts.length - 1;
    const first = Array.from({ length: count }, (_, mask) => output.pieces[mask]?.[0] ?? "");
    const words = first.map((piece) => (piece ? wordOf(piece) : MASK));
    const isChosen = words.map(() => false);
    const sentence = joined(parts, words);
    // The server may have truncated or normalized the text; show its own result then.
    if (sentence === output.filled_text) say(...marked(parts, words));
    else say(output.filled_text);

    const choose = (mask, chosen, list) => {
      words[mask] = wordOf(output.pieces[mask][chosen]);
      isChosen[mask] = true;
      field.value = joined(parts, words.map((word, at) => (isChosen[at] ? word : MASK)));
      say(...marked(parts, words));
      list.querySelectorAll("button").forEach((button, at) => {
        button.ariaPressed = String(at === chosen);
      });
    };
    lists = first.slice(0, MOST_LISTS).map((piece, mask) => {
      if (!piece) return make("p", { textContent: "The text was truncated before this mask." });
      const rows = output.pieces[mask].map((candidate, at) => ({
        parts: partsOfPiece(candidate),
        share: output.scores[mask][at],
        isBest: at === 0,
        choose: () => choose(mask, at, lists[mask]),
      }));
      return bars(rows, "pieces");
    });
    const masks = lists.map((list, mask) => {
      const title = count > 1 ? `Mask ${mask + 1} of ${count}` : "Candidates";
      return make("div", {}, make("h3", { textContent: title }), list);
    });
    answer.append(make("div", { className: "masks" }, ...masks));
    if (count > MOST_LISTS) {
      const text = `The candidates of the first ${MOST_LISTS} of ${count} masks are listed.`;
      answer.append(make("p", { className: "hint", textContent: text }));
    }
  },
};

function wordOf(piece) {
  return piece.replaceAll("▁", "");
}

function joined(parts, words) {
  return parts.map((part, at) => (at ? words[at - 1] + part : part)).join("");
}

function marked(parts, words) {
  return parts.flatMap((part, at) =>
    at ? [make("mark", { textContent: words[at - 1] }), part] : [part],
  );
}

field.addEventListener("input", () => {
  // The candidates belong to the text before this change.
  for (const list of lists) {
    for (const button of list.querySelectorAll("button")) button.disabled = true;
  }
});

element("fill-mask-insert").addEventListener("click", () => {
  field.setRangeText(MASK, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input"));
  field.focus();
});
