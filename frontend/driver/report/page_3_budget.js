// SPDX-License-Identifier: GPL-3.0-or-later
// Budget against extra time: scrimp at several budgets, the other solvers at this one, what is proven, this plan.

const reached = row => row && (row.status === "feasible" || row.status === "optimal" || row.status === "limit") &&
  isNumber(row.overhead_percent) && isNumber(row.peak_bytes);
const spentBytes = row => isNumber(row.arena_bytes) ? row.arena_bytes : row.peak_bytes;

// Labels at the right of points, pushed apart; every label has a line to its point.
function spreadLabels(marks, gap, top, bottom) {
  const order = [...marks].sort((a, b) => a.y - b.y);
  order.forEach((m, i) => {
    m.labelY = Math.max(m.y, i ? order[i - 1].labelY + gap : top);
  });
  for (let i = order.length - 1, low = bottom; i >= 0; i--, low -= gap)
    order[i].labelY = Math.min(order[i].labelY, low);
}

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
  return `${row.solver}: ${bytes(spentBytes(row))} for ${percent(row.overhead_percent)} more time, ${
           plural(row.recomputed_ops, "recomputation")}` +
    `, budget ${bytes(row.budget_bytes)}`;
}

function budgetChart(host, frontier, others) {
  const {plan} = data, all = [...frontier, ...others, plan].filter(reached);
  const width = Math.max(320, host.clientWidth), narrow = width < 620, height = narrow ? 330 : 430;
  const room = {left: 56, right: narrow ? 20 : 214, top: 26, bottom: 46}, right = width - room.right,
        bottom = height - room.bottom;
  const bound = plan.peak_lower_bound_bytes, keep = plan.keep_all_peak_bytes;
  const low = Math.min(bound ?? Infinity, ...all.map(spentBytes)), high = Math.max(keep, ...all.map(spentBytes));
  const pad = (high - low) * 0.05 || 1,
        x = v => room.left + (v - low + pad) / (high - low + 2 * pad) * (right - room.left);
  const most = Math.max(5, ...all.map(r => r.overhead_percent)) * 1.08,
        y = v => bottom - Math.log1p(Math.max(0, v)) / Math.log1p(most) * (bottom - room.top);
  const g = svg("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "group",
    "aria-label": "Memory against extra time; the table below has the same points"
  });
  for (const t of [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].filter(t => t <= most)) {
    if (t && y(0) - y(t) < 16) continue;
    g.append(svg("path", {class: "grid", d: `M${room.left} ${y(t)}H${right}`}),
      svg("text", {class: "axis", x: room.left - 8, y: y(t) + 4, "text-anchor": "end"}, `${t}%`));
  }
  for (const t of ticks(high + pad, narrow ? 5 : 8, true).filter(t => t >= low - pad))
    g.append(svg("text", {class: "axis", x: x(t), y: bottom + 18, "text-anchor": "middle"}, tickBytes(t)));
  g.append(svg("text", {class: "axis", x: (room.left + right) / 2, y: height - 6, "text-anchor": "middle"},
             "memory of the whole step"),
    svg("text",
      {class: "axis", transform: `translate(13 ${(bottom + room.top) / 2}) rotate(-90)`, "text-anchor": "middle"},
      "extra time (logarithmic)"));
  // What is proven: left of the smallest peak, and below the least time within a budget, is nothing.
  const proven = [...frontier, plan]
                   .filter(r => isNumber(r.overhead_lower_bound_percent) && isNumber(r.budget_bytes))
                   .sort((a, b) => a.budget_bytes - b.budget_bytes);
  let d = `M${room.left} ${room.top}V${bottom}H${right}V${y(0)}`;
  for (const r of [...proven].reverse())
    d += `H${x(Math.min(r.budget_bytes, high + pad))}V${y(r.overhead_lower_bound_percent)}`;
  if (isNumber(bound)) d += `H${x(bound)}V${room.top}`;
  g.append(svg("path", {d: `${d}z`, fill: "var(--bound)", opacity: 0.13}));
  const upright = (at, from, ink, dash) => g.append(svg("path",
    {d: `M${x(at)} ${from}V${bottom}`, stroke: `var(--${ink})`, "stroke-width": 1.6, "stroke-dasharray": dash}));
  if (isNumber(bound)) upright(bound, room.top, "bound", "6 4");
  if (isNumber(plan.budget_bytes)) {
    upright(plan.budget_bytes, room.top - 20, "limit", false);
    g.append(svg("text", {x: x(plan.budget_bytes) + 6, y: room.top - 9, style: {fill: "var(--limit)"}},
      `budget ${bytes(plan.budget_bytes)}`));
  }
  const front = frontier.filter(reached).sort((a, b) => spentBytes(a) - spentBytes(b));
  // This plan is one of scrimp's, too, where no other solver was asked for.
  const ours = row => frontier.some(r => r.solver === row.solver),
        line = [...front, ...[plan].filter(r => reached(r) && ours(r))];
  const stairs = line.sort((a, b) => spentBytes(a) - spentBytes(b))
                   .map((r, i) => i ? `H${x(spentBytes(r))}V${y(r.overhead_percent)}` :
                                      `M${x(spentBytes(r))} ${y(r.overhead_percent)}`);
  g.append(svg("path", {d: stairs.join(""), fill: "none", stroke: "var(--accent)", "stroke-width": 2}));
  const mark = (row, shape, fill, label) => {
    const at = {row, x: x(spentBytes(row)), y: y(row.overhead_percent), label}, text = pointText(row);
    at.node = svg("g", {tabindex: "0", role: "img", "aria-label": text, "data-solver": label || "frontier"},
      svg("title", {}, text), svg("circle", {class: "ring", cx: at.x, cy: at.y, r: 10}),
      svg("path", {d: SHAPES[shape](at.x, at.y), fill, stroke: "var(--panel)", "stroke-width": 1.2}));
    return at;
  };
  const fronts = front.map(r => mark(r, "circle", "var(--accent)"));
  const named = others.filter(reached).map(r => mark(r, "diamond", "var(--gradient)", r.solver));
  const here = reached(plan) ? [mark(plan, "star", "var(--ink)", "this plan")] : [];
  const labelled = [...named, ...here];
  spreadLabels(labelled, 16, room.top + 26, bottom - 4);
  if (!narrow)
    labelled.forEach(
      m => g.append(
        svg("path",
          {d: `M${m.x + 8} ${m.y}L${right + 6} ${m.labelY}H${right + 14}`, fill: "none", stroke: "var(--line)"}),
        svg("text", {x: right + 18, y: m.labelY + 4, style: m.label === "this plan" ? {"font-weight": 700} : {}},
          `${m.label}, ${percent(m.row.overhead_percent)}`)));
  g.append(...[...fronts, ...named, ...here].map(m => m.node));
  host.replaceChildren(g);
}

