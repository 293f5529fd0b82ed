// SPDX-License-Identifier: GPL-3.0-or-later
// The IR as text, and what recomputation changes in it.

// The longest increasing run of `values`, as positions.
function increasing(values) {
  const tails = [], before = new Array(values.length);
  values.forEach((value, i) => {
    let low = 0, high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[tails[middle]] < value)
        low = middle + 1;
      else
        high = middle;
    }
    before[i] = low ? tails[low - 1] : -1;
    tails[low] = i;
  });
  const run = [];
  for (let i = tails.length ? tails[tails.length - 1] : -1; i >= 0; i = before[i]) run.push(i);
  return run.reverse();
}

// Lines that both texts have once, in an order that both have: Bram Cohen's patience diff.  Almost every line of an IR
// has a name of its own, so what lies between two such lines is short.
function matches(a, b, a0, a1, b0, b1, out) {
  while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) out.push([a0++, b0++]);
  const ends = [];
  while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) ends.push([--a1, --b1]);
  if (a0 < a1 && b0 < b1) {
    const seen = new Map();
    for (let i = a0; i < a1; i++) {
      const e = seen.get(a[i]);
      if (e)
        e.n++;
      else
        seen.set(a[i], {n: 1, i, m: 0, j: 0});
    }
    for (let j = b0; j < b1; j++) {
      const e = seen.get(b[j]);
      if (e) {
        e.m++;
        e.j = j;
      }
    }
    const once = [...seen.values()].filter(e => e.n === 1 && e.m === 1);
    const anchors = increasing(once.map(e => e.j)).map(k => once[k]);
    let [i, j] = [a0, b0];
    for (const e of anchors) {
      matches(a, b, i, e.i, j, e.j, out);
      out.push([e.i, e.j]);
      [i, j] = [e.i + 1, e.j + 1];
    }
    if (anchors.length) matches(a, b, i, a1, j, b1, out);
  }
  out.push(...ends.reverse());
  return out;
}

// [{sign: " " "-" "+", a, b, text, moved}]: line numbers from 0; moved: the line is on the other side, too, elsewhere.
function diffLines(a, b) {
  const rows = [], same = [...matches(a, b, 0, a.length, 0, b.length, []), [a.length, b.length]];
  let [i, j] = [0, 0];
  for (const [p, q] of same) {
    for (; i < p; i++) rows.push({sign: "-", a: i, text: a[i]});
    for (; j < q; j++) rows.push({sign: "+", b: j, text: b[j]});
    if (p < a.length) rows.push({sign: " ", a: i++, b: j++, text: a[p]});
  }
  const gone = new Map(rows.filter(r => r.sign === "-" && r.text.trim() !== "}").map(r => [r.text, r]));
  for (const r of rows) {
    const from = r.sign === "+" && gone.get(r.text);
    if (from) {
      r.moved = from;
      from.moved = r;
      gone.delete(r.text);
    }
  }
  return rows;
}

// Words of a line that its other version has not.
function markWords(text, other) {
  const known = new Set(other.split(/([\s,{}=]+)/));
  return text.split(/([\s,{}=]+)/).map(word => known.has(word) ? word : el("mark", {}, word));
}

const definedBy = text => /^\s*([%$][^=]*?)\s*=/.exec(text)?.[1];

function diffRow(r, others) {
  const other = !r.moved && r.sign !== " " && others.get(r.sign === "-" ? "+" : "-").get(definedBy(r.text));
  const sign = r.moved ? (r.sign === "-" ? "↷" : "↶") : r.sign,
        kind = r.moved ? "moved" : {"-": "del", "+": "add", " ": ""}[r.sign];
  return el("tr", {class: kind || false}, el("td", {class: "at"}, r.a === undefined ? "" : r.a + 1),
    el("td", {class: "at"}, r.b === undefined ? "" : r.b + 1),
    el("td", {}, sign,
      el("span", {class: "hidden"}, r.moved ? "moved" : {"-": "removed", "+": "added", " ": ""}[r.sign])),
    el("td", {}, other ? markWords(r.text, other.text) : r.text));
}

// Rows with three lines around each change; what lies between opens by a button.
function diffBody(rows) {
  const body = el("tbody"), near = new Uint8Array(rows.length), others = new Map([["-", new Map()], ["+", new Map()]]);
  rows.forEach((r, i) => {
    if (r.sign === " ") return;
    near.fill(1, Math.max(0, i - 3), i + 4);
    if (!r.moved && definedBy(r.text)) others.get(r.sign).set(definedBy(r.text), r);
  });
  for (let i = 0; i < rows.length;) {
    if (near[i]) {
      body.append(diffRow(rows[i++], others));
      continue;
    }
    const from = i;
    while (i < rows.length && !near[i]) i++;
    const gap = rows.slice(from, i),
          row = el("tr", {class: "gap"},
            el("td", {colspan: 4},
              el("button", {type: "button", onclick: () => row.replaceWith(...gap.map(r => diffRow(r, others)))},
                `Show ${plural(gap.length, "unchanged line")}`)));
    body.append(row);
  }
  return body;
}

function diffCounts(rows) {
  const of = sign => rows.filter(r => r.sign === sign && !r.moved).length;
  return {added: of("+"), removed: of("-"), moved: rows.filter(r => r.sign === "+" && r.moved).length};
}

function diffPage(page) {
  const rows = diffLines(data.ir.before.split("\n"), data.ir.after.split("\n"));
  const {added, removed, moved} = diffCounts(rows);
  if (added + removed + moved === 0) return page.append(nothing("The plan changes nothing: both texts are the same."));
  const scroll = el("div", {class: "text diff", tabindex: "0", role: "region", "aria-label": "Difference"});
  const hide = el("input", {type: "checkbox", id: "hide-moved", onchange: () => show()});
  const caption = () => el("caption", {class: "hidden"}, "Line before, line after, sign, text");
  function show() {
    const some = hide.checked ? rows.filter(r => !r.moved) : rows;
    scroll.replaceChildren(el("table", {}, caption(), diffBody(some)));
  }
  show();
  const counts =
    `${plural(added, "line")} added (+), ${count(removed)} removed (-), ${count(moved)} moved (↷ from, ↶ to)`;
  const without = el("label", {for: "hide-moved"
  }, "without moved lines");
  page.append(
    el("div", {class: "bar-of-tools"}, el("span", {}, counts), el("span", {class: "spring"}), hide, without), scroll);
}

const textPage = (label, text) => page =>
  page.append(el("pre", {class: "text", tabindex: "0", role: "region", "aria-label": label}, text));

panel("ir", body => {
  const text = data.ir?.before ?
    [
      ["Difference", diffPage], ["Before", textPage("Text before", data.ir.before)],
      ["After", textPage("Text after", data.ir.after)]
    ] :
    [];
  body.append(tabs(
    "IR", [["Graph as planned", graphPage(data.planned)], ["Graph, everything kept", graphPage(data.kept)], ...text]));
  if (!text.length)
    body.append(nothing(
      "The IR's text is not part of this report; ", el("code", {}, "scrimp dump --stage=remat"), " prints it."));
});
