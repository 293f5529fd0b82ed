// SPDX-License-Identifier: GPL-3.0-or-later
// What was measured: kernels, the roofline, the timeline of threads.

const kernelName = k => [k.name, k.path].filter(Boolean).join(", ");

function roofline(host, measured) {
  const {peak_gflops: top, peak_gbytes_per_second: slope} = measured;
  const points = measured.kernels.filter(k => k.flops > 0 && k.bytes > 0 && k.gflops > 0)
                   .map(k => ({...k, intensity: k.flops / k.bytes}));
  if (!points.length || !(top > 0) || !(slope > 0))
    return host.replaceChildren(nothing("No kernel has both operations and bytes to compare."));
  const width = Math.max(320, host.clientWidth), height = width < 620 ? 300 : 380,
        room = {left: 62, right: 20, top: 14, bottom: 44};
  const span = (values, low,
    high) => [Math.floor(Math.log10(Math.min(low, ...values))), Math.ceil(Math.log10(Math.max(high, ...values)))];
  const [x0, x1] = span(points.map(p => p.intensity), top / slope / 10, top / slope * 10);
  const [y0, y1] = span(points.map(p => p.gflops), top / 10, top * 1.05);
  const low = Math.max(10 ** x0, 10 ** y0 / slope);  // where the roof enters the picture
  const x = v => room.left + (Math.log10(v) - x0) / (x1 - x0) * (width - room.left - room.right);
  const y = v => height - room.bottom - (Math.log10(v) - y0) / (y1 - y0) * (height - room.top - room.bottom);
  const g = svg("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "group",
    "aria-label": "Roofline; the table below has the same kernels"
  });
  const tick = e => e >= 0 ? count(10 ** e) : String(10 ** e).length < 8 ? (10 ** e).toFixed(-e) : `1e${e}`;
  for (let e = x0; e <= x1; e++)
    g.append(svg("path", {class: "grid", d: `M${x(10 ** e)} ${room.top}V${height - room.bottom}`}),
      svg("text", {class: "axis", x: x(10 ** e), y: height - room.bottom + 17, "text-anchor": "middle"}, tick(e)));
  for (let e = y0; e <= y1; e++)
    g.append(svg("path", {class: "grid", d: `M${room.left} ${y(10 ** e)}H${width - room.right}`}),
      svg("text", {class: "axis", x: room.left - 8, y: y(10 ** e) + 4, "text-anchor": "end"}, tick(e)));
  g.append(svg("text", {class: "axis", x: width / 2, y: height - 6, "text-anchor": "middle"},
             "floating-point operations a byte"),
    svg("text", {class: "axis", transform: `translate(13 ${height / 2}) rotate(-90)`, "text-anchor": "middle"},
      "GFLOP/s"),
    svg("path", {
      d: `M${x(low)} ${y(low * slope)}L${x(top / slope)} ${y(top)}H${width - room.right}`,
      fill: "none",
      stroke: "var(--limit)",
      "stroke-width": 2
    }),
    svg("text", {x: width - room.right - 4, y: y(top) - 7, "text-anchor": "end", style: {fill: "var(--limit)"}},
      `${top.toPrecision(3)} GFLOP/s, ${slope.toPrecision(3)} GB/s`));
  const most = Math.max(...points.map(p => p.seconds));
  for (const p of [...points].sort((a, b) => b.seconds - a.seconds)) {
    const r = 3 + 13 * Math.sqrt(p.seconds / most),
          text = `${kernelName(p)}: ${p.gflops.toPrecision(3)} GFLOP/s, ` +
      `${p.intensity.toPrecision(3)} operations a byte, ${seconds(p.seconds)} of a step`;
    g.append(svg("g", {tabindex: "0", role: "img", "aria-label": text}, svg("title", {}, text),
      svg("circle", {class: "ring", cx: x(p.intensity), cy: y(p.gflops), r: r + 3}), svg("circle", {
        cx: x(p.intensity),
        cy: y(p.gflops),
        r,
        fill: "var(--activation)",
        "fill-opacity": 0.65,
        stroke: "var(--ink)",
        "stroke-width": 0.8
      })));
  }
  host.replaceChildren(g);
}

// Colours of the timeline: the kernels that take longest, and the rest.
const TIMELINE = ["activation", "gradient", "recomputed", "workspace", "input", "weights"];

