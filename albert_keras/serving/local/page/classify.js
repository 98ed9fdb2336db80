// The class or the score of a text or of a pair of texts.

import { bars, element, percent } from "./elements.js";
import { textsFor } from "./examples.js";
import { suggest } from "./panel.js";

const first = element("classify-first");
const second = element("classify-second");

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
    element("classify-hint").textContent = givesScore(model)
      ? `The score that the model predicts for ${thing}.`
      : `The probability of each label for ${thing}.`;
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
    say(`${output.label}: ${percent(output.probability)}`);
    const rows = output.labels.map((label, at) => ({
      label,
      share: output.probabilities[at],
      isBest: label === output.label,
    }));
    answer.append(bars(rows));
  },
};

function signatureOf(model) {
  return model.takesPair ? "text_pair" : "serving_default";
}

function givesScore(model) {
  return gives(model, "score") && !("question_answering" in model.signatures);
}

function gives(model, name) {
  const { inputs, outputs } = model.signatures[signatureOf(model)] ?? {};
  return Boolean(inputs && !("options" in inputs) && name in outputs);
}
