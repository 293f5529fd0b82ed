// SPDX-License-Identifier: GPL-3.0-or-later
// The arena: offsets upwards, the step to the right, a rectangle for each buffer.

function drawArena(chart, c) {
  const {step} = chart;
  step.buffers.forEach(b => {
    if (!isNumber(b.offset) || b.end <= view.from || b.first >= view.to) return;
    const x = chart.x(b.first), w = chart.x(b.end) - x, y = chart.y(b.offset + b.bytes), h = chart.y(b.offset) - y;
    c.fillStyle = kindFill(c, b.kind);
    c.fillRect(x, y, Math.max(w, 0.6), Math.max(h, 0.6));
    if (w > 2.5 && h > (PERSISTENT.has(b.kind) ? 5 : 2.5)) {
      c.strokeStyle = colour("edge");
      c.lineWidth = 0.7;
      c.strokeRect(x, y, w, h);
    }
    if (h > 3 && isNumber(b.over)) drawTakeOver(chart, c, b.first, [], y, h);
    if (h > 3) b.holds?.forEach(view => drawTakeOver(chart, c, view.first, [2, 2], y, h));
  });
  step.buffers.forEach(b => isNumber(b.offset) && nameBuffer(chart, c, b));
  drawPhases(chart, c);
  chart.line(c, data.plan.budget_bytes, "limit", "budget", []);
}

// Where another tensor takes over bytes: solid where it is written over them, dashed where it is a view.
function drawTakeOver(chart, c, first, dash, y, h) {
  const x = chart.x(first);
  c.strokeStyle = colour("on-kind");
  c.lineWidth = 1.2;
  c.setLineDash(dash);
  c.beginPath();
  c.moveTo(x, y + 1);
  c.lineTo(x, y + h - 1);
  c.stroke();
  c.setLineDash([]);
}

function nameBuffer(chart, c, b) {
  const from = Math.max(MARGIN.left, chart.x(b.first)), to = Math.min(MARGIN.left + chart.inner, chart.x(b.end));
  const h = chart.y(b.offset) - chart.y(b.offset + b.bytes);
  if (h < 13 || to - from < 34) return;
  const held = b.holds?.filter(k => k.first > b.first).map(k => chart.x(k.first)) || [];
  const room = Math.min(to, ...held.filter(x => x > from)) - from - 8;
  let text = b.name;
  while (text.length > 3 && c.measureText(text).width > room) text = `${text.slice(0, -2)}…`;
  if (text.length <= 3) return;
  const y = chart.y(b.offset + b.bytes / 2);
  if (PATTERN[b.kind]) {
    c.fillStyle = colour(b.kind);
    c.fillRect(from + 2, y - 7, c.measureText(text).width + 4, 14);
  }
  c.textAlign = "left";
  c.textBaseline = "middle";
  c.fillStyle = colour("on-kind");
  c.fillText(text, from + 4, y + 0.5);
}

function holdingAt(b, slot) {
  const now = [...(b.holds || [])].sort((a, k) => a.first - k.first).filter(h => h.first <= slot).pop();
  return now ? `${b.name}, and ${now.name}, a view` : b.name;
}

function arenaChart(step) {
  const most = Math.max(step.arena_bytes || 0, data.plan.budget_bytes || 0) * 1.03;
  const covers = (b, offset) => b.offset <= offset && offset < b.offset + b.bytes;
  const about =
    (slot, b) => [aboutBuffer(step, b), el("p", {class: "at"}, `holds now: ${holdingAt(step.buffers[b], slot)}`)];
  const label = "Arena, offset over the step. Arrow keys left and right: operations; up and down: the buffers; " +
    "P: the peak; Enter: mark the buffer";
  const find = (slot, offset) => alive(step, slot).find(i => covers(step.buffers[i], offset)) ?? -1;
  const describe = (slot, b) => el("div", {}, b >= 0 && about(slot, b), aboutSlot(step, slot));
  const chart = new StepChart({label, most, height: 440, step, draw: drawArena, find, describe});
  chart.outline = (c, index) => {
    const b = step.buffers[index], left = chart.x(b.first), top = chart.y(b.offset + b.bytes);
    c.beginPath();
    if (isNumber(b.offset)) c.rect(left, top, chart.x(b.end) - left, chart.y(b.offset) - top);
  };
  chart.plot.dataset.chart = "arena";
  return chart.plot;
}

function arenaWords({arena_bytes: arena, arena_lower_bound_bytes: bound}) {
  if (arena === bound) return "equal to what is alive at the peak: no placement of this schedule is smaller";
  return `${bytes(bound)} are alive at the peak; ${bytes(arena - bound)} are lost between buffers`;
}

// What lies in the buffer of another tensor.
function heldBehind(step) {
  const over = b =>
    isNumber(b.over) ? [{name: b.name, first: b.first, how: "in place", buffer: step.buffers[b.over]}] : [];
  const views = b => (b.holds || []).map(h => ({...h, how: "view", buffer: b}));
  const held = step.buffers.flatMap(b => [...over(b), ...views(b)]);
  const make = () => table("What lies in the buffer of another tensor",
    [
      {title: "Tensor", value: h => h.name, cell: h => nameButton(h.name)}, {title: "How", value: h => h.how},
      {title: "In the buffer of", value: h => h.buffer.name, cell: h => nameButton(h.buffer.name)},
      numberColumn("From operation", h => h.first), numberColumn("Bytes", h => h.buffer.bytes)
    ],
    held);
  return held.length > 0 && tableBehind(`Tensors written in place and views, ${count(held.length)}, as a table`, make);
}

panel("arena", body => {
  const step = steps.planned;
  if (!step.buffers.some(b => isNumber(b.offset) && !PERSISTENT.has(b.kind)))
    return body.append(
      nothing("This plan has no arena: the solver's schedule is not placed. Try another solver, or a larger budget."));
  const caption = el("figcaption", {}, el("h3", {}, `${bytes(data.plan.arena_bytes)} are allocated`),
    el("span", {}, arenaWords(data.plan)));
  const figure = el("figure", {class: "chart", "aria-label": "Arena"}, caption, arenaChart(step));
  body.append(...[legend(false), viewTools(), figure, heldBehind(step)].filter(Boolean));
});
