// SPDX-License-Identifier: GPL-3.0-or-later
// Canvases with axes: bytes upwards, the operations of the step to the right; tooltips; what a tensor is, in words.
const MARGIN = {
  left: 66,
  right: 14,
  wide: 92,
  top: 24,
  bottom: 24
};
const probe = el("span", {hidden: true}), colours = new Map(), patterns = new Map();
on("theme", () => colours.clear());

// The colour that a custom property of the style sheet stands for in the theme that is shown.
function colour(name) {
  if (!colours.has(name)) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}

// How a kind is filled: a colour, or a colour with the pattern of its swatch.
function kindFill(c, kind) {
  const ground = colour(kind), key = kind + ground;
  if (!PATTERN[kind]) return ground;
  if (!patterns.has(key)) {
    const tile = el("canvas", {width: 8, height: 8}), t = tile.getContext("2d");
    t.fillStyle = ground;
    t.fillRect(0, 0, 8, 8);
    t.strokeStyle = colour("edge");
    t.beginPath();
    if (PATTERN[kind] === "rows") {
      t.moveTo(0, 4);
      t.lineTo(8, 4);
    } else
      for (const k of [-8, 0, 8]) {
        t.moveTo(k, PATTERN[kind] === "slash" ? 8 : 0);
        t.lineTo(k + 8, PATTERN[kind] === "slash" ? 0 : 8);
      }
    t.stroke();
    patterns.set(key, tile);
  }
  return c.createPattern(patterns.get(key), "repeat");
}

// At most `room` round numbers from 0 to `most`: powers of two apart if they are bytes, else 1, 2 or 5 times a power
// of ten.
function ticks(most, room, areBytes) {
  const rough = Math.max(1, most / Math.max(1, room)), power = 10 ** Math.floor(Math.log10(rough)), found = [];
  const step = areBytes ? 2 ** Math.ceil(Math.log2(rough)) : [1, 2, 5, 10].map(k => k * power).find(k => k >= rough);
  for (let at = 0; at <= most * 1.0001; at += step) found.push(at);
  return found;
}

// Ticks are round numbers of bytes: these are all their digits.
const tickBytes = n => bytes(n, 4);

const axisText = (attributes, ...text) => svg("text", {class: "axis", ...attributes}, ...text);

// A chart of the step: two canvases (what stays, what follows the pointer), which are drawn again when the size, the
// theme or the part of the step that is shown changes.  `most`: bytes at the top.
class StepChart {
  constructor({label, most, height, draw, find, describe, step}) {
    Object.assign(this, {most, height, paint: draw, find, describe, step, at: null});
    this.under = el("canvas", {"aria-hidden": "true"});
    this.over = el("canvas", {"aria-hidden": "true"});
    this.plot = el("div",
      {class: "plot", tabindex: "0", role: "application", "aria-roledescription": "chart", "aria-label": label},
      this.under, this.over);
    onResize(this.plot, () => this.draw());
    ["theme", "view"].forEach(event => on(event, () => this.draw()));
    on("pick", () => this.mark());
    this.listen();
  }
  x(slot) { return MARGIN.left + (slot - view.from) / (view.to - view.from) * this.inner; }
  y(value) { return this.bottom - value / this.most * (this.bottom - MARGIN.top); }
  slotAt(x) { return Math.floor(view.from + (x - MARGIN.left) / this.inner * (view.to - view.from)); }
  bytesAt(y) { return (this.bottom - y) / (this.bottom - MARGIN.top) * this.most; }

  isWide() { return this.width >= 620; }

