// SPDX-License-Identifier: GPL-3.0-or-later
// What every panel uses: figures as text, elements, panels that are built when they are needed, tables.
const KINDS = [
  ["weights", "weights"], ["statistics", "statistics"], ["optimizer", "optimizer state"], ["input", "inputs"],
  ["activation", "activations"], ["recomputed", "recomputed"], ["gradient", "gradients"], ["workspace", "workspaces"]
];
const PATTERN = {
  optimizer: "rows",
  recomputed: "slash",
  workspace: "back"
};
const PERSISTENT = new Set(["weights", "statistics", "optimizer"]);
const kindLabel = Object.fromEntries(KINDS);

// Figures.

const isNumber = n => typeof n === "number" && Number.isFinite(n);
const count = n => isNumber(n) ? Math.round(n).toLocaleString("en-US") : "–";
const plural = (n, word, more = word + "s") => `${count(n)} ${n === 1 ? word : more}`;

// As bytes_text of ir/support/byte_size.h: rounded up, in one word that --budget takes; a tooltip has all digits.
function bytes(n, decimals = 1) {
  if (!isNumber(n)) return "–";
  if (n < 1024) return `${n}B`;
  let amount = n / 1024, at = 0;
  for (; amount >= 1024 && at < 3; at++) amount /= 1024;
  const scale = 10 ** decimals;
  return `${Math.ceil(amount * scale) / scale}${["KiB", "MiB", "GiB", "TiB"][at]}`;
}

const exactBytes = n => isNumber(n) ? `${bytes(n)} (${count(n)} bytes)` : "–";

function percent(n) { return !isNumber(n) ? "–" : n > 0 && n < 0.05 ? "<0.1%" : `${n.toFixed(1)}%`; }

const moreTime = n => `${percent(isNumber(n) ? Math.abs(n) : n)} ${n < 0 ? "less" : "more"} time`;

function seconds(s) {
  if (!isNumber(s)) return "–";
  const [scale, unit] = s >= 1 ? [1, "s"] : s >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${(s * scale).toPrecision(3)} ${unit}`;
}

const share = (part, whole) => whole > 0 ? percent(100 * part / whole) : "–";
// What an operation costs: seconds, where the cost model predicts those of this machine, and its share of the step.
const cost = (c, whole) => !isNumber(c) ? "–" :
  data.in_seconds                       ? `${seconds(c)} (${share(c, whole)})` :
                                          share(c, whole);
const sum = (items, of) => items.reduce((total, item) => total + of(item), 0);

// Elements.  Text is always a text node: names may hold anything.

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on"))
      node.addEventListener(key.slice(2), value);
    else if (key === "style")
      for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else if (value !== false && value !== undefined && value !== null)
      node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false));
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const swatch = kind =>
  el("span", {class: `swatch ${PATTERN[kind] || ""}`, style: {"--kind": `var(--${kind})`}, "aria-hidden": "true"});
const meter = (part, whole, kind) => el("span", {class: "meter", "aria-hidden": "true"}, el("i", {
  style:
    {"--part": `${whole > 0 ? 100 * Math.min(1, part / whole) : 0}%`, ...(kind ? {"--kind": `var(--${kind})`} : {})}
}));

// What panels tell each other: "theme", "view" (the part of the step that is shown), "pick" (a tensor that stays
// marked).

const listeners = {};
const on = (event, call) => (listeners[event] ||= []).push(call);
const tell = event => (listeners[event] || []).forEach(call => call());

const steps = {
  kept: data.kept,
  planned: data.planned
};
const slots = Math.max(1, ...Object.values(steps).filter(Boolean).map(s => s.load.length));
const view = {
  from: 0,
  to: slots
};
let picked = null;  // the name of a tensor

function setView(from, to) {
  const width = Math.min(slots, Math.max(8, to - from));
  view.from = Math.round(Math.max(0, Math.min(slots - width, from)));
  view.to = Math.round(view.from + width);
  tell("view");
}

function pick(name) {
  picked = picked === name ? null : name;
  tell("pick");
}

const nameButton = (name, label = name) =>
  el("button", {class: "name", type: "button", title: "Mark in the charts", onclick: () => pick(name)}, label);

// Calls back when a box has another width, and once at first.
function onResize(node, call) {
  let drawn = 0;
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (node.clientWidth !== drawn) {
      drawn = node.clientWidth;
      call();
    }
  }))
    .observe(node);
}

// Panels are built when they come near the screen, or when there is nothing else to do.

const panels = new Map();

function panel(id, build) { panels.set(id, build); }

function buildPanel(id) {
  const build = panels.get(id);
  if (!build) return;
  panels.delete(id);
  const body = document.querySelector(`#${id} .body`);
  build(body);
  body.classList.remove("tall");
}

const buildAll = () => [...panels.keys()].forEach(buildPanel);

