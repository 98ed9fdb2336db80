// The notice below an answer that the model did not read the whole input.

import { make } from "./elements.js";

/** Returns a notice of what an answer reports as dropped, or null; older exports report nothing. */
export function truncationNotice(output) {
  const dropped = [
    counted(output.dropped_tokens, "token"),
    counted(output.dropped_words, "word"),
  ].filter(Boolean);
  if (!dropped.length) return null;
  const text = `The input was truncated: ${dropped.join(" and ")} did not fit.`;
  return make("p", { className: "truncated", textContent: text });
}

function counted(number, noun) {
  if (!number) return "";
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
