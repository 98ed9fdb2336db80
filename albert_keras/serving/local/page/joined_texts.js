// Two fields that form one text, separated by the first tab: a pair, or a question and a passage.

import { element } from "./elements.js";
import { textsFor } from "./examples.js";
import { suggest } from "./panel.js";

/** The two fields of a view; their ids start with `id`. */
export class JoinedTexts {
  constructor(id) {
    this.first = element(`${id}-first`);
    this.second = element(`${id}-second`);
    this.firstLabel = element(`${id}-first-label`);
    this.secondLabel = element(`${id}-second-label`);
    this.secondField = element(`${id}-second-field`);
  }

  setUp(model) {
    this.hasTwo = model.takesPair || model.readsSpans;
    this.secondField.hidden = !this.hasTwo;
    const names = model.readsSpans ? ["Question", "Passage"] : ["First text", "Second text"];
    this.firstLabel.textContent = this.hasTwo ? names[0] : "Text";
    this.secondLabel.textContent = names[1];
    const { samples } = model;
    const pair = model.readsSpans ? [samples.question, samples.context] : textsFor(model);
    const [first, second] = this.hasTwo ? pair : [samples.first, ""];
    suggest(this.first, first);
    suggest(this.second, second);
  }

  get text() {
    if (!this.hasTwo) return this.first.value;
    return `${this.first.value.replaceAll("\t", " ")}\t${this.second.value}`;
  }
}
