// SPDX-License-Identifier: GPL-3.0-or-later
// The model's source with each line's share of peak bytes, time and recomputation.

// A line without, and the comment that it ends with.
function splitComment(line) {
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    if (line[i] === '"') quoted = !quoted;
    if (line[i] === "#" && !quoted) return [line.slice(0, i), line.slice(i)];
  }
  return [line, ""];
}

panel("source", body => {
  const {source} = data;
  if (!source?.text)
    return body.append(
      nothing("The source is not part of this report: the step comes from a graph, or the file could not be read."));
  const of = new Map(source.lines.map(l => [l.line, l])), measured = source.lines.some(l => isNumber(l.seconds));
  const placed = sum(source.lines, l => l.line > 0 ? l.peak_bytes || 0 : 0);
  const columns = [
    ["Peak bytes", "peak_bytes", exactBytes, data.planned.peak_bytes],
    ["Time", "cost", c => cost(c, stepCost), stepCost], ["Again", "rerun_cost", c => cost(c, stepCost), stepCost],
    measured && ["Measured", "seconds", seconds, stepSeconds]
  ].filter(Boolean).map(([title, key, text,
    whole]) => ({title, key, text, whole, most: Math.max(...source.lines.map(l => l[key] || 0))}));
  const cell = (l, c) => el("td", {class: c.key === "seconds" ? "num timed" : "num"},
    l?.[c.key] > 0 &&
      el("span", {class: "share", title: `${c.title}: ${c.text(l[c.key])}`}, meter(l[c.key], c.most),
        el("span", {}, share(l[c.key], c.whole))));
  const rows = source.text.replace(/\n$/, "").split("\n").map((text, i) => {
    const [code, comment] = splitComment(text), l = of.get(i + 1);
    return el("tr", {}, columns.map(c => cell(l, c)), el("td", {class: "num at"}, i + 1),
      el("td", {class: "code"}, code, comment && el("span", {class: "comment"}, comment)));
  });
  body.append(
    el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Source with shares"},
      el("table", {class: "source"}, el("caption", {class: "hidden"}, "Source with shares"),
        el("thead", {},
          el("tr", {},
            columns.map(c => el("th", {scope: "col", class: c.key === "seconds" ? "num timed" : "num"}, c.title)),
            el("th", {scope: "col", class: "num"}, "Line"), el("th", {scope: "col"}, source.name))),
        el("tbody", {}, rows))),
    el("p", {class: "note"},
      `Shares of the ${
        bytes(
          data.planned
            .peak_bytes)} at the peak, and of the time of the planned step. What comes from no line is not counted: `,
      `${bytes(data.planned.peak_bytes - placed)} at the peak (optimizer state and inputs, for instance).`));
});
