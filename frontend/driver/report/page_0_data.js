// SPDX-License-Identifier: GPL-3.0-or-later
// The data of the page, as objects: docs/report.md says in which form it is stored, report_pack.c writes that.
const data = JSON.parse(document.getElementById("data").textContent);

// A table by column, as a list of rows.
function rowsOf(columns) {
  const rows = Array.from({length: Object.values(columns)[0]?.length || 0}, () => ({}));
  for (const [title, column] of Object.entries(columns)) {
    const isText = title.startsWith("$"), key = isText ? title.slice(1) : title;
    column.forEach((value, i) => {
      if (value !== null) rows[i][key] = isText ? data.strings[value] : value;
    });
  }
  return rows;
}

function unpackStep(step) {
  step.operations = rowsOf(step.operations);
  step.buffers = rowsOf(step.buffers);
  for (const {buffer, ...view} of rowsOf(step.views)) (step.buffers[buffer].holds ||= []).push(view);
}

// A text of which the lines that another has, too, are told by their numbers.
function unpackText(packed, like) {
  const lines = like.split("\n");
  return packed.flatMap(item => typeof item === "string" ? item : lines.slice(item[0], item[0] + item[1])).join("\n");
}

[data.kept, data.planned].forEach(unpackStep);
data.ir.after = unpackText(data.ir.after, data.ir.before);
