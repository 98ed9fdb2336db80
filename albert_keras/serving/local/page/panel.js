// The parts common to all views: button, pending state, errors, time and curl command.

import { AskError, bodyOf, curlLine, predict } from "./ask.js";
import { element, scrollToMark } from "./elements.js";
import { truncationNotice } from "./truncation.js";

/**
 * Connects a view with its section of the page.
 *
 * A view is an object with
 *   id            id of its section
 *   isOffered(model)  whether the model has the signature
 *   title(model)
 *   setUp(model)  fits the fields to the model
 *   ask(model)    returns {signature, row} from the fields, or {signature, rows} for several
 *                 inputs, or throws AskError
 *   show(output, row, {say, answer, rows, outputs})  puts the answer into the headline and the
 *                 details below it; `outputs` has the output of each row
 *   clear()       optional: hides its element with class `map`, which is outside of `answer`
 */
export class Panel {
  constructor(view) {
    this.view = view;
    this.section = element(view.id);
    this.form = this.section.querySelector("form");
    const parts = element("result").content.cloneNode(true);
    const find = (selector) => parts.querySelector(selector);
    this.button = find(".ask");
    this.error = find(".error");
    this.result = find(".result");
    this.live = find(".live");
    this.headline = find(".headline");
    this.time = find(".time");
    this.answer = find(".answer");
    this.request = find(".request");
    this.copied = find(".copied");
    this.curl = find("code");
    find(".copy").addEventListener("click", () => this.copy());
    this.form.append(find(".actions"));
    this.form.after(this.error, this.result);
    const map = this.section.querySelector(":scope > .map");
    if (map) this.answer.after(map);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask();
    });
    this.form.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.ask();
    });
  }

  use(model) {
    this.pending?.abort();
    this.pending = null;
    this.model = model;
    this.showPending(false);
    this.clear();
    this.request.hidden = true;
    if (this.view.isOffered(model)) this.view.setUp(model);
  }

  async ask() {
    if (this.pending) return;
    const { model, view } = this;
    const pending = new AbortController();
    this.pending = pending;
    this.showPending(true);
    this.request.hidden = true;
    try {
      const { signature, row, rows = [row] } = view.ask(model);
      const body = bodyOf(signature, rows);
      this.showRequest(curlLine(model, body));
      const { outputs, milliseconds } = await predict(model, signature, body, pending.signal);
      this.clear();
      const say = (...parts) => this.headline.replaceChildren(...parts);
      view.show(outputs[0], rows[0], { say, answer: this.answer, model, rows, outputs });
      this.answer.prepend(...outputs.map((output) => truncationNotice(output)).filter(Boolean));
      this.time.textContent = `Answered in ${Math.round(milliseconds)} ms.`;
      scrollToMark(this.headline);
      this.live.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (pending.signal.aborted) return;
      this.clear();
      const message = error instanceof AskError ? error.message : `The page failed: ${error}`;
      this.error.textContent = message;
      this.error.hidden = false;
      this.error.scrollIntoView({ block: "nearest" });
    } finally {
      if (this.pending === pending) {
        this.pending = null;
        this.showPending(false);
      }
    }
  }

  showPending(isPending) {
    // The button is not disabled, so that it keeps the focus.
    this.button.textContent = isPending ? "Running…" : "Run";
    this.button.ariaDisabled = String(isPending);
    this.result.ariaBusy = String(isPending);
  }

  showRequest(line) {
    this.curl.textContent = line;
    this.copied.textContent = "";
    this.request.hidden = false;
  }

  clear() {
    this.error.hidden = true;
    this.error.textContent = "";
    this.headline.replaceChildren();
    this.time.textContent = "";
    this.answer.replaceChildren();
    this.view.clear?.();
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.curl.textContent);
      this.copied.textContent = "Copied.";
    } catch {
      // Browsers allow access to the clipboard from some addresses only.
      getSelection().selectAllChildren(this.curl);
      this.copied.textContent = "Selected. Copy it with Ctrl+C or ⌘+C.";
    }
  }
}

/** Puts an example into a field unless the user has changed it. */
export function suggest(field, text) {
  if (field.value && field.value !== field.dataset.suggested) return;
  field.value = text;
  field.dataset.suggested = text;
}
