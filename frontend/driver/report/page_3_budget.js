// SPDX-License-Identifier: GPL-3.0-or-later
// Budget against extra time: scrimp at several budgets, the other solvers at this one, what is proven, this plan.

const reached = row => row && (row.status === "feasible" || row.status === "optimal" || row.status === "limit") &&
  isNumber(row.overhead_percent) && isNumber(row.peak_bytes);
const spentBytes = row => isNumber(row.arena_bytes) ? row.arena_bytes : row.peak_bytes;

const SHAPES = {
  circle: (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`,
  diamond: (x, y) => `M${x} ${y - 5}l5 5l-5 5l-5 -5z`,
  star: (x, y) => "M" +
    Array
      .from({length: 10},
        (_, k) => {
          const r = k % 2 ? 4.4 : 10.5, a = Math.PI * (k / 5 - 0.5);
          return `${(x + r * Math.cos(a)).toFixed(1)} ${(y + r * Math.sin(a)).toFixed(1)}`;
        })
      .join("L") +
    "z"
};

function pointText(row) {
  const again = plural(row.recomputed_ops, "recomputation"), size = bytes(spentBytes(row));
  return `${row.solver}: ${size} for ${moreTime(row.overhead_percent)}, ${again}, budget ${bytes(row.budget_bytes)}`;
}

// A picture with axes: from bytes and percent to pixels.  Percents are drawn on a logarithmic scale.
function budgetScale(host, frontier, others) {
  const {plan} = data, all = [...frontier, ...others, plan].filter(reached), memory = all.map(spentBytes);
  const width = Math.max(320, host.clientWidth), height = width < 620 ? 330 : 430;
  const left = 56, right = width - 20, top = 26, bottom = height - 46;
  const bound = plan.peak_lower_bound_bytes;
  const low = Math.min(bound ?? Infinity, ...memory), high = Math.max(plan.keep_all_peak_bytes, ...memory);
  const pad = (high - low) * 0.05 || 1, most = Math.max(5, ...all.map(r => r.overhead_percent)) * 1.08;
  const x = v => left + (v - low + pad) / (high - low + 2 * pad) * (right - left);
  const y = v => bottom - Math.log1p(Math.max(0, v)) / Math.log1p(most) * (bottom - top);
  return {width, height, left, right, top, bottom, from: low - pad, to: high + pad, most, x, y};
}

function budgetAxes(s) {
  const percents = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].filter(t => t <= s.most);
  const rows = percents.filter(t => !t || s.y(0) - s.y(t) >= 16)
                 .map(t => [svg("path", {class: "grid", d: `M${s.left} ${s.y(t)}H${s.right}`}),
                        axisText({x: s.left - 8, y: s.y(t) + 4, "text-anchor": "end"}, `${t}%`)]);
  const sizes = ticks(s.to, s.width < 620 ? 5 : 8, true).filter(t => t >= s.from);
  return [
    rows, sizes.map(t => axisText({x: s.x(t), y: s.bottom + 18, "text-anchor": "middle"}, tickBytes(t))),
    axisText({x: (s.left + s.right) / 2, y: s.height - 6, "text-anchor": "middle"}, "memory of the whole step"),
    axisText({transform: `translate(13 ${(s.bottom + s.top) / 2}) rotate(-90)`, "text-anchor": "middle"},
      "extra time (logarithmic)")
  ];
}

// What is proven: left of the smallest peak, and below the least time within a budget, is nothing.
function provenArea(s, rows) {
  const bound = data.plan.peak_lower_bound_bytes;
  const proven = rows.filter(r => isNumber(r.overhead_lower_bound_percent) && isNumber(r.budget_bytes));
  let d = `M${s.left} ${s.top}V${s.bottom}H${s.right}V${s.y(0)}`;
  for (const r of proven.sort((a, b) => b.budget_bytes - a.budget_bytes))
    d += `H${s.x(Math.min(r.budget_bytes, s.to))}V${s.y(r.overhead_lower_bound_percent)}`;
  if (isNumber(bound)) d += `H${s.x(bound)}V${s.top}`;
  return svg("path", {d: `${d}z`, fill: "var(--bound)", opacity: 0.13});
}

function upright(s, at, from, ink, dash) {
  const stroke = {stroke: `var(--${ink})`, "stroke-width": 1.6, "stroke-dasharray": dash};
  return isNumber(at) && svg("path", {d: `M${s.x(at)} ${from}V${s.bottom}`, ...stroke});
}

function budgetLimits(s) {
  const {budget_bytes: budget, peak_lower_bound_bytes: bound} = data.plan;
  const isRight = isNumber(budget) && s.x(budget) > s.right - 130;
  const at = isNumber(budget) && {x: s.x(budget) + (isRight ? -6 : 6), "text-anchor": isRight ? "end" : "start"};
  return [
    upright(s, bound, s.top, "bound", "6 4"), upright(s, budget, s.top - 20, "limit", false),
    at && svg("text", {...at, y: s.top - 9, style: {fill: "var(--limit)"}}, `budget ${bytes(budget)}`)
  ];
}

// Scrimp's plans from left to right, as a stair: each is a plan at every larger budget, too.
function frontierLine(s, rows) {
  const stairs = rows.sort((a, b) => spentBytes(a) - spentBytes(b)).map((r, i) => {
    const [x, y] = [s.x(spentBytes(r)), s.y(r.overhead_percent)];
    return i ? `H${x}V${y}` : `M${x} ${y}`;
  });
  return svg("path", {d: stairs.join(""), fill: "none", stroke: "var(--accent)", "stroke-width": 2});
}

// A plan as a point that is pointed at or focused.
function budgetPoint(s, row, shape, ink, letter) {
  const x = s.x(spentBytes(row)), y = s.y(row.overhead_percent), text = pointText(row);
  const node = svg("g", {tabindex: "0", role: "img", "aria-label": text, class: "point", "data-key": letter || false},
    svg("title", {}, text), svg("circle", {class: "ring", cx: x, cy: y, r: 10}),
    svg("path", {d: SHAPES[shape](x, y), fill: `var(--${ink})`, stroke: "var(--panel)", "stroke-width": 1.2}));
  return {x, y, node, letter};
}

const overlaps = (a, b) => Math.abs(a.x - b.x) < a.half + b.half && Math.abs(a.y - b.y) < a.half + b.half;

// The nearest place at a point that neither something else nor an upright line has taken; null: none is free.
function freePlace(s, point, taken, lines) {
  const half = 6.5,
        isFree = at => at.x > s.left + half && at.x < s.right - half && at.y > s.top + half && at.y < s.bottom - half &&
    !taken.some(t => overlaps(at, t)) && !lines.some(x => Math.abs(at.x - x) < half + 1);
  for (let far = 13; far < 100; far *= 1.25)
    for (let k = 0; k < 24; k++) {
      const angle = Math.PI * (k / 12 - 0.25);
      const at = {x: point.x + far * Math.cos(angle), y: point.y + far * Math.sin(angle), half};
      if (isFree(at)) return at;
    }
  return null;
}

// The letters of points, each joined to its point: points of many methods are close together.
function pointLetters(s, points, lines) {
  const taken = points.map(p => ({x: p.x, y: p.y, half: 6}));
  return points.filter(p => p.letter).map(p => {
    const at = freePlace(s, p, taken, lines);
    if (!at) return null;
    taken.push(at);
    return [
      svg("path", {d: `M${p.x} ${p.y}L${at.x} ${at.y}`, stroke: "var(--muted)", "stroke-width": 0.8}),
      svg("circle", {cx: at.x, cy: at.y, r: 6.5, fill: "var(--panel)"}),
      svg("text", {class: "letter", x: at.x, y: at.y + 4, "text-anchor": "middle"}, p.letter)
    ];
  });
}

function budgetChart(host, frontier, methods) {
  const {plan} = data, s = budgetScale(host, frontier, methods), front = frontier.filter(reached);
  // This plan is one of scrimp's, too, where no other solver was asked for.
  const isOurs = reached(plan) && frontier.some(r => r.solver === plan.solver);
  const points = [
    ...front.map(r => budgetPoint(s, r, "circle", "accent")),
    ...methods.map((r, i) => budgetPoint(s, r, "diamond", "gradient", LETTERS[i])),
    ...(reached(plan) ? [budgetPoint(s, plan, "star", "ink")] : [])
  ];
  const lines = [plan.budget_bytes, plan.peak_lower_bound_bytes].filter(isNumber).map(s.x);
  host.replaceChildren(svg("svg", {
    width: s.width,
    height: s.height,
    viewBox: `0 0 ${s.width} ${s.height}`,
    role: "group",
    "aria-label": "Memory against extra time; the table below has the same points"
  },
    budgetAxes(s), provenArea(s, [...frontier, plan]), budgetLimits(s),
    frontierLine(s, isOurs ? [...front, plan] : front), pointLetters(s, points, lines), points.map(p => p.node)));
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

// What the letters stand for, and where that is: pointing at a row marks its point, and the other way round.
function methodsList(methods) {
  const {plan} = data;
  const row = (key, name, r, kind) => el("tr", {"data-key": key, class: kind}, el("td", {class: "key"}, key),
    el("td", {}, name), el("td", {class: "num"}, percent(r.overhead_percent)),
    el("td", {class: "num", title: exactBytes(spentBytes(r))}, bytes(spentBytes(r))));
  return el("table", {class: "methods"}, el("caption", {}, "At this budget"),
    el("thead", {},
      el("tr", {},
        ["", "Method", "Extra time", "Memory"].map(
          (title, i) => el(title ? "th" : "td", {scope: title ? "col" : false, class: i > 1 ? "num" : false}, title)))),
    el("tbody", {}, reached(plan) && row("★", `this plan (${plan.solver})`, plan, "this-plan"),
      methods.map((r, i) => row(LETTERS[i] || "", r.solver, r, false))));
}

// The rows and points with the letter of what is pointed at, or focused, are lit.
function lightTogether(box) {
  const light = e => {
    const key = e.type === "pointerleave" ? null : e.target.closest?.("[data-key]")?.dataset.key;
    box.querySelectorAll("[data-key]").forEach(node => node.classList.toggle("lit", node.dataset.key === key));
  };
  ["pointerover", "pointerleave", "focusin", "focusout"].forEach(type => box.addEventListener(type, light));
}

function budgetLegend() {
  const shapes = [
    ["circle", "accent", "scrimp at other budgets"], ["diamond", "gradient", "another method at this budget"],
    ["star", "ink", "this plan"]
  ];
  const symbol = (shape, ink) => svg("svg", {width: 22, height: 22, "aria-hidden": "true"},
    svg("path", {d: SHAPES[shape](11, 11), fill: `var(--${ink})`}));
  return el("ul", {class: "legend"}, shapes.map(([shape, ink, label]) => el("li", {}, symbol(shape, ink), label)),
    isNumber(data.plan.budget_bytes) && el("li", {}, el("span", {class: "rule limit"}), "budget"),
    el("li", {}, el("span", {class: "rule bound"}), "nothing is left of it, or in the shaded area: proven"));
}

function plansTable(frontier, others) {
  const size = key =>
    ({num: true, value: r => r[key], cell: r => el("span", {title: exactBytes(r[key])}, bytes(r[key]))});
  const part = key => ({num: true, value: r => r[key], cell: r => percent(r[key])});
  const rows = [
    {...data.plan, what: "this plan"}, ...frontier.map(r => ({...r, what: "other budget"})),
    ...others.map(r => ({...r, what: "other solver"}))
  ];
  return table("Plans",
    [
      {title: "Plan", value: r => r.what}, {title: "Solver", value: r => r.solver},
      {title: "Status", value: r => r.status}, {title: "Budget", ...size("budget_bytes")},
      {title: "Peak", ...size("peak_bytes")}, {title: "Arena", ...size("arena_bytes")},
      {title: "Extra time", ...part("overhead_percent")}, {title: "At least", ...part("overhead_lower_bound_percent")},
      {title: "Runs again", num: true, value: r => r.recomputed_ops, cell: r => count(r.recomputed_ops)}
    ],
    rows, {rowClass: r => r.what === "this plan" ? "this" : ""});
}

panel("budget", body => {
  const frontier = data.frontier || [], others = (data.solvers || []).filter(r => r.solver !== data.plan.solver);
  const methods = others.filter(reached).sort((a, b) => b.overhead_percent - a.overhead_percent);
  const host = el("div", {class: "chart"});
  const both = el("div", {class: methods.length ? "beside" : false}, host, methods.length > 0 && methodsList(methods));
  lightTogether(both);
  body.append(both, budgetLegend());
  if (!frontier.length) body.append(nothing("Other budgets were not planned for this report."));
  if (!others.length) body.append(nothing("Other solvers were not run for this report."));
  onResize(host, () => budgetChart(host, frontier, methods));
  body.append(
    tableBehind("All points as a table, with the solvers that found no plan", () => plansTable(frontier, others)));
});
