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

/** Returns a piece of a vocabulary with a visible mark for each space. */
export function shown(piece) {
  return piece.replaceAll("▁", "␣");
}

/** Returns a number with its noun, such as "2 words". */
export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
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
 * Each of `rows` has a `label` and a `share` from 0 to 1. With `isBest` the bar is highlighted; with
 * `choose`, a function, the label becomes a button that calls it.
 */
export function bars(rows) {
  const items = rows.map(({ label, share, isBest, choose }) => {
    const fill = make("span", { className: "fill" });
    fill.style.width = `${100 * share}%`;
    const track = make("span", { className: "track", ariaHidden: "true" }, fill);
    const name = choose
      ? make("button", { type: "button", className: "label", onclick: choose }, label)
      : make("span", { className: "label" }, label);
    const number = make("span", { className: "number", textContent: percent(share) });
    return make("li", { className: isBest ? "best" : "" }, name, track, number);
  });
  return make("ul", { className: "bars" }, ...items);
}

/** Creates a list of words, each {word, note, colour}: a number, or undefined for none. */
export function chips(words) {
  const items = words.map(({ word, note, colour }) => {
    const className = colour === undefined ? "" : `tint tint-${colour % HUES}`;
    const name = make("span", { className: "word", textContent: word });
    return make("li", { className }, name, " ", make("span", { className: "note" }, note));
  });
  return make("ol", { className: "chips" }, ...items);
}

/** Creates a list of names and values. */
export function facts(pairs) {
  const items = pairs.map(([name, value]) =>
    make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value })),
  );
  return make("dl", { className: "facts" }, ...items);
}

/** Creates a table of `values`, [row][column], whose colours run from the lowest to the highest. */
export function matrix(names, values) {
  const least = Math.min(...values.flat());
  const range = Math.max(...values.flat()) - least || 1;
  const heads = names.map((name) => make("th", { scope: "col" }, make("span", {}, name)));
  const rows = values.map((row, from) => {
    const cells = row.map((value) => {
      const cell = make("td", { textContent: value.toFixed(3) });
      cell.style.setProperty("--weight", `${Math.round((100 * (value - least)) / range)}%`);
      return cell;
    });
    return make("tr", {}, make("th", { scope: "row" }, make("span", {}, names[from])), ...cells);
  });
  const head = make("thead", {}, make("tr", {}, make("td"), ...heads));
  return make("div", { className: "wide" }, make("table", {}, head, make("tbody", {}, ...rows)));
}
