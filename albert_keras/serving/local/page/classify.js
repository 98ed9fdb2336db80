// The class or the score of a text or of a pair of texts, or several labels or scores of it.

import { bars, element, make, percent } from "./elements.js";
import { textsFor } from "./examples.js";
import { suggest } from "./panel.js";

const first = element("classify-first");
const second = element("classify-second");
const THRESHOLD = 0.5; // of several labels, each with at least this probability applies

export const view = {
  id: "classify",
  isOffered: (model) => gives(model, "probabilities") || givesScore(model),

  title(model) {
    if (givesScore(model)) return model.takesPair ? "Score a pair" : "Score";
    return model.takesPair ? "Classify a pair" : "Classify";
  },

  setUp(model) {
    element("classify-title").textContent = this.title(model);
    const thing = model.takesPair ? "the pair" : "the text";
    const scores = gives(model, "scores") ? "scores" : "score";
    element("classify-hint").textContent = givesScore(model)
      ? `The ${scores} that the model predicts for ${thing}.`
      : gives(model, "label")
        ? `The probability of each label for ${thing}.`
        : `The probability of each label for ${thing}; each that is likely applies.`;
    element("classify-first-label").textContent = model.takesPair ? "First text" : "Text";
    element("classify-second-field").hidden = !model.takesPair;
    const [one, other] = textsFor(model);
    suggest(first, one);
    suggest(second, other ?? "");
  },

  ask(model) {
    const signature = signatureOf(model);
    const row = model.takesPair
      ? { first: first.value, second: second.value }
      : { text: first.value };
    return { signature, row };
  },

  show(output, row, { say, answer }) {
    if (output.score !== undefined) {
      say(`Score: ${output.score.toFixed(3)}`);
      return;
    }
    if (output.scores !== undefined) {
      say(`Scores of ${output.labels.length} labels`);
      answer.append(list(output.labels, output.scores));
      return;
    }
    const applies = (label, at) =>
      output.label === undefined ? output.probabilities[at] >= THRESHOLD : label === output.label;
    const rows = output.labels.map((label, at) => ({
      label,
      share: output.probabilities[at],
      isBest: applies(label, at),
    }));
    if (output.label === undefined) {
      say(output.labels.filter(applies).join(", ") || "No label applies");
    } else {
      say(`${output.label}: ${percent(output.probability)}`);
    }
    answer.append(bars(rows));
  },
};

function list(labels, scores) {
  const rows = labels.map((label, at) => {
    const term = make("dt", { textContent: label });
    return make("div", {}, term, make("dd", { textContent: scores[at].toFixed(3) }));
  });
  return make("dl", { className: "scores" }, ...rows);
}

function signatureOf(model) {
  return model.takesPair ? "text_pair" : "serving_default";
}

function givesScore(model) {
  const isScore = gives(model, "score") || (gives(model, "scores") && gives(model, "labels"));
  return isScore && !("question_answering" in model.signatures);
}

function gives(model, name) {
  const { inputs, outputs } = model.signatures[signatureOf(model)] ?? {};
  return Boolean(inputs && !("options" in inputs) && name in outputs);
}
