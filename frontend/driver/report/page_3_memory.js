// SPDX-License-Identifier: GPL-3.0-or-later
// Memory over the step, stacked by kind, and what lives at the peak.

// bands[kind][slot]: bytes of a kind in memory.
function bandsOf(step) {
  const n = step.load.length, bands = Object.fromEntries(KINDS.map(([kind]) => [kind, new Float64Array(n + 1)]));
  for (const b of step.buffers) {
    const band = bands[b.kind] || bands.activation;
    band[b.first] += b.bytes;
    band[Math.min(n, b.end)] -= b.bytes;
  }
  for (const band of Object.values(bands))
    for (let s = 1; s <= n; s++) band[s] += band[s - 1];
  return bands;
}

// The kinds from below upwards, with the bytes under each.
function stackOf(step) {
  step.bands ||= bandsOf(step);
  let below = new Float64Array(step.load.length);
  return step.stack ||= KINDS
                          .map(([kind]) => {
                            const base = below, band = step.bands[kind];
                            below = base.map((bytes, s) => bytes + band[s]);
                            return {kind, base, top: below, any: band.some(bytes => bytes > 0)};
                          })
                          .filter(layer => layer.any);
}

// Bytes under a buffer at each slot of its life: the kinds below it, and what of its kind was there before it.
function baseOf(step, index) {
  const b = step.buffers[index], base = stackOf(step).find(l => l.kind === b.kind).base.slice(b.first, b.end);
  step.buffers.forEach((o, i) => {
    if (o.kind !== b.kind || o.first > b.first || (o.first === b.first && i >= index)) return;
    for (let s = b.first; s < Math.min(o.end, b.end); s++) base[s - b.first] += o.bytes;
  });
  return base;
}

function drawStack(chart, c) {
  const {step} = chart, from = Math.max(0, view.from - 1), to = Math.min(step.load.length, view.to + 1);
  for (const layer of stackOf(step)) {
    c.beginPath();
    c.moveTo(chart.x(from), chart.y(layer.top[from]));
    for (let s = from; s < to; s++) {
      c.lineTo(chart.x(s), chart.y(layer.top[s]));
      c.lineTo(chart.x(s + 1), chart.y(layer.top[s]));
    }
    for (let s = to - 1; s >= from; s--) {
      c.lineTo(chart.x(s + 1), chart.y(layer.base[s]));
      c.lineTo(chart.x(s), chart.y(layer.base[s]));
    }
    c.closePath();
    c.fillStyle = kindFill(c, layer.kind);
    c.fill();
    c.strokeStyle = colour("edge");
    c.lineWidth = 0.8;
    if (to - from < chart.inner) c.stroke();
  }
}

// A layer's name where it is high enough, and highest.
const nameLayers = (chart, c) => stackOf(chart.step).forEach(layer => nameLayer(chart, c, layer));

function nameLayer(chart, c, layer) {
  const text = kindLabel[layer.kind], half = c.measureText(text).width / 2 + 5;
  let best = null;
  for (let x = MARGIN.left + half; x < MARGIN.left + chart.inner - half; x += 12) {
    let low = Infinity, high = -Infinity;  // the lowest top and the highest base on the canvas
    for (let dx = -half; dx <= half; dx += half / 6) {
      const s = Math.min(chart.step.load.length - 1, Math.max(0, chart.slotAt(x + dx)));
      high = Math.max(high, chart.y(layer.top[s]));
      low = Math.min(low, chart.y(layer.base[s]));
    }
    if (low - high < 15 || (best && low - high <= best.room + 2)) continue;
    const y = [(low + high) / 2, high + 12, low - 12].find(
      y => y - 7 >= high && y + 7 <= low && chart.isFree(x - half, y - 8, x + half, y + 8));
    if (y !== undefined) best = {x, y, room: low - high};
  }
  if (!best) return;
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillStyle = colour(layer.kind);
  c.fillRect(best.x - half, best.y - 7, 2 * half, 14);
  c.fillStyle = colour("on-kind");
  c.fillText(text, best.x, best.y);
}

function drawLimits(chart, c) {
  chart.line(c, data.plan.peak_lower_bound_bytes, "bound", "proven bound", [6, 4]);
  chart.line(c, data.plan.budget_bytes, "limit", "budget", []);
}

function drawPhases(chart, c) {
  const end = chart.step.forward_end;
  if (!end) return;
  const x = chart.x(end);
  c.strokeStyle = colour("muted");
  c.lineWidth = 1;
  c.setLineDash([2, 3]);
  c.beginPath();
  c.moveTo(x, 2);
  c.lineTo(x, chart.bottom);
  c.stroke();
  c.setLineDash([]);
  if (x > MARGIN.left + 70) chart.word(c, "forward", x - 6, 14, "right", "muted");
  if (x < MARGIN.left + chart.inner - 150) chart.word(c, "backward and update", x + 6, 14, "left", "muted");
}