  draw() {
    this.width = this.plot.clientWidth;
    if (!this.width) return;
    const tall = !this.isWide() ? this.height * 0.8 : this.height;
    this.inner = this.width - MARGIN.left - (this.isWide() ? MARGIN.wide : MARGIN.right);
    this.bottom = tall - MARGIN.bottom;
    for (const canvas of [this.under, this.over]) {
      const scale = window.devicePixelRatio || 1;
      canvas.width = Math.round(this.width * scale);
      canvas.height = Math.round(tall * scale);
      canvas.style.height = `${tall}px`;
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
    const c = this.under.getContext("2d");
    c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    this.axes(c);
    c.save();
    c.beginPath();
    c.rect(MARGIN.left, 0, this.inner, tall);
    c.clip();
    this.taken = [];  // boxes of words and lines, which other words keep off: left, top, right, bottom
    this.limits = [];
    this.paint(this, c);
    c.restore();
    this.nameLimits(c);
    this.mark();
  }
  axes(c) {
    c.fillStyle = colour("muted");
    c.strokeStyle = colour("faint");
    c.lineWidth = 1;
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const t of ticks(this.most, Math.max(3, this.bottom / 34), true)) {
      const y = Math.round(this.y(t)) + 0.5;
      c.beginPath();
      c.moveTo(MARGIN.left, y);
      c.lineTo(MARGIN.left + this.inner, y);
      c.stroke();
      c.fillText(tickBytes(t), MARGIN.left - 7, y);
    }
    c.textAlign = "center";
    c.textBaseline = "top";
    const step = ticks(view.to - view.from, this.inner / 90)[1] || 1;
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step)
      if (this.x(t) < this.width - 16) c.fillText(count(t), this.x(t), this.bottom + 7);
  }
  // A line at a number of bytes; its name stands in the margin, where there is one.
  line(c, value, name, label, dash) {
    if (!isNumber(value) || value > this.most) return;
    const y = Math.round(this.y(value));
    c.strokeStyle = colour(name);
    c.lineWidth = 2;
    c.setLineDash(dash);
    c.beginPath();
    c.moveTo(MARGIN.left, y);
    c.lineTo(MARGIN.left + this.inner, y);
    c.stroke();
    c.setLineDash([]);
    this.taken.push([0, y - 2, this.width, y + 2]);
    this.limits.push({y, name, words: [label, bytes(value)]});
  }
  // From above downwards, pushed apart.
  nameLimits(c) {
    if (!this.isWide()) return;
    c.textAlign = "left";
    c.textBaseline = "alphabetic";
    let free = 0;
    for (const {y, name, words} of this.limits.sort((a, b) => a.y - b.y)) {
      const top = Math.min(Math.max(y - 3, free + 12), this.bottom - 16);
      c.fillStyle = colour(name);
      words.forEach((word, i) => c.fillText(word, MARGIN.left + this.inner + 8, top + 14 * i));
      free = top + 16;
    }
  }
  isFree(left, top, right, bottom) {
    return this.taken.every(t => right <= t[0] || left >= t[2] || bottom <= t[1] || top >= t[3]);
  }
  // Text that is read on any ground.
  word(c, text, x, y, align = "left", ink = null) {
    c.textAlign = align;
    c.textBaseline = "alphabetic";
    const {width} = c.measureText(text), written = ink ? colour(ink) : c.fillStyle,
          left = x - (align === "right" ? width : 0) - 3;
    this.taken.push([left, y - 11, left + width + 6, y + 3]);
    c.globalAlpha = 0.85;
    c.fillStyle = colour("panel");
    c.fillRect(left, y - 11, width + 6, 14);
    c.globalAlpha = 1;
    c.fillStyle = written;
    c.fillText(text, x, y);
  }

  // The tensor under the pointer or the keyboard, and the one that is picked.
  mark() {
    if (!this.inner) return;
    const c = this.over.getContext("2d");
    c.clearRect(0, 0, this.width, this.bottom + MARGIN.bottom);
    c.save();
    c.beginPath();
    c.rect(MARGIN.left, 0, this.inner, this.bottom + MARGIN.bottom);
    c.clip();
    if (this.drag) {
      c.fillStyle = colour("edge");
      c.fillRect(Math.min(...this.drag), 0, Math.abs(this.drag[1] - this.drag[0]), this.bottom);
    } else if (this.at) {
      c.strokeStyle = colour("ink");
      c.lineWidth = 1;
      const x = (this.x(this.at.slot) + this.x(this.at.slot + 1)) / 2;
      c.beginPath();
      c.moveTo(x, MARGIN.top);
      c.lineTo(x, this.bottom);
      c.stroke();
    }
    const chosen = [this.at?.buffer, this.step.buffers.findIndex(b => holds(b, picked))];
    for (const buffer of new Set(chosen.filter(b => b >= 0))) {
      this.outline(c, buffer);
      c.lineWidth = 3.5;
      c.strokeStyle = colour("panel");
      c.stroke();
      c.lineWidth = 1.8;
      c.strokeStyle = colour("ink");
      c.stroke();
    }
    c.restore();
  }

  listen() {
    const at = e => {
      const box = this.plot.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    const inside = x => x >= MARGIN.left && x < MARGIN.left + this.inner;
    this.plot.addEventListener("pointermove", e => {
      const [x, y] = at(e);
      if (this.drag && e.buttons) {
        this.drag[1] = x;
        return this.mark();
      }
      this.drag = null;
      if (!inside(x)) return this.leave();
      const slot = this.slotAt(x);
      this.point(slot, this.find(slot, this.bytesAt(y)), e.clientX, e.clientY);
    });
    this.plot.addEventListener("pointerleave", () => {
      if (document.activeElement !== this.plot) this.leave();
    });
    this.plot.addEventListener("pointerdown", e => {
      const [x] = at(e);
      if (e.pointerType === "mouse" && e.button === 0 && inside(x)) {
        this.drag = [x, x];
        addEventListener("pointerup", up => this.drop(up), {once: true});  // wherever that is
      }
    });
    this.plot.addEventListener("pointercancel", () => {
      this.drag = null;
      this.mark();
    });
    this.plot.addEventListener("blur", () => this.leave());
    this.plot.addEventListener("focus", () => {
      if (this.plot.matches(":focus-visible")) this.move(this.step.peak_slot, 0);
    });
    this.plot.addEventListener("keydown", e => this.key(e));
  }
  // A drag shows a part of the step; a click marks a tensor.
  drop(e) {
    const drag = this.drag;
    this.drag = null;
    if (drag && Math.abs(drag[1] - drag[0]) > 6)
      setView(...drag.map(x => this.slotAt(x)).sort((a, b) => a - b));
    else if (this.at?.buffer >= 0 && this.plot.contains(e.target))
      pick(this.step.buffers[this.at.buffer].name);
    this.mark();
  }
  key(e) {
    const now = this.at || {slot: this.step.peak_slot, rank: 0};
    const page = Math.max(1, Math.round((view.to - view.from) / 20));
    const go = {
      ArrowRight: [1, 0],
      ArrowLeft: [-1, 0],
      PageDown: [page, 0],
      PageUp: [-page, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
      Home: [-slots, 0],
      End: [slots, 0]
    }[e.key];
    if (go)
      this.move(now.slot + go[0], (now.rank || 0) + go[1]);
    else if (e.key === "p" || e.key === "P")
      this.move(this.step.peak_slot, 0);
    else if (e.key === "Enter" && this.at?.buffer >= 0)
      pick(this.step.buffers[this.at.buffer].name);
    else if (e.key === "Escape")
      this.leave();
    else
      return;
    e.preventDefault();
  }
  // By keyboard: the tensors in memory at a slot, the largest first.
  move(slot, rank) {
    slot = Math.max(0, Math.min(this.step.load.length - 1, slot));
    const there = this.ranked(slot);
    rank = there.length ? (rank + there.length) % there.length : 0;
    if (slot < view.from || slot >= view.to)
      setView(slot - (view.to - view.from) / 2, slot + (view.to - view.from) / 2);
    const box = this.plot.getBoundingClientRect();
    this.point(slot, there[rank] ?? -1, box.left + this.x(slot), box.top + MARGIN.top + 30, rank);
  }
  ranked(slot) {
    return alive(this.step, slot)
      .filter(b => !this.skip?.(b))
      .sort((a, b) => this.step.buffers[b].bytes - this.step.buffers[a].bytes);
  }
  point(slot, buffer, clientX, clientY, rank = 0) {
    if (slot < 0 || slot >= this.step.load.length) return this.leave();
    this.at = {slot, buffer, rank};
    this.mark();
    tip.show(clientX, clientY, this.describe(slot, buffer));
  }
  leave() {
    this.at = null;
    this.mark();
    tip.hide();
  }
}

const holds = (buffer, name) => name !== null && (buffer.name === name || !!buffer.holds?.some(h => h.name === name));
const alive = (step, slot) =>
  step.buffers.map((b, i) => i).filter(i => step.buffers[i].first <= slot && slot < step.buffers[i].end);

const tip = {
  node: document.getElementById("tip"),
  show(x, y, content) {
    this.node.replaceChildren(content);
    this.node.hidden = false;
    const box = this.node.getBoundingClientRect(), gap = 16;
    const left = x + gap + box.width > innerWidth - 8 ? x - gap - box.width : x + gap;
    this.node.style.left = `${Math.max(8, Math.min(left, innerWidth - box.width - 8))}px`;
    this.node.style.top = `${Math.max(8, Math.min(y + gap, innerHeight - box.height - 8))}px`;
  },
  hide() { this.node.hidden = true; }
};

const sourceLines = (data.source?.text || "").split("\n");
// Operations are counted from 0, as in the dumps.
const placeInStep = (step, slot) => `operation ${count(slot)} of 0 to ${count(step.operations.length - 1)}`;
const terms = pairs =>
  el("dl", {}, pairs.filter(([, value]) => value).map(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));

function operationText(step, slot) {
  const o = step.operations[slot];
  return o ? `${count(slot)} (${o.op}${o.phase ? `, ${o.phase}` : ""})` :
    slot >= step.operations.length             ? "the end of the step" :
                                                 count(slot);
}

// A tensor in words: name, bytes, birth, death, place in the model.
function aboutBuffer(step, index) {
  const b = step.buffers[index], always = PERSISTENT.has(b.kind);
  return [
    el("div", {}, swatch(b.kind), " ", el("b", {}, b.name)), terms([
      ["size", `${exactBytes(b.bytes)}, ${b.type || ""}`], ["kind", kindLabel[b.kind] || b.kind],
      ["in memory", always ? "always" : plural(b.end - b.first, "operation")],
      ["born at", !always && operationText(step, b.first)], ["dies after", !always && operationText(step, b.end - 1)],
      ["offset", isNumber(b.offset) && exactBytes(b.offset)], ["path", b.path],
      ["line", b.line > 0 && `${b.line}: ${(sourceLines[b.line - 1] || "").trim()}`], ["imported from", b.file],
      ["written over", isNumber(b.over) && step.buffers[b.over].name],
      ["views", b.holds?.map(h => `${h.name} (from ${count(h.first)})`).join(", ")]
    ])
  ];
}

function aboutSlot(step, slot) {
  const o = step.operations[slot];
  return el("div", {class: "at"},
    `operation ${count(slot)}${o ? `: ${o.name}, ${o.op}` : ""}${isNumber(o?.again) ? ", runs again" : ""}; ` +
      `${bytes(step.load[slot])} in memory`);
}

// Buttons of the charts: the part of the step that is shown, and the tensor that is marked.
function viewTools() {
  const zoom = by => {
    const middle = (view.from + view.to) / 2, half = (view.to - view.from) / 2 * by;
    setView(middle - half, middle + half);
  };
  const slide = by => {
    const width = view.to - view.from;
    setView(view.from + by * width, view.to + by * width);
  };
  const button = (label, call, title) =>
    el("button", {type: "button", onclick: call, title, "aria-label": title}, label);
  const shown = el("label", {}), marked = el("label", {}),
        clear = button("Unmark", () => pick(picked), "Unmark the tensor");
  const all = button("Whole step", () => setView(0, slots), "Show the whole step");
  const update = () => {
    const whole = view.from === 0 && view.to === slots;
    shown.textContent = whole ? "" : `operations ${count(view.from)} to ${count(view.to - 1)}`;
    all.disabled = whole;
    marked.textContent = picked ? `marked: ${picked}` : "";
    clear.hidden = !picked;
  };
  ["view", "pick"].forEach(event => on(event, update));
  update();
  return el("div", {class: "bar-of-tools", role: "group", "aria-label": "Part of the step"},
    button("−", () => zoom(2), "Zoom out"), button("+", () => zoom(0.5), "Zoom in"),
    button("←", () => slide(-0.5), "Earlier"), button("→", () => slide(0.5), "Later"), all, shown,
    el("span", {class: "spring"}), marked, clear);
}
