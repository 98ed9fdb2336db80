// The attention between tokens, as a map of one layer and head.

import { element, fillSelect, percent } from "./elements.js";
import { HeatMap } from "./heat_map.js";
import { JoinedTexts } from "./joined_texts.js";

const MEAN = "mean";
const texts = new JoinedTexts("attention");
const box = element("attention-map");
const layer = element("attention-layer");
const head = element("attention-head");
const map = new HeatMap(element("attention-canvas"), describe);
let tokens = [];
let layers = []; // [layers][heads][tokens][tokens]

export const view = {
  id: "attention",
  isOffered: (model) => "attention" in model.signatures,
  title: () => "Attention map",
  setUp: (model) => texts.setUp(model),

  ask() {
    return { signature: "attention", row: { text: texts.text } };
  },

  show(output, row, { say }) {
    const count = output.pieces.filter((piece) => piece).length;
    tokens = output.pieces.slice(0, count);
    layers = output.attention;
    const heads = layers[0].length;
    say(`${count} tokens, ${counted(layers.length, "layer")}, ${counted(heads, "head")}`);
    refill(layer, numbered(layers.length));
    refill(head, [[MEAN, "mean of all heads"], ...numbered(heads)]);
    box.hidden = false;
    draw();
  },

  clear() {
    box.hidden = true;
  },
};

function counted(number, thing) {
  return number === 1 ? `1 ${thing}` : `${number} ${thing}s`;
}

function numbered(count) {
  return Array.from({ length: count }, (_, at) => [String(at), String(at + 1)]);
}

/** Sets the options of a <select> and keeps the selected one if it still exists. */
function refill(select, options) {
  const before = select.value;
  fillSelect(select, options);
  if (options.some(([value]) => value === before)) select.value = before;
}

function draw() {
  const heads = layers[Number(layer.value)];
  const shares = head.value === MEAN ? meanOf(heads) : heads[Number(head.value)];
  const shown = tokens.map((_, row) => shares[row].slice(0, tokens.length));
  map.show(tokens, shown);
  const [least, most] = distinguishable(map.least, map.most);
  element("attention-least").textContent = least;
  element("attention-most").textContent = most;
}

/** Formats two shares with as many digits as their difference needs: attention may be uniform. */
function distinguishable(least, most) {
  for (let digits = 1; digits <= 4; digits += 1) {
    const shown = [least, most].map((share) => `${(100 * share).toFixed(digits)}%`);
    if (shown[0] !== shown[1]) return shown;
  }
  return [percent(least), percent(most)];
}

function meanOf(heads) {
  return heads[0].map((row, from) =>
    row.map((_, to) => heads.reduce((sum, one) => sum + one[from][to], 0) / heads.length),
  );
}

function describe(from, to, share) {
  const [giver, taker] = [from, to].map((at) => `“${tokens[at]}” (token ${at + 1})`);
  const text = `${giver} gives ${percent(share)} of its attention to ${taker}.`;
  element("attention-readout").textContent = text;
}

layer.addEventListener("change", draw);
head.addEventListener("change", draw);