function timeline(measured) {
  const most = Math.max(1e-9, ...measured.threads.flatMap(t => t.events.map(e => e[0] + e[1]))), high = 30, left = 90,
        top = 22;
  const rank = new Map(measured.kernels.map((k, i) => [i, k.seconds])
                         .sort((a, b) => b[1] - a[1])
                         .map(([i], at) => [i, Math.min(at, TIMELINE.length - 1)]));
  const canvas = el("canvas"),
        plot = el("div", {
          class: "plot",
          tabindex: "0",
          role: "img",
          "aria-label": `Timeline of ${plural(measured.threads.length, "thread")} over ${seconds(most)}`
        },
          canvas);
  const x = (t, width) => left + t / most * (width - left - 10);
  function draw() {
    const width = plot.clientWidth, height = top + measured.threads.length * (high + 6) + 6,
          scale = window.devicePixelRatio || 1, c = canvas.getContext("2d");
    if (!width) return;
    Object.assign(canvas, {width: Math.round(width * scale), height: Math.round(height * scale)});
    canvas.style.height = `${height}px`;
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    c.textBaseline = "middle";
    c.fillStyle = colour("muted");
    const step = ticks(most * 1e6, width / 130)[1] / 1e6;
    for (let t = 0; t <= most; t += step) {
      c.textAlign = t ? "center" : "left";
      c.fillText(seconds(t) === "0.00 µs" ? "0" : seconds(t), x(t, width), 10);
    }
    c.textAlign = "left";
    measured.threads.forEach((thread, i) => {
      const y = top + i * (high + 6);
      c.fillStyle = colour("muted");
      c.fillText(thread.name, 0, y + high / 2, left - 8);
      c.fillStyle = colour("faint");
      c.fillRect(left, y, width - left - 10, high);
      for (const [at, long, kernel] of thread.events) {
        c.fillStyle = kindFill(c, TIMELINE[rank.get(kernel) ?? TIMELINE.length - 1]);
        const w = long / most * (width - left - 10);
        c.fillRect(x(at, width), y, Math.max(0.5, w), high);
        if (w > 2) c.strokeStyle = colour("edge"), c.lineWidth = 0.6, c.strokeRect(x(at, width), y, w, high);
        if (w > 50) {
          c.fillStyle = colour("on-kind");
          c.fillText(measured.kernels[kernel]?.name || "", x(at, width) + 4, y + high / 2, w - 8);
        }
      }
    });
  }
  plot.addEventListener("pointermove", e => {
    const box = plot.getBoundingClientRect(),
          thread = measured.threads[Math.floor((e.clientY - box.top - top) / (high + 6))];
    const time = (e.clientX - box.left - left) / (box.width - left - 10) * most,
          event = thread?.events.find(([at, long]) => at <= time && time < at + long);
    const k = event && measured.kernels[event[2]];
    if (!k) return tip.hide();
    tip.show(e.clientX, e.clientY, el("div", {}, el("b", {}, k.name), terms([
      ["thread", thread.name], ["path", k.path], ["line", k.line > 0 && String(k.line)], ["begins", seconds(event[0])],
      ["takes", seconds(event[1])]
    ])));
  });
  plot.addEventListener("pointerleave", () => tip.hide());
  onResize(plot, draw);
  on("theme", draw);
  const longest = measured.kernels.map((k, i) => i)
                    .filter(i => rank.get(i) < TIMELINE.length - 1)
                    .sort((a, b) => rank.get(a) - rank.get(b));
  return [
    plot,
    el("ul", {class: "legend"},
      longest.map(i => el("li", {}, swatch(TIMELINE[rank.get(i)]), kernelName(measured.kernels[i]))),
      measured.kernels.length > longest.length && el("li", {}, swatch(TIMELINE[TIMELINE.length - 1]), "other kernels")),
    tableBehind("Threads as a table",
      () => table("Time of each thread",
        [
          {title: "Thread", value: t => t.name},
          {title: "Kernels", num: true, value: t => t.events.length, cell: t => count(t.events.length)},
          {title: "Busy", num: true, value: t => sum(t.events, e => e[1]), cell: t => seconds(sum(t.events, e => e[1]))}
        ],
        measured.threads))
  ];
}

panel("measured", body => {
  const {measured} = data;
  if (!measured)
    return body.append(nothing("Nothing was measured. ", el("code", {}, `${data.command} --measure`),
      " runs the step and fills this panel, and the measured columns of the others."));
  const host = el("div", {class: "chart"}), total = sum(measured.kernels, k => k.seconds);
  onResize(host, () => roofline(host, measured));
  body.append(el("p", {}, `${seconds(measured.seconds_per_step)} a step, over ${plural(measured.steps, "step")}.`), el("h3", {}, "Roofline"),
    el("p", {class: "how"}, "A circle for each kernel, larger where it takes longer. The line is what this machine can do: on the left " +
      "memory is the limit, on the right arithmetic."), host,
    el("h3", {}, "Kernels"), table("Of one step", [
      {title: "Kernel", value: k => k.name, cell: k => [el("span", {class: "mono"}, k.name), k.path && el("small", {}, k.path)]},
      {title: "Line", num: true, value: k => k.line, cell: k => k.line || "–"},
      {title: "Calls", num: true, value: k => k.calls, cell: k => count(k.calls)},
      {title: "Time", num: true, value: k => k.seconds, cell: k => seconds(k.seconds)},
      {title: "Share", num: true, value: k => k.seconds, cell: k => share(k.seconds, total)},
      {title: "GFLOP/s", num: true, value: k => k.gflops, cell: k => isNumber(k.gflops) ? k.gflops.toPrecision(3) : "–"},
      {title: "GB/s", num: true, value: k => k.gbytes_per_second, cell: k => isNumber(k.gbytes_per_second) ? k.gbytes_per_second.toPrecision(3) : "–"}],
    measured.kernels, {sort: 3, most: 25}),
    el("h3", {}, "Threads"), ...timeline(measured));
});
