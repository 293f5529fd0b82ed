// SPDX-License-Identifier: GPL-3.0-or-later
// The step as a graph by model path: rows that open and close, and an arc from every row to those that read it.

const ARCS = 130, ROW = 24;  // pixels: the room for arcs on the left, a row's height

function newGroup(label, path, parent) {
  return {label, path, parent, level: parent ? parent.level + 1 : 0, children: [], operations: 0, reruns: 0, bytes: 0};
}

function operationTree(step) {
  const root = newGroup("", "", null), groups = new Map([["", root]]);
  const groupOf = path => {
    if (groups.has(path)) return groups.get(path);
    const dot = path.lastIndexOf("."), parent = groupOf(dot < 0 ? "" : path.slice(0, dot));
    const g = newGroup(path.slice(dot + 1), path, parent);
    parent.children.push(g);
    groups.set(path, g);
    return g;
  };
  step.operations.forEach((o, slot) => {
    const parent = groupOf(o.path || "(no path)"), made = o.out.filter(i => !PERSISTENT.has(step.buffers[i].kind));
    const size = sum(made, i => step.buffers[i].bytes);
    parent.children.push({slot, parent, level: parent.level + 1});
    for (let g = parent; g; g = g.parent) {
      g.operations++;
      g.bytes += size;
      g.reruns += isNumber(o.again);
    }
  });
  return root;
}

// Edges between operations: who wrote last what is read.
function edgesOf(step) {
  const writer = new Map(), edges = [];
  step.operations.forEach((o, slot) => {
    o.in.forEach(i => writer.has(i) && edges.push([writer.get(i), slot, i]));
    o.out.forEach(i => writer.set(i, slot));
  });
  return edges;
}

function eachSlot(node, call) {
  if (node.children)
    node.children.forEach(child => eachSlot(child, call));
  else
    call(node.slot);
}

// A node's rows: itself has one, and what is under it where it is open.
function openRows(node, out = []) {
  for (const child of node.children) {
    out.push(child);
    if (child.children && child.open) openRows(child, out);
  }
  return out;
}

// As many groups are open at first as fit on a screen.
function openFirst(root) {
  let room = 26 - root.children.length;
  for (const queue = root.children.filter(c => c.children); queue.length && room > 0;) {
    const g = queue.shift();
    if (g.children.length > room) continue;
    g.open = true;
    room -= g.children.length;
    queue.push(...g.children.filter(c => c.children));
  }
}

// How bold an arc is, and how far it goes to the left.
const arcWidth = size => Math.min(5, 1 + Math.log2(1 + size / 2 ** 18) / 2);
const arcReach = rows => Math.min(ARCS - 18, 14 + 9 * Math.sqrt(Math.abs(rows)));

function arcPath(arc) {
  const y = i => 6 + i * ROW + ROW / 2, x = ARCS - 4, far = x - arcReach(arc.to - arc.from);
  return svg("path", {
    d: `M${x} ${y(arc.from)}C${far} ${y(arc.from)} ${far} ${y(arc.to)} ${x} ${y(arc.to)}m-5 -4l5 4l-5 4`,
    fill: "none",
    stroke: arc.into ? "var(--accent)" : "var(--gradient)",
    "stroke-width": arcWidth(arc.bytes),
    "stroke-dasharray": arc.into ? false : "6 3",
    opacity: 0.85
  });
}

