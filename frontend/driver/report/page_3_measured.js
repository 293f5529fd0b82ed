// SPDX-License-Identifier: GPL-3.0-or-later
// What was measured: kernels, the roofline, the timeline of threads.

const kernelName = k => [k.name, k.path].filter(Boolean).join(", ");
const threeDigits = n => isNumber(n) ? n.toPrecision(3) : "–";

// Kernels that compute and move bytes: the others have no place in a roofline.
const rooflinePoints = measured => measured.kernels.filter(k => k.flops > 0 && k.bytes > 0 && k.gflops > 0)
                                     .map(k => ({...k, intensity: k.flops / k.bytes}));

// Whole powers of ten around values.
const decades = (values, low,
  high) => [Math.floor(Math.log10(Math.min(low, ...values))), Math.ceil(Math.log10(Math.max(high, ...values)))];

function rooflineScale(host, points, top, slope) {
  const width = Math.max(320, host.clientWidth), height = width < 620 ? 300 : 380;
  const left = 62, right = width - 20, upper = 14, bottom = height - 44;
  const [x0, x1] = decades(points.map(p => p.intensity), top / slope / 10, top / slope * 10);
  const [y0, y1] = decades(points.map(p => p.gflops), top / 10, top * 1.05);
  const x = v => left + (Math.log10(v) - x0) / (x1 - x0) * (right - left);
  const y = v => bottom - (Math.log10(v) - y0) / (y1 - y0) * (bottom - upper);
  return {width, height, left, right, upper, bottom, x0, x1, y0, y1, x, y};
}

function decadeText(e) {
  const small = (10 ** e).toFixed(Math.max(0, -e));
  return e >= 0 ? count(10 ** e) : small.length < 8 ? small : `1e${e}`;
}

function rooflineAxes(s) {
  const parts = [];
  for (let e = s.x0; e <= s.x1; e++) {
    const x = s.x(10 ** e);
    parts.push(svg("path", {class: "grid", d: `M${x} ${s.upper}V${s.bottom}`}),
      axisText({x, y: s.bottom + 17, "text-anchor": "middle"}, decadeText(e)));
  }
  for (let e = s.y0; e <= s.y1; e++) {
    const y = s.y(10 ** e);
    parts.push(svg("path", {class: "grid", d: `M${s.left} ${y}H${s.right}`}),
      axisText({x: s.left - 8, y: y + 4, "text-anchor": "end"}, decadeText(e)));
  }
  const sideways = `translate(13 ${s.height / 2}) rotate(-90)`;
  return [
    parts, axisText({x: s.width / 2, y: s.height - 6, "text-anchor": "middle"}, "floating-point operations a byte"),
    axisText({transform: sideways, "text-anchor": "middle"}, "GFLOP/s")
  ];
}

function roof(s, top, slope) {
  const from = Math.max(10 ** s.x0, 10 ** s.y0 / slope);  // where it enters the picture
  const d = `M${s.x(from)} ${s.y(from * slope)}L${s.x(top / slope)} ${s.y(top)}H${s.right}`;
  return [
    svg("path", {d, fill: "none", stroke: "var(--limit)", "stroke-width": 2}),
    svg("text", {x: s.right - 4, y: s.y(top) - 7, "text-anchor": "end", style: {fill: "var(--limit)"}},
      `${threeDigits(top)} GFLOP/s, ${threeDigits(slope)} GB/s`)
  ];
}

function rooflinePoint(s, p, most) {
  const r = 3 + 13 * Math.sqrt(p.seconds / most), at = {cx: s.x(p.intensity), cy: s.y(p.gflops)};
  const text = `${kernelName(p)}: ${threeDigits(p.gflops)} GFLOP/s, ${threeDigits(p.intensity)} operations a byte, ` +
    `${seconds(p.seconds)} of a step`;
  const ink = {fill: "var(--activation)", "fill-opacity": 0.65, stroke: "var(--ink)", "stroke-width": 0.8};
  return svg("g", {tabindex: "0", role: "img", "aria-label": text, class: "point"}, svg("title", {}, text),
    svg("circle", {class: "ring", ...at, r: r + 3}), svg("circle", {...at, r, ...ink}));
}

