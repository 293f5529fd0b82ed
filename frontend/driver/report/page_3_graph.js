// SPDX-License-Identifier: GPL-3.0-or-later
// The step as a graph by model path: rows that open and close, and an arc from every row to those that read it.

function operationTree(step) {
  const root = {label: "", level: 0, children: [], first: 0, operations: 0, reruns: 0, bytes: 0},
        groups = new Map([["", root]]);
  const groupOf = path => {
    if (groups.has(path)) return groups.get(path);
    const dot = path.lastIndexOf("."), parent = groupOf(dot < 0 ? "" : path.slice(0, dot));
    const g = {
      label: path.slice(dot + 1),
      path,
      parent,
      level: parent.level + 1,
      children: [],
      operations: 0,
      reruns: 0,
      bytes: 0
    };
    parent.children.push(g);
    groups.set(path, g);
    return g;
  };
  step.operations.forEach((o, slot) => {
    const parent = groupOf(o.path || "(no path)"),
          made = sum(o.out.filter(i => !PERSISTENT.has(step.buffers[i].kind)), i => step.buffers[i].bytes);
    parent.children.push({slot, parent, level: parent.level + 1});
    for (let g = parent; g; g = g.parent) {
      g.operations++;
      g.bytes += made;
      if (isNumber(o.again)) g.reruns++;
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

const graphPage = step => page => {
  const root = operationTree(step), edges = edgesOf(step),
        rows = el("div", {class: "rows", role: "tree", "aria-label": "Operations by model path"});
  const arcs = svg("svg", {width: 130, "aria-hidden": "true"}), box = el("div", {class: "graph"}, rows);
  const note = el("p", {class: "note", role: "status"});
  let shown = [], current = root.children[0];
  const isOpen = node => node.children && node.open;

  function list(node, out) {
    for (const child of node.children) {
      out.push(child);
      if (isOpen(child)) list(child, out);
    }
    return out;
  }
  function rowOf(node) {
    const o = node.children ? null : step.operations[node.slot];
    const text = node.children ?
      [
        el("span", {}, el("span", {class: "arrow", "aria-hidden": "true"}, node.open ? "▾" : "▸"), node.label),
        el("span", {class: "right"}, plural(node.operations, "operation")),
        el("span", {class: "right"}, node.reruns ? `${count(node.reruns)} run again` : "")
      ] :
      [
        el("span", {class: "mono"}, el("span", {class: "arrow"}), o.name,
          isNumber(o.again) && el("span", {class: "again"}, "again")),
        el("span", {class: "right"}, o.op), el("span", {class: "right"}, `${o.phase || ""}, ${count(node.slot)}`)
      ];
    const made = o ? sum(o.out, i => step.buffers[i].bytes) : node.bytes;
    node.row = el("div", {
      role: "treeitem",
      "aria-level": node.level,
      "aria-expanded": node.children ? String(!!node.open) : false,
      tabindex: node === current ? "0" : "-1",
      onclick: () => {
        go(node);
        if (node.children) toggle(node);
      },
      onfocus: () => look(node),
      onpointerenter: () => look(node)
    },
      text, el("span", {class: "right"}, bytes(made)));
    node.row.firstChild.style.paddingLeft = `${(node.level - 1) * 16}px`;
    return node.row;
  }
  function show() {
    shown = list(root, []);
    rows.replaceChildren(arcs, ...shown.map(rowOf));
    arcs.setAttribute("height", shown.length * 24 + 12);
    look(current);
  }
  function toggle(node, open = !node.open) {
    node.open = open;
    show();
    current.row.focus();
  }
  function go(node) {
    if (current.row) current.row.tabIndex = -1;
    current = node;
    node.row.tabIndex = 0;
    node.row.focus();
  }
  // The row that stands for an operation: itself, or the closed group that it is in.
  function rowsOfSlots() {
    const at = new Map();
    shown.forEach((node, i) => {
      if (!node.children)
        at.set(node.slot, i);
      else if (!node.open)
        each(node, slot => at.set(slot, i));
    });
    return at;
  }
  function each(node, call) {
    if (node.children)
      node.children.forEach(child => each(child, call));
    else
      call(node.slot);
  }
  function look(node) {
    const at = rowsOfSlots(), mine = new Set(), found = new Map();
    each(node, slot => mine.add(slot));
    for (const [from, to, buffer] of edges) {
      if (mine.has(from) === mine.has(to)) continue;
      const key = `${at.get(from)} ${at.get(to)} ${mine.has(to)}`,
            arc = found.get(key) || {from: at.get(from), to: at.get(to), into: mine.has(to), bytes: 0};
      arc.bytes += step.buffers[buffer].bytes;
      found.set(key, arc);
    }
    drawArcs([...found.values()].filter(arc => arc.from !== arc.to && arc.from !== undefined && arc.to !== undefined));
    const into = [...found.values()].filter(arc => arc.into);
    note.textContent = `${node.children ? node.path : step.operations[node.slot].name}: reads ${
                         bytes(sum(into, arc => arc.bytes))} of ` +
      `${plural(into.length, "row")}, is read by ${plural(found.size - into.length, "row")}`;
  }
  function drawArcs(found) {
    const y = i => 6 + i * 24 + 12, ink = into => into ? "var(--accent)" : "var(--gradient)";
    arcs.replaceChildren(...found.map(arc => {
      const far = Math.min(112, 14 + 9 * Math.sqrt(Math.abs(arc.to - arc.from)));
      const d =
        `M126 ${y(arc.from)}C${126 - far} ${y(arc.from)} ${126 - far} ${y(arc.to)} 126 ${y(arc.to)}m-5 -4l5 4l-5 4`;
      return svg("path", {
        d,
        fill: "none",
        stroke: ink(arc.into),
        "stroke-width": Math.min(5, 1 + Math.log2(1 + arc.bytes / 2 ** 18) / 2),
        "stroke-dasharray": arc.into ? false : "6 3",
        opacity: 0.85
      });
    }));
  }
  rows.addEventListener("keydown", e => {
    const i = shown.indexOf(current), to = {ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: shown.length - 1}[e.key];
    if (to !== undefined) {
      if (shown[to]) go(shown[to]);
    } else if (e.key === "ArrowRight" && current.children) {
      if (current.open)
        go(current.children[0]);
      else
        toggle(current, true);
    } else if (e.key === "ArrowLeft") {
      if (isOpen(current))
        toggle(current, false);
      else if (current.parent !== root)
        go(current.parent);
    } else if ((e.key === "Enter" || e.key === " ") && current.children)
      toggle(current);
    else if (e.key === "Enter")
      pick(step.operations[current.slot].name);
    else
      return;
    e.preventDefault();
  });
  function all(open) {
    const set = node => node.children?.forEach(child => {
      child.open = open;
      set(child);
    });
    set(root);
    current = root.children[0];
    show();
  }
  page.append(
    el("div", {class: "bar-of-tools"}, el("button", {type: "button", onclick: () => all(true)}, "Open all"),
      el("button", {type: "button", onclick: () => all(false)}, "Close all"),
      el("label", {},
        "Point at a row: solid arcs lead to it from what it reads, dashed ones to what reads it; wider is more bytes.")),
    box, note);
  // As many groups are open at first as fit on a screen.
  for (const queue = root.children.filter(c => c.children), room = {rows: 26 - root.children.length};
       queue.length && room.rows > 0;) {
    const g = queue.shift();
    if (g.children.length > room.rows) continue;
    g.open = true;
    room.rows -= g.children.length;
    queue.push(...g.children.filter(c => c.children));
  }
  if (current) show();
};
