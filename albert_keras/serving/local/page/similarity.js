// The similarity of several texts: the cosines between their vectors, as a table.

import { AskError } from "./ask.js";
import { element, make } from "./elements.js";
import { suggest } from "./panel.js";

const MOST = 16; // the vectors of all tokens of a text may be part of an answer
const field = element("similarity-texts");

export const view = {
  id: "similarity",
  isOffered: (model) => Boolean(sourceOf(model)),
  title: () => "Similarity",

  setUp(model) {
    const { first, second, question, context } = model.samples;
    suggest(field, [first, second, question, context].join("\n"));
    element("similarity-hint").textContent =
      "The cosine between the vectors of each two texts: 1 for the same direction. The vectors " +
      `are the ${sourceOf(model).meaning}. Without training for similarity, cosines of all texts ` +
      "are high: compare them with each other.";
  },

  ask(model) {
    const texts = field.value.split("\n").map((line) => line.trim()).filter(Boolean);
    if (texts.length < 2) throw new AskError("Give at least two texts, each on a line of its own.");
    if (texts.length > MOST) {
      throw new AskError(`Give at most ${MOST} texts. There are ${texts.length}.`);
    }
    return { signature: sourceOf(model).signature, rows: texts.map((text) => ({ text })) };
  },

  show(output, row, { say, answer, model, rows, outputs }) {
    const texts = rows.map(({ text }) => text);
    const vectors = outputs.map((one) => one[sourceOf(model).output]);
    const cosines = vectors.map((one) => vectors.map((other) => cosine(one, other)));
    const pairs = texts.flatMap((_, at) => texts.slice(0, at).map((__, to) => [to, at]));
    const valueOf = ([to, at]) => cosines[to][at];
    const best = pairs.reduce((one, other) => (valueOf(other) > valueOf(one) ? other : one));
    const values = pairs.map(valueOf);
    const least = Math.min(...values);
    const most = Math.max(...values);
    say(`Most similar: ${best[0] + 1} and ${best[1] + 1}, cosine ${valueOf(best).toFixed(3)}`);
    answer.append(make("div", { className: "wide" }, table(texts, cosines, least, most)));
    const range = `${least.toFixed(3)} to ${most.toFixed(3)}`;
    const text = `Colours run from the lowest to the highest cosine of two texts, ${range}.`;
    answer.append(make("p", { className: "hint", textContent: text }));
  },
};

/** Returns where the vectors of a model come from, or undefined if it has none. */
function sourceOf({ signatures }) {
  const sources = [
    { signature: "embed", output: "embedding", meaning: "embeddings of the texts" },
    { signature: "encode", output: "mean_output", meaning: "means of the vectors of all tokens" },
  ];
  return sources.find(({ signature, output }) => {
    const { inputs, outputs } = signatures[signature] ?? {};
    return inputs && "text" in inputs && output in outputs;
  });
}

export function cosine(one, other) {
  const product = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);
  const lengths = Math.sqrt(product(one, one) * product(other, other));
  return lengths > 0 ? product(one, other) / lengths : 0;
}

function table(texts, cosines, least, most) {
  const numbers = texts.map((_, at) => make("th", { scope: "col", textContent: String(at + 1) }));
  const head = make("thead", {}, make("tr", {}, make("td"), ...numbers));
  const rows = texts.map((text, row) => {
    const name = make("span", { className: "text", textContent: `${row + 1}  ${text}`, title: text });
    const cells = cosines[row].map((value, column) => {
      const cell = make("td", { textContent: value.toFixed(3) });
      const weight = most > least ? (value - least) / (most - least) : 1;
      if (row === column) cell.className = "same";
      else cell.style.setProperty("--weight", `${Math.round(100 * weight)}%`);
      return cell;
    });
    return make("tr", {}, make("th", { scope: "row" }, name), ...cells);
  });
  return make("table", { className: "cosines" }, head, make("tbody", {}, ...rows));
}
