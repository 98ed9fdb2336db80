// A map of numbers, tokens × tokens, on a canvas.

const SMALLEST = 13; // sizes of a cell, in pixels
const LARGEST = 28;
const LONGEST_LABEL = 110;
const GAP = 6; // between labels and cells

/**
 * Draws the map, and selects a cell by the pointer and the arrow keys. The colours run from the
 * smallest value of the map to its largest one.
 *
 * `onPoint` is called with row, column and value of the selected cell.
 */
export class HeatMap {
  constructor(canvas, onPoint) {
    this.canvas = canvas;
    this.onPoint = onPoint;
    this.names = [];
    this.width = 0;
    for (const kind of ["pointermove", "pointerdown"]) {
      canvas.addEventListener(kind, (event) => this.follow(event));
    }
    canvas.addEventListener("keydown", (event) => this.step(event));
    new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width === this.width) return;
      this.width = contentRect.width;
      this.draw();
    }).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** Shows the values `shares`, [row][column], and selects the largest one. */
  show(names, shares) {
    this.names = names;
    this.shares = shares;
    this.least = Math.min(...shares.flat());
    this.most = Math.max(...shares.flat());
    const row = shares.findIndex((values) => values.includes(this.most));
    this.point(row, shares[row].indexOf(this.most));
  }

  point(row, column) {
    this.row = row;
    this.column = column;
    this.draw();
    this.onPoint(row, column, this.shares[row][column]);
  }

  follow(event) {
    const row = Math.floor((event.offsetY - this.margin) / this.cell);
    const column = Math.floor((event.offsetX - this.margin) / this.cell);
    const last = this.names.length - 1;
    if (Math.min(row, column) < 0 || Math.max(row, column) > last) return;
    if (row !== this.row || column !== this.column) this.point(row, column);
  }

  step(event) {
    const steps = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    const [down, right] = steps[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    const last = this.names.length - 1;
    const row = Math.min(Math.max(this.row + down, 0), last);
    const column = Math.min(Math.max(this.column + right, 0), last);
    this.point(row, column);
    this.scrollTo(column);
  }

  /** Scrolls until a column is visible beside the names of the rows. */
  scrollTo(column) {
    const box = this.canvas.parentElement;
    const end = this.margin + (column + 2) * this.cell;
    const begin = (column - 1) * this.cell;
    if (end > box.scrollLeft + box.clientWidth) box.scrollLeft = end - box.clientWidth;
    if (begin < box.scrollLeft) box.scrollLeft = begin;
  }

  draw() {
    const { canvas, names } = this;
    const room = canvas.parentElement.clientWidth;
    if (!names.length || !room) return;
    const style = getComputedStyle(canvas);
    const context = canvas.getContext("2d");
    const font = (weight) => `${weight} 12px ${style.fontFamily}`;
    context.font = font(700);
    const widths = names.map((name) => context.measureText(name).width);
    const longest = Math.min(Math.max(...widths), LONGEST_LABEL);
    this.margin = Math.ceil(longest) + GAP;
    const cell = Math.floor((room - this.margin - 2) / names.length);
    this.cell = Math.min(Math.max(cell, SMALLEST), LARGEST);
    const side = this.margin + this.cell * names.length + 2;
    const scale = devicePixelRatio || 1;
    canvas.width = canvas.height = Math.round(side * scale);
    canvas.style.width = canvas.style.height = `${side}px`;
    context.scale(scale, scale);
    this.drawCells(context, style);
    this.drawLabels(context, style, font, longest);
  }

  drawCells(context, style) {
    const { margin, cell } = this;
    const [low, high] = ["--map-low", "--map-high"].map((name) =>
      style.getPropertyValue(name).trim().split(/\s+/).map(Number),
    );
    const range = this.most - this.least;
    this.shares.forEach((values, row) => {
      values.forEach((share, column) => {
        const weight = range > 0 ? (share - this.least) / range : 0;
        const colour = low.map((from, at) => Math.round(from + weight * (high[at] - from)));
        context.fillStyle = `rgb(${colour.join(" ")})`;
        context.fillRect(margin + column * cell, margin + row * cell, cell - 1, cell - 1);
      });
    });
    context.strokeStyle = style.color;
    context.lineWidth = 2;
    context.strokeRect(margin + this.column * cell, margin + this.row * cell, cell - 1, cell - 1);
  }

  drawLabels(context, style, font, longest) {
    const { margin, cell, names } = this;
    context.fillStyle = style.color;
    context.textBaseline = "middle";
    names.forEach((name, at) => {
      const middle = margin + (at + 0.5) * cell - 0.5;
      context.font = font(at === this.row ? 700 : 400);
      context.textAlign = "right";
      context.fillText(shortened(context, name, longest), margin - GAP, middle);
      context.font = font(at === this.column ? 700 : 400);
      context.textAlign = "left";
      context.save();
      context.translate(middle, margin - GAP);
      context.rotate(-Math.PI / 2);
      context.fillText(shortened(context, name, longest), 0, 0);
      context.restore();
    });
  }
}

/** Shortens a name to the available width. */
function shortened(context, name, room) {
  if (context.measureText(name).width <= room + 1) return name;
  const characters = Array.from(name);
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > room) {
    characters.pop();
  }
  return `${characters.join("")}…`;
}