function buildOnDemand() {
  buildPanel("memory");
  const seen = new IntersectionObserver(
    entries => entries.forEach(e => e.isIntersecting && buildPanel(e.target.id)), {rootMargin: "300px"});
  [...panels.keys()].forEach(id => seen.observe(document.getElementById(id)));
  const idle = window.requestIdleCallback || (call => setTimeout(call, 50));
  const next = () => {
    const [id] = panels.keys();
    if (id) {
      buildPanel(id);
      idle(next, {timeout: 300});
    }
  };
  idle(next, {timeout: 300});
}

const nothing = (...text) => el("p", {class: "none"}, ...text);

// Tables: columns of {title, value (what is sorted by), cell (what is shown), num, kind (class of the cells)}; rows
// beyond `most` on demand.

function table(caption, columns, rows, {most = 100, sort = -1, down = true, rowClass = () => ""} = {}) {
  const body = el("tbody"), heads = [];
  let all = rows.length <= most, at = sort, descending = down;
  const more = el("button", {
    class: "more",
    type: "button",
    onclick: () => {
      all = true;
      show();
    }
  });
  function show() {
    const order = at < 0 ?
      rows :
      [...rows].sort((a, b) => compare(columns[at].value(a), columns[at].value(b)) * (descending ? -1 : 1));
    body.replaceChildren(
      ...(all ? order : order.slice(0, most))
        .map(row => el("tr", {class: rowClass(row) || false},
               columns.map(c => el("td", {class: c.kind || (c.num ? "num" : false)}, (c.cell || c.value)(row))))));
    heads.forEach((head, i) => columns[i].value &&
        head.setAttribute("aria-sort",
          i !== at     ? "none" :
            descending ? "descending" :
                         "ascending"));
    more.hidden = all;
    more.textContent = `Show all ${count(rows.length)} rows`;
  }
  columns.forEach((c, i) => heads.push(el("th", {scope: "col", class: c.num ? "num" : false},
                    c.value ? el("button", {
                      type: "button",
                      onclick: () => {
                        descending = at === i ? !descending : !!c.num;
                        at = i;
                        show();
                      }
                    },
                                c.title) :
                              c.title)));
  show();
  const name = `table-${table.made = (table.made || 0) + 1}`;
  const wrap = el("div", {class: "scroll", tabindex: "0", role: "region", "aria-labelledby": name},
    el("table", {}, el("caption", {id: name}, caption), el("thead", {}, el("tr", {}, heads)), body));
  return el("div", {}, wrap, more);
}

// Columns that several tables have.
const numberColumn = (title, of, text = count) => ({title, num: true, value: of, cell: row => text(of(row))});
const bytesColumn = (title, of) => numberColumn(title, of, n => el("span", {title: exactBytes(n)}, bytes(n)));

// Where something comes from: a line of the source in this page, or of a file that it imports.
const lineText = item => item.line > 0 ? String(item.line) : item.file || "–";
const lineColumn = (of = row => row) =>
  ({title: "Line", num: true, value: row => of(row).line || of(row).file, cell: row => lineText(of(row))});

const compare = (a, b) => typeof a === "string" || typeof b === "string" ?
  String(a ?? "").localeCompare(String(b ?? ""), "en", {numeric: true}) :
  (a ?? -Infinity) - (b ?? -Infinity);

// A table behind a line that opens it: what a chart shows, for those who do not see it.
function tableBehind(title, make) {
  const box =
    el("details", {class: "behind", ontoggle: () => box.open && !box.made && (box.made = true, box.append(make()))},
      el("summary", {}, title));
  return box;
}

// Tabs: [title, build(body)] each, built when first opened.
function tabs(label, pages) {
  const list = el("div", {role: "tablist", "aria-label": label}), box = el("div");
  const made = pages.map(([title, build], i) => {
    const id = `${label.replace(/\W+/g, "-").toLowerCase()}-${i}`;
    const tab =
      el("button", {role: "tab", type: "button", id, "aria-controls": `${id}-page`, onclick: () => open(i)}, title);
    const page = el("div", {role: "tabpanel", id: `${id}-page`, "aria-labelledby": id});
    list.append(tab);
    box.append(page);
    return {tab, page, build};
  });
  list.addEventListener("keydown", e => {
    const by = {ArrowRight: 1, ArrowLeft: -1}[e.key], now = made.findIndex(m => m.tab === document.activeElement);
    if (!by || now < 0) return;
    e.preventDefault();
    open((now + by + made.length) % made.length);
    list.querySelector("[aria-selected=true]").focus();
  });
  function open(at) {
    made.forEach((m, i) => {
      m.tab.setAttribute("aria-selected", i === at);
      m.tab.tabIndex = i === at ? 0 : -1;
      m.page.hidden = i !== at;
    });
    const {page, build} = made[at];
    if (!page.childNodes.length) build(page);
  }
  open(0);
  return el("div", {}, list, box);
}
