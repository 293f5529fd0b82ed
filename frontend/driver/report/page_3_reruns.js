// SPDX-License-Identifier: GPL-3.0-or-later
// A row for each recomputation: what it frees, what it costs, what would happen without it.

const stepCost = sum(data.planned.operations, o => o.cost || 0);
const stepSeconds = sum(data.planned.operations, o => o.seconds || 0);

// The life of what is freed, over the whole step, with the peak: a small picture, and words for who does not see it.
function freedPicture(r) {
  const n = data.planned.load.length, x = slot => 100 * slot / n, peak = x(data.planned.peak_slot + 0.5);
  return svg("svg", {
    width: 100,
    height: 14,
    role: "img",
    "aria-label": `free from operation ${r.from} to ${r.to - 1}, ${r.spans_peak ? "over" : "not over"} the peak`
  },
    svg("path", {d: "M0 7H100", stroke: "var(--line)", "stroke-width": 1}),
    svg("rect",
      {x: x(r.from), y: 3, width: Math.max(1.5, x(r.to) - x(r.from)), height: 8, rx: 1.5, fill: "var(--recomputed)"}),
    svg("path", {d: `M${peak} 0V14`, stroke: "var(--ink)", "stroke-width": 1.6}));
}

// As `scrimp plan --why` puts it: the peak without this run, against the budget if there is one.
function peakWithout(r) {
  const {budget_bytes: budget} = data.plan, peak = r.without_peak_bytes;
  if (!isNumber(peak)) return "–";
  if (peak <= data.planned.peak_bytes) return "the same peak";
  if (!isNumber(budget)) return `peak ${bytes(peak)}, ${bytes(peak - data.planned.peak_bytes)} above this plan's`;
  return `peak ${bytes(peak)}, ${peak > budget ? `${bytes(peak - budget)} over the budget` : "within the budget"}`;
}

function withoutIt(r) {
  const names = r.instead || [], more = names.length - 3;
  const listed = names.slice(0, 3).map((n, i) => [i ? ", " : "", nameButton(n)]);
  return [
    el("span", {title: exactBytes(r.without_peak_bytes)}, peakWithout(r)),
    names.length > 0 && el("small", {}, "would live on: ", listed, more > 0 && ` and ${more} more`)
  ];
}

function rerunsTable(rows, note) {
  const operation = r => data.planned.operations[r.slot], measured = rows.some(r => isNumber(r.seconds));
  const place = r => [operation(r).op, operation(r).path].filter(Boolean).join(", ");
  const fromTo = r => `${count(r.from)} – ${count(r.to - 1)}`;
  const where = r => [freedPicture(r), el("small", {}, r.spans_peak ? "over the peak" : "beside the peak")];
  const timed = n => [seconds(n), el("small", {}, share(n, stepSeconds))];
  return table(note,
    [
      {
        title: "Runs again",
        value: r => operation(r).name,
        cell: r => [nameButton(operation(r).name), el("small", {}, place(r))]
      },
      lineColumn(operation), bytesColumn("Frees", r => r.bytes),
      {title: "From – to", num: true, value: r => r.to - r.from, cell: fromTo},
      {title: "Over the step", value: r => r.from, cell: where},
      numberColumn("Costs", r => r.cost, n => cost(n, stepCost)),
      measured && numberColumn("Measured", r => r.seconds, timed),
      {title: "Without it", kind: "wide", value: r => r.without_peak_bytes, cell: withoutIt}
    ].filter(Boolean),
    rows, {sort: 2});
}

panel("reruns", body => {
  const rows = data.recomputations || [], {planned} = data;
  if (!rows.length)
    return body.append(
      nothing("Nothing runs again: the step fits without recomputation. A smaller budget asks for some: ",
        el("code", {}, "--budget 40%"), " or ", el("code", {}, "--budget min"), "."));
  const total = sum(rows, r => r.cost || 0), over = rows.filter(r => r.spans_peak).length, holder = el("div");
  const search =
    el("input", {type: "search", id: "reruns-filter", placeholder: "conv1, h.3, 27 …", oninput: () => show()});
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = ({name, path, op, line}) => `${name} ${path} ${op} ${line}`.toLowerCase();
    const found = rows.filter(r => words.every(w => text(planned.operations[r.slot]).includes(w)));
    const part = found.length < rows.length ? `${count(found.length)} of ` : "";
    holder.replaceChildren(rerunsTable(found,
      `${part}${plural(rows.length, "recomputation")}; all of them take ${
        cost(total, stepCost)} of the planned step by ` +
        `the cost model “${data.plan.cost}”. ${
          count(over)} of them free memory at the peak, the others at other moments near the budget.`));
  };
  show();
  body.append(el("div", {class: "bar-of-tools"}, el("label", {for: "reruns-filter"
  }, "Only with"), search), holder);
});