// A tree (WAI-ARIA) of the step's operations.
class GraphView {
  constructor(step) {
    this.step = step;
    this.root = operationTree(step);
    this.edges = edgesOf(step);
    this.current = this.root.children[0];
    this.rows = el("div", {class: "rows", role: "tree", "aria-label": "Operations by model path"});
    this.arcs = svg("svg", {width: ARCS, "aria-hidden": "true"});
    this.note = el("p", {class: "note", role: "status"});
    this.rows.addEventListener("keydown", e => this.key(e));
    openFirst(this.root);
    if (this.current) this.show();
  }
  groupCells(node) {
    const arrow = el("span", {class: "arrow", "aria-hidden": "true"}, node.open ? "▾" : "▸");
    return [
      el("span", {}, arrow, node.label), el("span", {class: "right"}, plural(node.operations, "operation")),
      el("span", {class: "right"}, node.reruns ? `${count(node.reruns)} run again` : ""),
      el("span", {class: "right"}, bytes(node.bytes))
    ];
  }
  operationCells(slot) {
    const o = this.step.operations[slot], again = isNumber(o.again) && el("span", {class: "again"}, "again");
    return [
      el("span", {class: "mono"}, el("span", {class: "arrow"}), o.name, again), el("span", {class: "right"}, o.op),
      el("span", {class: "right"}, `${o.phase || ""}, ${count(slot)}`),
      el("span", {class: "right"}, bytes(sum(o.out, i => this.step.buffers[i].bytes)))
    ];
  }
  rowOf(node) {
    const [name, ...rest] = node.children ? this.groupCells(node) : this.operationCells(node.slot);
    name.style.paddingLeft = `${(node.level - 1) * 16}px`;
    node.row = el("div", {
      role: "treeitem",
      "aria-level": node.level,
      "aria-expanded": node.children ? String(!!node.open) : false,
      tabindex: node === this.current ? "0" : "-1",
      onclick: () => {
        this.go(node);
        this.toggle(node);
      },
      onfocus: () => this.look(node),
      onpointerenter: () => this.look(node)
    },
      name, rest);
    return node.row;
  }
  show() {
    this.shown = openRows(this.root);
    this.rows.replaceChildren(this.arcs, ...this.shown.map(node => this.rowOf(node)));
    this.arcs.setAttribute("height", this.shown.length * ROW + 12);
    this.look(this.current);
  }
  toggle(node, open = !node.open) {
    if (!node.children) return;
    node.open = open;
    this.show();
    this.current.row.focus();
  }
  toggleAll(open) {
    const set = node => node.children?.forEach(child => {
      child.open = open;
      set(child);
    });
    set(this.root);
    this.current = this.root.children[0];
    if (this.current) this.show();
  }
  go(node) {
    if (this.current.row) this.current.row.tabIndex = -1;
    this.current = node;
    node.row.tabIndex = 0;
    node.row.focus();
  }
  // The row that stands for an operation: itself, or the closed group that it is in.
  rowsOfSlots() {
    const at = new Map();
    this.shown.forEach((node, i) => {
      if (!node.children || !node.open) eachSlot(node, slot => at.set(slot, i));
    });
    return at;
  }
  // Edges into and out of a node, those between the same two rows as one.
  arcsOf(node) {
    const at = this.rowsOfSlots(), mine = new Set(), found = new Map();
    eachSlot(node, slot => mine.add(slot));
    for (const [from, to, buffer] of this.edges) {
      if (mine.has(from) === mine.has(to)) continue;
      const ends = {from: at.get(from), to: at.get(to), into: mine.has(to)}, key = Object.values(ends).join(" ");
      const arc = found.get(key) || {...ends, bytes: 0};
      arc.bytes += this.step.buffers[buffer].bytes;
      found.set(key, arc);
    }
    return [...found.values()];
  }
  look(node) {
    const arcs = this.arcsOf(node), into = arcs.filter(arc => arc.into);
    const drawn = arcs.filter(arc => arc.from !== arc.to && arc.from !== undefined && arc.to !== undefined);
    this.arcs.replaceChildren(...drawn.map(arcPath));
    const name = node.children ? node.path : this.step.operations[node.slot].name;
    this.note.textContent = `${name}: reads ${bytes(sum(into, arc => arc.bytes))} of ${plural(into.length, "row")}, ` +
      `is read by ${plural(arcs.length - into.length, "row")}`;
  }
  key(e) {
    const {shown, current} = this, i = shown.indexOf(current);
    const to = {ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: shown.length - 1}[e.key];
    if (to !== undefined) {
      if (shown[to]) this.go(shown[to]);
    } else if (e.key === "ArrowRight")
      this.inwards();
    else if (e.key === "ArrowLeft")
      this.outwards();
    else if (e.key === "Enter" && !current.children)
      pick(this.step.operations[current.slot].name);
    else if (e.key === "Enter" || e.key === " ")
      this.toggle(current);
    else
      return;
    e.preventDefault();
  }
  inwards() {
    const {current} = this;
    if (current.children && current.open)
      this.go(current.children[0]);
    else
      this.toggle(current, true);
  }
  outwards() {
    const {current} = this;
    if (current.children && current.open)
      this.toggle(current, false);
    else if (current.parent !== this.root)
      this.go(current.parent);
  }
}

const graphPage = step => page => {
  const graph = new GraphView(step),
        button = (label, open) => el("button", {type: "button", onclick: () => graph.toggleAll(open)}, label);
  const how =
    "Point at a row: solid arcs lead to it from what it reads, dashed ones to what reads it; wider is more bytes.";
  page.append(
    el("div", {class: "bar-of-tools"}, button("Open all", true), button("Close all", false), el("label", {}, how)),
    el("div", {class: "graph"}, graph.rows), graph.note);
};