function roofline(host, measured) {
  const {peak_gflops: top, peak_gbytes_per_second: slope} = measured, points = rooflinePoints(measured);
  if (!points.length || !(top > 0) || !(slope > 0))
    return host.replaceChildren(nothing("No kernel has both operations and bytes to compare."));
  const s = rooflineScale(host, points, top, slope), most = Math.max(...points.map(p => p.seconds));
  const circles = points.sort((a, b) => b.seconds - a.seconds).map(p => rooflinePoint(s, p, most));
  host.replaceChildren(svg("svg", {
    width: s.width,
    height: s.height,
    viewBox: `0 0 ${s.width} ${s.height}`,
    role: "group",
    "aria-label": "Roofline; the table below has the same kernels"
  },
    rooflineAxes(s), roof(s, top, slope), circles));
}

// Colours of the timeline: the kernels that take longest, and the rest.
const TIMELINE = ["activation", "gradient", "recomputed", "workspace", "input", "weights"];
const TRACK = {
  high: 30,
  gap: 6,
  left: 90,
  right: 10,
  top: 22
};

// What each thread did when, on a canvas.
class Timeline {
  constructor(measured) {
    this.threads = measured.threads;
    this.kernels = measured.kernels;
    this.most = Math.max(1e-9, ...this.threads.map(t => t.events.at(-1)).filter(Boolean).map(e => e[0] + e[1]));
    const byTime = this.kernels.map((k, i) => [i, k.seconds]).sort((a, b) => b[1] - a[1]);
    this.rank = new Map(byTime.map(([i], at) => [i, Math.min(at, TIMELINE.length - 1)]));
    this.canvas = el("canvas", {"aria-hidden": "true"});
    const label = `Timeline of ${plural(this.threads.length, "thread")} over ${seconds(this.most)}; the table below ` +
      "has each thread's time";
    this.plot = el("div", {class: "plot", role: "img", "aria-label": label}, this.canvas);
    this.plot.addEventListener("pointermove", e => this.point(e));
    this.plot.addEventListener("pointerleave", () => tip.hide());
    onResize(this.plot, () => this.draw());
    on("theme", () => this.draw());
  }
  kindOf(kernel) { return TIMELINE[this.rank.get(kernel) ?? TIMELINE.length - 1]; }
  width(time) { return time / this.most * this.inner; }
  x(time) { return TRACK.left + this.width(time); }
  y(thread) { return TRACK.top + thread * (TRACK.high + TRACK.gap); }