function drawPeak(chart, c) {
  const {step} = chart, x = (chart.x(step.peak_slot) + chart.x(step.peak_slot + 1)) / 2, y = chart.y(step.peak_bytes);
  c.fillStyle = colour("ink");
  c.beginPath();
  c.moveTo(x, y - 1);
  c.lineTo(x - 6, y - 10);
  c.lineTo(x + 6, y - 10);
  c.closePath();
  c.fill();
  const right = x > MARGIN.left + chart.inner * 0.6,
        near = Math.abs(y - chart.y(data.plan.budget_bytes ?? Infinity)) < 14;
  chart.word(c, `peak ${bytes(step.peak_bytes)}`, x + (right ? -10 : 10), near ? y - 16 : y - 3,
    right ? "right" : "left", "ink");
}

function outlineInStack(chart, c, index) {
  const b = chart.step.buffers[index], base = baseOf(chart.step, index);
  c.beginPath();
  c.moveTo(chart.x(b.first), chart.y(base[0]));
  for (let k = 0; k < base.length; k++) {
    c.lineTo(chart.x(b.first + k), chart.y(base[k] + b.bytes));
    c.lineTo(chart.x(b.first + k + 1), chart.y(base[k] + b.bytes));
  }
  for (let k = base.length - 1; k >= 0; k--) {
    c.lineTo(chart.x(b.first + k + 1), chart.y(base[k]));
    c.lineTo(chart.x(b.first + k), chart.y(base[k]));
  }
  c.closePath();
}

function findInStack(step, slot, value) {
  const layer =
    slot >= 0 && slot < step.load.length && stackOf(step).find(l => value >= l.base[slot] && value < l.top[slot]);
  if (!layer) return -1;
  let at = layer.base[slot];
  const there = alive(step, slot).filter(i => step.buffers[i].kind === layer.kind);
  there.sort((a, b) => step.buffers[a].first - step.buffers[b].first || a - b);
  return there.find(i => (at += step.buffers[i].bytes) > value) ?? -1;
}

function stepChart(which, label, most, height) {
  const step = steps[which];
  const chart = new StepChart({
    label: `${label}. Arrow keys left and right: operations; up and down: the tensors in memory; P: the peak; ` +
      "Enter: mark the tensor",
    most,
    height,
    step,
    draw: (chart, c) => {
      drawStack(chart, c);
      drawPhases(chart, c);
      drawLimits(chart, c);
      drawPeak(chart, c);
      nameLayers(chart, c);
    },
    find: (slot, value) => findInStack(step, slot, value),
    describe: (slot, buffer) => el("div", {}, buffer >= 0 && aboutBuffer(step, buffer), aboutSlot(step, slot))
  });
  chart.outline = (c, buffer) => outlineInStack(chart, c, buffer);
  chart.plot.dataset.chart = which;
  return chart.plot;
}

function limitItem(name, label, amount) {
  return isNumber(amount) &&
    el("li", {title: exactBytes(amount)}, el("span", {class: `rule ${name}`}), `${label} ${bytes(amount)}`);
}

function legend(hasBound = true) {
  const shown = KINDS.filter(([kind]) => Object.values(steps).some(s => s?.buffers.some(b => b.kind === kind)));
  return el("ul", {class: "legend", "aria-label": "Kinds of tensors"},
    shown.map(([kind, label]) => el("li", {}, swatch(kind), label)),
    limitItem("limit", "budget", data.plan.budget_bytes),
    hasBound && limitItem("bound", "proven bound", data.plan.peak_lower_bound_bytes));
}

function buffersTable(step) {
  const note = `Every buffer of the step, ${plural(step.buffers.length, "row")}. First and last are operations.`;
  return table(note,
    [
      {title: "Tensor", value: b => b.name, cell: b => nameButton(b.name)},
      {title: "Kind", value: b => kindLabel[b.kind] || b.kind}, numberColumn("Bytes", b => b.bytes),
      {title: "Type", value: b => b.type}, numberColumn("First", b => b.first), numberColumn("Last", b => b.end - 1),
      {title: "Path", value: b => b.path}, lineColumn()
    ],
    step.buffers, {sort: 2, most: 50});
}

panel("memory", body => {
  const most =
    1.04 * Math.max(...Object.values(steps).filter(Boolean).map(s => s.peak_bytes), data.plan.budget_bytes || 0);
  const figure = (which, title) => el("figure", {class: "chart", "aria-label": title},
    el("figcaption", {}, el("h3", {}, title),
      el("span", {}, `peak ${bytes(steps[which].peak_bytes)} at ${placeInStep(steps[which], steps[which].peak_slot)}`)),
    stepChart(which, `Memory over the step, ${title.toLowerCase()}`, most, 270),
    tableBehind(`${title}: every tensor as a table`, () => buffersTable(steps[which])));
  body.append(legend(), viewTools(), figure("kept", "Everything kept"), figure("planned", "As planned"));
});

// What lives at the peak

