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

function sourceColumns(lines) {
  const inSteps = c => cost(c, stepCost), columns = [
    {title: "Peak bytes", key: "peak_bytes", text: exactBytes, whole: data.planned.peak_bytes},
    {title: "Time", key: "cost", text: inSteps, whole: stepCost},
    {title: "Again", key: "rerun_cost", text: inSteps, whole: stepCost},
    {title: "Measured", key: "seconds", text: seconds, whole: stepSeconds, kind: "num timed"}
  ];
  const known = columns.filter(c => c.key !== "seconds" || lines.some(l => isNumber(l.seconds)));
  return known.map(c => ({kind: "num", ...c, most: Math.max(...lines.map(l => l[c.key] || 0))}));
}

// A line's part of a whole.
function shareCell(line, c) {
  const part = line?.[c.key];
  return el("td", {class: c.kind},
    part > 0 &&
      el("span", {class: "share", title: `${c.title}: ${c.text(part)}`}, meter(part, c.most),
        el("span", {}, share(part, c.whole))));
}

function sourceTable({name, text, lines}) {
  const of = new Map(lines.map(l => [l.line, l])), columns = sourceColumns(lines);
  const head = (title, kind) => el("th", {scope: "col", class: kind || false}, title);
  const rows = text.replace(/\n$/, "").split("\n").map((line, i) => {
    const [code, comment] = splitComment(line), shares = columns.map(c => shareCell(of.get(i + 1), c));
    const shown = el("td", {class: "code"}, code, comment && el("span", {class: "comment"}, comment));
    return el("tr", {}, shares, el("td", {class: "num at"}, i + 1), shown);
  });
  const heads = el("tr", {}, columns.map(c => head(c.title, c.kind)), head("Line", "num"), head(name));
  const caption = el("caption", {class: "hidden"}, "Source with shares");
  return el("table", {class: "source"}, caption, el("thead", {}, heads), el("tbody", {}, rows));
}

panel("source", body => {
  const {source, planned} = data;
  if (!source?.text)
    return body.append(
      nothing("The source is not part of this report: the step comes from a graph, or the file could not be read."));
  const placed = sum(source.lines, l => l.line > 0 ? l.peak_bytes || 0 : 0);
  const scroll = {class: "scroll", tabindex: "0", role: "region", "aria-label": "Source with shares"};
  body.append(el("div", scroll, sourceTable(source)),
    el("p", {class: "note"},
      `Shares of the ${bytes(planned.peak_bytes)} at the peak, and of the time of the planned step. `,
      `What comes from no line is not counted: ${bytes(planned.peak_bytes - placed)} at the peak `,
      "(optimizer state, inputs and files that are imported, for instance)."));
});
