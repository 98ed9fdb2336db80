// Finds, creates and fills elements of the page. Text is always inserted as text, never as HTML.

const HUES = 12;

/** Returns the element with an id; throws if it is missing. */
export function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element "${id}".`);
  return found;
}

/**
 * Creates an element with properties; children are elements or strings, which become text.
 *
 * The direction of its text is the one of the text, from left to right or from right to left.
 */
export function make(tag, properties = {}, ...children) {
  const hasText = "textContent" in properties || children.some((one) => typeof one === "string");
  const direction = hasText ? { dir: "auto" } : {};
  const made = Object.assign(document.createElement(tag), direction, properties);
  made.append(...children);
  return made;
}

/**
 * Returns the parts of a piece of a vocabulary: its text, and marks instead of ▁, a space.
 *
 * A mark has no direction of its own, so it stays on the side of the space.
 */
export function partsOfPiece(piece) {
  const parts = piece.split("▁");
  return parts.flatMap((part, at) => {
    const text = part ? [make("bdi", { textContent: part })] : [];
    return at ? [make("span", { className: "space", textContent: "␣" }), ...text] : text;
  });
}

/** Scrolls a box until its first marked text is visible in it. */
export function scrollToMark(box) {
  const mark = box.querySelector("mark");
  if (mark) box.scrollTop = mark.offsetTop - box.offsetTop - box.clientHeight / 3;
}

/** Sets the options of a <select>, given as [value, text]. */
export function fillSelect(select, options) {
  const made = options.map(([value, text]) => make("option", { value, textContent: text }));
  select.replaceChildren(...made);
}

/** Returns the class that tints an element with the n-th colour; colours repeat. */
export function tint(number) {
  return `tint tint-${number % HUES}`;
}

/** Formats a probability, such as 12.3%; only exact 0 and 1 become 0.0% and 100.0%. */
export function percent(share) {
  if (share > 0 && share < 0.0005) return "<0.1%";
  if (share < 1 && share >= 0.9995) return ">99.9%";
  return `${(100 * share).toFixed(1)}%`;
}

/**
 * Creates a list of bars.
 *
 * Each of `rows` has a `label`, or the `parts` of a label, and a `share` from 0 to 1. With `isBest`
 * the bar is highlighted; with `choose`, a function, the label becomes a button that calls it.
 */
export function bars(rows, className = "") {
  const items = rows.map(({ label, parts = [label], share, isBest, choose }) => {
    const fill = make("span", { className: "fill" });
    fill.style.width = `${100 * share}%`;
    const track = make("span", { className: "track" }, fill);
    track.ariaHidden = "true";
    const name = choose
      ? make("button", { type: "button", className: "label", onclick: choose }, ...parts)
      : make("span", { className: "label" }, ...parts);
    const number = make("span", { className: "number", textContent: percent(share) });
    return make("li", { className: isBest ? "best" : "" }, name, track, number);
  });
  return make("ul", { className: `bars ${className}` }, ...items);
}