// Groups of items by the parts of their paths; a group of one group is that group.
function pathTree(items, pathOf, weightOf) {
  const root = {label: "", items: [], groups: new Map()};
  for (const item of items) {
    let at = root;
    for (const part of pathOf(item)) {
      if (!at.groups.has(part)) at.groups.set(part, {label: part, items: [], groups: new Map()});
      at = at.groups.get(part);
    }
    at.items.push(item);
  }
  const finish = g => {
    g.children = [...g.groups.values()].map(finish);
    if (g.children.length === 1 && !g.items.length && g !== root) {
      const [only] = g.children;
      return {...only, label: `${g.label}.${only.label}`};
    }
    g.weight = sum(g.items, weightOf) + sum(g.children, k => k.weight);
    g.count = g.items.length + sum(g.children, k => k.count);
    g.children.sort((a, b) => b.weight - a.weight);
    g.items.sort((a, b) => weightOf(b) - weightOf(a));
    return g;
  };
  return finish(root);
}

function peakTree(step) {
  const there = alive(step, step.peak_slot).map(i => step.buffers[i]), most = sum(there, b => b.bytes);
  const row = (label, weight, kind) => [el("span", {class: "label"}, label), meter(weight, most, kind),
    el("span", {class: "bytes", title: exactBytes(weight)}, bytes(weight))];
  const leaf =
    b =>
      el("li", {},
        el("div", {class: "row"},
          row(
            [
              swatch(b.kind), " ", nameButton(b.name),
              el("small",
                {}, [kindLabel[b.kind], (b.line > 0 || b.file) && `line ${lineText(b)}`].filter(Boolean).join(", "))
            ],
            b.bytes, b.kind)));
  const group = (g, open) => {
    const list = el("ul"),
          box = el("details", {open, ontoggle: () => build()},
            el("summary", {class: "row"}, row([g.label, el("small", {}, plural(g.count, "tensor"))], g.weight)), list);
    const build = () =>
      box.open && !list.childNodes.length && list.append(...g.children.map(k => group(k, false)), ...g.items.map(leaf));
    build();
    return el("li", {}, box);
  };
  const always = pathTree(there.filter(b => PERSISTENT.has(b.kind)),
    b => [kindLabel[b.kind], ...(b.path || "no path").split(".")], b => b.bytes);
  always.label = [...new Set(there.filter(b => PERSISTENT.has(b.kind)).map(b => kindLabel[b.kind]))].join(", ");
  const rest =
    pathTree(there.filter(b => !PERSISTENT.has(b.kind)), b => b.path ? b.path.split(".") : ["no path"], b => b.bytes);
  return el("ul", {class: "tree"}, always.count > 0 && group(always, false),
    rest.children.map(g => group(g, g.weight > most / 10 && rest.children.length < 8)), rest.items.map(leaf));
}

// Tensors which, if they were not in memory, would bring the peak below a target: step_shrink.c chooses them.
function shrinkTable(step, {target_bytes: target, moments, enough, tensors}) {
  const rows = tensors.map(([b, lives]) => ({...step.buffers[b], lives}));
  if (!rows.length) return nothing("Only weights and optimizer state are in memory there: nothing else can shrink.");
  const outcome =
    enough ? "Without these tensors none would, the first helps most:" : "These help most, but are not enough:";
  const needs = `${plural(moments, "operation")} ${moments === 1 ? "needs" : "need"} more than ${bytes(target)}.`;
  return table(`${needs} ${outcome}`,
    [
      {title: "Tensor", value: b => b.name, cell: b => [nameButton(b.name), el("small", {}, b.path)]},
      bytesColumn("Bytes", b => b.bytes), numberColumn("Operations", b => b.lives, n => `${n} of ${moments}`),
      lineColumn()
    ],
    rows);
}

function shrinkBox(step) {
  const box = el("div"), id = `lower-${step === steps.kept ? "kept" : "planned"}`;
  const options = step.shrink.map(({percent: p}) => el("option", {value: p, selected: p === 10}, `${p}%`));
  const choice = el("select", {id, onchange: () => show()}, options);
  function show() {
    const found = step.shrink.find(s => s.percent === Number(choice.value)), always = step.persistent_bytes;
    const never = () => nothing(`Weights, statistics and optimizer state alone are ${bytes(always)}, more than ` +
      `${bytes(found.target_bytes)}: nothing else can make up for that.`);
    box.replaceChildren(found.target_bytes >= always ? shrinkTable(step, found) : never());
  }
  show();
  const label = el("label", {for: id
  }, "for a peak that is lower by");
  const tools = el("div", {class: "bar-of-tools"}, label, choice);
  return el("div", {}, el("h3", {}, "What would have to shrink"), tools, box);
}

panel("peak", body => {
  const part = which => page => {
    const step = steps[which], o = step.operations[step.peak_slot];
    page.append(el("div", {class: "columns"},
      el("div", {}, el("h3", {}, `${bytes(step.peak_bytes)} at ${placeInStep(step, step.peak_slot)}`),
        el("p", {class: "note"},
          o ? `while ${o.name} runs (${o.op}, ${o.phase}${o.line > 0 || o.file ? `, line ${lineText(o)}` : ""})` : ""),
        peakTree(step)),
      shrinkBox(step)));
  };
  body.append(tabs("Peak of the step", [["As planned", part("planned")], ["Everything kept", part("kept")]]));
});