  draw() {
    const width = this.plot.clientWidth, height = this.y(this.threads.length), scale = window.devicePixelRatio || 1;
    if (!width) return;
    const c = this.canvas.getContext("2d");
    this.inner = width - TRACK.left - TRACK.right;
    Object.assign(this.canvas, {width: Math.round(width * scale), height: Math.round(height * scale)});
    this.canvas.style.height = `${height}px`;
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    c.textBaseline = "middle";
    this.drawTimes(c, width);
    c.textAlign = "left";
    this.threads.forEach((thread, i) => this.drawThread(c, thread, this.y(i)));
  }
  drawTimes(c, width) {
    const step = ticks(this.most * 1e6, width / 130)[1] / 1e6;
    c.fillStyle = colour("muted");
    for (let t = 0; t <= this.most; t += step) {
      c.textAlign = t ? "center" : "left";
      c.fillText(t ? seconds(t) : "0", this.x(t), 10);
    }
  }
  drawThread(c, thread, y) {
    c.fillStyle = colour("muted");
    c.fillText(thread.name, 0, y + TRACK.high / 2, TRACK.left - 8);
    c.fillStyle = colour("faint");
    c.fillRect(TRACK.left, y, this.inner, TRACK.high);
    for (const event of thread.events) this.drawEvent(c, event, y);
  }
  drawEvent(c, [at, long, kernel], y) {
    const x = this.x(at), w = this.width(long);
    c.fillStyle = kindFill(c, this.kindOf(kernel));
    c.fillRect(x, y, Math.max(0.5, w), TRACK.high);
    if (w > 2) {
      c.strokeStyle = colour("edge");
      c.lineWidth = 0.6;
      c.strokeRect(x, y, w, TRACK.high);
    }
    const name = this.kernels[kernel]?.name || "";
    if (w > 20 && c.measureText(name).width <= w - 8) {
      c.fillStyle = colour("on-kind");
      c.fillText(name, x + 4, y + TRACK.high / 2);
    }
  }
  point(e) {
    const box = this.plot.getBoundingClientRect();
    const thread = this.threads[Math.floor((e.clientY - box.top - TRACK.top) / (TRACK.high + TRACK.gap))];
    const time = (e.clientX - box.left - TRACK.left) / this.inner * this.most;
    const event = thread?.events.find(([at, long]) => at <= time && time < at + long),
          k = event && this.kernels[event[2]];
    if (!k) return tip.hide();
    tip.show(e.clientX, e.clientY, el("div", {}, el("b", {}, k.name), terms([
      ["thread", thread.name], ["path", k.path], ["line", k.line > 0 && String(k.line)], ["begins", seconds(event[0])],
      ["takes", seconds(event[1])]
    ])));
  }
  legend() {
    const others = TIMELINE.length - 1, kernels = this.kernels.map((k, i) => i);
    const longest = kernels.filter(i => this.rank.get(i) < others).sort((a, b) => this.rank.get(a) - this.rank.get(b));
    return el("ul", {class: "legend"},
      longest.map(i => el("li", {}, swatch(this.kindOf(i)), kernelName(this.kernels[i]))),
      kernels.length > longest.length && el("li", {}, swatch(TIMELINE[others]), "other kernels"));
  }
}

function threadsTable(threads) {
  return table("Time of each thread",
    [
      {title: "Thread", value: t => t.name}, numberColumn("Kernels", t => t.events.length),
      numberColumn("Busy", t => sum(t.events, e => e[1]), seconds)
    ],
    threads);
}

function threadsView(measured) {
  const runs = sum(measured.kernels, k => k.calls);
  if (!measured.threads.length)
    return nothing(`A step runs ${plural(runs, "kernel")}: more than a page shows one by one. `,
      el("code", {}, "scrimp bench --steps 1 --trace FILE"), " writes them for a viewer of traces.");
  const timeline = new Timeline(measured);
  return el("div", {}, timeline.plot, timeline.legend(),
    tableBehind("Threads as a table", () => threadsTable(measured.threads)));
}

function kernelsTable(kernels) {
  const total = sum(kernels, k => k.seconds);
  const name = k => [el("span", {class: "mono"}, k.name), k.path && el("small", {}, k.path)];
  return table("Of one step",
    [
      {title: "Kernel", value: k => k.name, cell: name}, lineColumn(), numberColumn("Calls", k => k.calls),
      numberColumn("Time", k => k.seconds, seconds), numberColumn("Share", k => k.seconds, n => share(n, total)),
      numberColumn("GFLOP/s", k => k.gflops, threeDigits), numberColumn("GB/s", k => k.gbytes_per_second, threeDigits)
    ],
    kernels, {sort: 3, most: 25});
}

panel("measured", body => {
  const {measured} = data;
  if (!measured)
    return body.append(nothing("Nothing was measured. ", el("code", {}, `${data.command} --measure`),
      " runs the step and fills this panel, and the measured columns of the others."));
  const host = el("div", {class: "chart"});
  onResize(host, () => roofline(host, measured));
  body.append(el("p", {}, `${seconds(measured.seconds_per_step)} a step, over ${plural(measured.steps, "step")}.`),
    el("h3", {}, "Roofline"),
    el("p", {class: "how"},
      "A circle for each kernel, larger where it takes longer. The line is what this machine " +
        "can do: on the left memory is the limit, on the right arithmetic."),
    host, el("h3", {}, "Kernels"), kernelsTable(measured.kernels), el("h3", {}, "Threads"), threadsView(measured));
});
