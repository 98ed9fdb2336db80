// Whether two segments are in order or swapped.

import { bars, element, percent } from "./elements.js";
import { suggest } from "./panel.js";

const first = element("sentence-order-first");
const second = element("sentence-order-second");

export const view = {
  id: "sentence-order",
  isOffered: (model) => "sentence_order" in model.signatures,
  title: () => "Sentence order",

  setUp({ samples }) {
    suggest(first, samples.first);
    suggest(second, samples.second);
  },

  ask() {
    const row = { first: first.value, second: second.value };
    return { signature: "sentence_order", row };
  },

  show(output, row, { say, answer }) {
    const share = output.in_order;
    const isInOrder = share >= 0.5;
    say(isInOrder ? `In order: ${percent(share)}` : `Swapped: ${percent(1 - share)}`);
    const rows = [
      { label: "in order", share, isBest: isInOrder },
      { label: "swapped", share: 1 - share, isBest: !isInOrder },
    ];
    answer.append(bars(rows));
  },
};

element("sentence-order-swap").addEventListener("click", () => {
  [first.value, second.value] = [second.value, first.value];
});