panel("budget", body => {
  const frontier = data.frontier || [], others = (data.solvers || []).filter(r => r.solver !== data.plan.solver),
        host = el("div", {class: "chart"});
  body.append(host,
    el("ul", {class: "legend"},
      [
        ["circle", "accent", "scrimp at other budgets"], ["diamond", "gradient", "another method at this budget"],
        ["star", "ink", "this plan"]
      ].map(([shape, ink, label]) => el("li", {},
              svg("svg", {width: 22, height: 22, "aria-hidden": "true"},
                svg("path", {d: SHAPES[shape](11, 11), fill: `var(--${ink})`})),
              label)),
      isNumber(data.plan.budget_bytes) && el("li", {}, el("span", {class: "rule limit"}), "budget"),
      el("li", {}, el("span", {class: "rule bound"}), "nothing is left of it, or in the shaded area: proven")));
  if (!frontier.length) body.append(nothing("Other budgets were not planned for this report."));
  if (!others.length) body.append(nothing("Other solvers were not run for this report."));
  onResize(host, () => budgetChart(host, frontier, others));
  const rows = [
    {...data.plan, what: "this plan"}, ...frontier.map(r => ({...r, what: "other budget"})),
    ...others.map(r => ({...r, what: "other solver"}))
  ];
  body.append(tableBehind("All points as a table, with the solvers that found no plan", () => table("Plans", [
    {title: "Plan", value: r => r.what}, {title: "Solver", value: r => r.solver}, {title: "Status", value: r => r.status},
    {title: "Budget", num: true, value: r => r.budget_bytes, cell: r => bytes(r.budget_bytes)},
    {title: "Peak", num: true, value: r => r.peak_bytes, cell: r => bytes(r.peak_bytes)},
    {title: "Arena", num: true, value: r => r.arena_bytes, cell: r => bytes(r.arena_bytes)},
    {title: "Extra time", num: true, value: r => r.overhead_percent, cell: r => percent(r.overhead_percent)},
    {title: "At least", num: true, value: r => r.overhead_lower_bound_percent, cell: r => percent(r.overhead_lower_bound_percent)},
    {title: "Runs again", num: true, value: r => r.recomputed_ops, cell: r => count(r.recomputed_ops)}], rows, {rowClass: r => r.what === "this plan" ? "this" : ""})));
});
