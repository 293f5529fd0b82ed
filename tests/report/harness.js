// SPDX-License-Identifier: GPL-3.0-or-later
// Runs inside a copy of a report, behind its own script, and uses it as people do: points, types, clicks.  What is
// shown is compared with the JSON in the page, by code that shares nothing with the page's.  The answer, a list of
// faults and what the page shows, goes to the frame around it (page.py).

// docs/report.md says how the data is stored.
window.harnessFacts = facts => {
  const listOf = table => {
    const titles = Object.keys(table), list = [];
    for (let i = 0; titles.length && i < table[titles[0]].length; i++) {
      const row = titles.map(t => t[0] === "$" ? [t.slice(1), facts.strings[table[t][i]]] : [t, table[t][i]]);
      list.push(Object.fromEntries(row.filter(([, value]) => value !== null && value !== undefined)));
    }
    return list;
  };
  for (const step of [facts.kept, facts.planned]) {
    step.operations = listOf(step.operations);
    step.buffers = listOf(step.buffers);
    listOf(step.views).forEach(v => (step.buffers[v.buffer].holds ??= []).push({name: v.name, first: v.first}));
  }
  const before = facts.ir.before.split("\n"), after = [];
  for (const item of facts.ir.after)
    if (typeof item === "string")
      after.push(item);
    else
      for (let i = 0; i < item[1]; i++) after.push(before[item[0] + i]);
  facts.ir.after = after.join("\n");
  return facts;
};

(async () => {
  const faults = window.harnessFaults, seen = {};
  const facts = window.harnessFacts(JSON.parse(document.getElementById("data").textContent));
  const check = (holds, what) => {
    if (!holds) faults.push(what);
  };
  const all = (selector, node = document) => [...node.querySelectorAll(selector)];
  const one = (selector, node = document) =>
    node.querySelector(selector) || (faults.push(`nothing is ${selector}`), document.createElement("i"));
  const wait = (ms = 60) => new Promise(done => setTimeout(done, ms));
  const text = node => node.textContent.replace(/\s+/g, " ").trim();
  const shownTip = () => {
    const t = document.getElementById("tip");
    return t.hidden ? null : t;
  };
  const persistent = b => ["weights", "statistics", "optimizer"].includes(b.kind);
  const aliveAt = (step, slot) => step.buffers.filter(b => b.first <= slot && slot < b.end);
  const press = (node, key) => node.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
  const pointer = (node, type, x, y, more = {}) => {
    const box = node.getBoundingClientRect();
    node.dispatchEvent(new PointerEvent(
      type, {clientX: box.left + x, clientY: box.top + y, bubbles: true, pointerType: "mouse", ...more}));
  };
  const part = async (name, run) => {
    try {
      await run();
    } catch (e) { faults.push(`${name}: ${e.message} ${(e.stack || "").split("\n")[1] || ""}`); }
  };

  function definition(tip, term) {
    const dt = all("dt", tip).find(t => t.textContent === term);
    return dt ? dt.nextElementSibling.textContent : null;
  }
  // What a tooltip says about a tensor and an operation, against the facts.
  function checkTip(step, where) {
    const tip = shownTip();
    if (!tip) return null;
    const slot = Number(
      /operation ([\d,]+)/.exec(tip.querySelector(".at:last-child")?.textContent || "")?.[1].replaceAll(",", ""));
    check(slot >= 0 && slot < step.load.length, `${where}: the tooltip names no operation`);
    const name = tip.querySelector("b")?.textContent;
    if (name === undefined) return {slot};
    const b = aliveAt(step, slot).find(b => b.name === name);
    check(b, `${where}: ${name} is not in memory at operation ${slot}`);
    if (!b) return {slot, name};
    check(definition(tip, "size").includes(`(${b.bytes.toLocaleString("en-US")} bytes)`),
      `${where}: ${name} has other bytes: ${definition(tip, "size")}`);
    if (!persistent(b)) {
      check(
        definition(tip, "born at")?.startsWith(b.first.toLocaleString("en-US")), `${where}: ${name} is born elsewhere`);
      check(definition(tip, "dies after")?.startsWith((b.end - 1).toLocaleString("en-US")),
        `${where}: ${name} dies elsewhere`);
    }
    if (b.path) check(definition(tip, "path") === b.path, `${where}: ${name} has another path`);
    if (b.line > 0) {
      const line = facts.source.text.split("\n")[b.line - 1].trim();
      check(definition(tip, "line") === `${b.line}: ${line}`, `${where}: ${name} has another line`);
    }
    if (b.file) {
      check(definition(tip, "imported from") === b.file, `${where}: ${name} is imported from another line`);
      seen.imported = (seen.imported || 0) + 1;
    }
    return {slot, name, bytes: b.bytes};
  }

  // The colours of a canvas, and the row that has most of one colour.
  function pixels(plot) {
    const canvas = plot.querySelector("canvas"),
          {data, width, height} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return {data, width, height};
  }
  function coloursOf(plot) {
    const {data} = pixels(plot), found = new Map();
    for (let i = 0; i < data.length; i += 4)
      if (data[i + 3] === 255)
        found.set(data[i] << 16 | data[i + 1] << 8 | data[i + 2],
          (found.get(data[i] << 16 | data[i + 1] << 8 | data[i + 2]) || 0) + 1);
    return found;
  }
  const colourNumber = name => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    const [r, g, b] = getComputedStyle(probe).color.match(/\d+/g).map(Number);
    probe.remove();
    return r << 16 | g << 8 | b;
  };
  function rowOfColour(plot, name) {
    const {data, width, height} = pixels(plot), ink = colourNumber(name);
    let best = -1, most = width / 3;
    for (let y = 0; y < height; y++) {
      let n = 0;
      for (let x = 0; x < width; x++) {
        const i = 4 * (y * width + x);
        if ((data[i] << 16 | data[i + 1] << 8 | data[i + 2]) === ink) n++;
      }
      if (n > most) [best, most] = [y, n];
    }
    return best;
  }
  const plotOf = which => one(`.plot[data-chart=${which}]`);

  // Points down a column of a chart; the names that are found there.
  function sweep(plot, step, x, where) {
    const found = new Map(), height = plot.querySelector("canvas").getBoundingClientRect().height;
    let hits = 0, holes = 0, hole = 0;
    for (let y = 26; y < height - 26; y += 1) {
      pointer(plot, "pointermove", x, y);
      const tip = checkTip(step, where);
      if (tip?.name) {
        found.set(tip.name, (found.get(tip.name) || 0) + 1);
        hits++;
        holes += hole;
        hole = 0;
      } else if (hits)
        hole++;
    }
    check(where === "arena" || holes === 0, `${where}: ${holes} pixels between tensors are none`);
    // Each is as high as its bytes.
    const there = aliveAt(step, step.peak_slot).filter(b => where !== "arena" || b.offset !== undefined),
          all = there.reduce((n, b) => n + b.bytes, 0);
    for (const b of there) {
      const expected = b.bytes / all * hits, n = found.get(b.name) || 0;
      check(Math.abs(n - expected) <= 2 + 0.04 * expected,
        `${where}: ${b.name} is ${n} pixels high instead of ${expected.toFixed(1)}`);
    }
    return found;
  }
  // The largest x that is an operation.
  function rightEdge(plot) {
    let x = plot.getBoundingClientRect().width - 1;
    for (pointer(plot, "pointermove", x, 60); !shownTip() && x > 80; x--) pointer(plot, "pointermove", x, 60);
    return x;
  }
  // The x of a slot, found by pointing.
  function xOfSlot(plot, slot) {
    let [low, high] = [66, plot.getBoundingClientRect().width - 14];
    for (let turns = 0; turns < 40; turns++) {
      const x = (low + high) / 2;
      pointer(plot, "pointermove", x, 40);
      const at = Number(
        /^operation ([\d,]+)/.exec(shownTip()?.querySelector(".at:last-child")?.textContent)?.[1].replaceAll(",", "") ??
        Infinity);
      if (at === slot) return x;
      if (at < slot)
        low = x;
      else
        high = x;
    }
    faults.push(`no point of the chart is operation ${slot}`);
    return 100;
  }

  async function checkLandmarks() {
    for (const mark of ["header", "nav", "main", "footer"]) check(all(mark).length === 1, `one ${mark}`);
    check(all("h1").length === 1, "one h1");
    all("section[id]")
      .forEach(s => check(text(one(`h2#${s.getAttribute("aria-labelledby")}`, s)), `section ${s.id} has a heading`));
    let before = 1;
    for (const h of all("h1,h2,h3,h4")) {
      const level = Number(h.tagName[1]);
      check(level <= before + 1, `heading “${text(h)}” leaves out a level`);
      before = level;
    }
    check(document.title.includes(facts.title), "the title names the model");
    all("nav a").forEach(
      a => check(document.getElementById(a.getAttribute("href").slice(1)), `${a.getAttribute("href")} leads nowhere`));
    all("button, a[href], select, input")
      .forEach(b => check(/\w/.test(b.getAttribute("aria-label") || text(b)) || b.labels?.length,
                 `a ${b.tagName}, “${text(b)}”, has no name`));
    all(".body").forEach(b => check(b.childElementCount > 0, `panel ${b.parentNode.id} is empty`));
  }

  // Bytes are words that --budget takes.
  async function checkWords() {
    const panels = all("header, main section:not(#source, #ir)"),
          words = panels.map(text).concat(all("[title]").map(n => n.title), all("svg text").map(text)).join(" | "),
          spaced = /[^ ]*\d ([KMGT]i)?B\b/.exec(words);
    check(!spaced, `bytes in two words: ${spaced?.[0]}`);
    check(/\d[KMGT]iB\b/.test(words), "no bytes are shown");
  }

  async function checkMemory() {
    for (const which of ["kept", "planned"]) {
      const plot = plotOf(which), step = facts[which], colours = coloursOf(plot), {width, height} = pixels(plot);
      const most = Math.max(facts.kept.peak_bytes, facts.planned.peak_bytes),
            slots = Math.max(facts.kept.load.length, facts.planned.load.length);
      for (const kind of new Set(step.buffers.map(b => b.kind))) {
        const own = step.buffers.filter(b => b.kind === kind),
              area = own.reduce((n, b) => n + b.bytes * (b.end - b.first), 0) / most / slots * width * height;
        const isThick = own.some(b => b.bytes > most / 12);
        if (area > 300 && isThick)
          check(colours.get(colourNumber(kind)) > area / 8, `${which}: nothing is drawn in the colour of ${kind}`);
      }
      const x = xOfSlot(plot, step.peak_slot), found = sweep(plot, step, x, `memory, ${which}`);
      const scale = Math.max(facts.kept.peak_bytes, facts.planned.peak_bytes) * 1.06 /
        plot.querySelector("canvas").getBoundingClientRect().height;
      aliveAt(step, step.peak_slot)
        .filter(b => b.bytes > 4 * scale)
        .forEach(b => check(found.has(b.name), `${which}: pointing at the peak does not find ${b.name}`));
      check(text(plot.closest("figure")).includes(`at operation ${step.peak_slot.toLocaleString("en-US")} of`),
        `${which}: says where the peak is`);
      pointer(plot, "pointerleave", 0, 0);
      check(!shownTip(), "the tooltip leaves with the pointer");
    }
    if (facts.plan.budget_bytes) {
      const [kept, planned] = ["kept", "planned"].map(w => rowOfColour(plotOf(w), "limit"));
      check(kept > 0 && Math.abs(kept - planned) <= 1,
        `the budget is a line at one height in both charts (rows ${kept} and ${planned})`);
    }
    check(rowOfColour(plotOf("planned"), "bound") > 0 || facts.plan.peak_lower_bound_bytes > facts.kept.peak_bytes,
      "the proven bound is a line");
  }

  async function checkKeyboard() {
    const plot = plotOf("planned"), step = facts.planned;
    check(plot.tabIndex === 0 && plot.getAttribute("aria-label"), "a chart can be focused and has a name");
    press(plot, "p");
    const peak = checkTip(step, "keyboard");
    check(peak?.slot === step.peak_slot, "P goes to the peak");
    press(plot, "ArrowUp");
    const second = checkTip(step, "keyboard"),
          sizes = aliveAt(step, step.peak_slot).map(b => b.bytes).sort((a, b) => b - a);
    check(
      peak.bytes === sizes[0] && second.bytes === sizes[1], "up and down go through the tensors, the largest first");
    press(plot, "ArrowRight");
    check(checkTip(step, "keyboard")?.slot === Math.min(step.load.length - 1, step.peak_slot + 1),
      "right goes to the next operation");
    press(plot, "Home");
    check(checkTip(step, "keyboard")?.slot === 0, "Home goes to the first operation");
    press(plot, "End");
    check(checkTip(step, "keyboard")?.slot === step.load.length - 1, "End goes to the last operation");
    press(plot, "Enter");
    const name = shownTip().querySelector("b")?.textContent;
    check(text(one("#memory .bar-of-tools")).includes(`marked: ${name}`), "Enter marks a tensor");
    all("#memory .bar-of-tools button").pop().click();
    check(!text(one("#memory .bar-of-tools")).includes("marked:"), "Unmark unmarks it");
    press(plot, "Escape");
    check(!shownTip(), "Escape hides the tooltip");
  }

  async function checkZoom() {
    const plot = plotOf("planned"), step = facts.planned, tools = one("#memory .bar-of-tools"),
          before = pixels(plot).data.slice();
    const button = title => all("button", tools).find(b => b.title === title);
    check(button("Show the whole step").disabled, "the whole step is shown at first");
    button("Zoom in").click();
    await wait();
    const shown = /operations ([\d,]+) to ([\d,]+)/.exec(text(tools)),
          slots = Math.max(facts.kept.load.length, step.load.length);
    check(shown, "zooming says what is shown");
    check(Math.abs(1 + Number(shown[2].replace(",", "")) - shown[1].replace(",", "") - slots / 2) <= 1,
      "zooming shows half as much");
    const at = x => {
      pointer(plot, "pointermove", x, 60);
      return checkTip(step, "zoomed").slot;
    };
    check(Math.abs(at(rightEdge(plot)) - at(68) - slots / 2) <= 2 + 3 * slots / plot.clientWidth,
      "zooming draws half as much");
    check(pixels(plot).data.some((v, i) => v !== before[i]), "zooming draws anew");
    button("Show the whole step").click();
    const width = plot.getBoundingClientRect().width;
    pointer(plot, "pointerdown", width * 0.4, 60, {button: 0, buttons: 1});
    pointer(plot, "pointermove", width * 0.7, 60, {button: 0, buttons: 1});
    pointer(plot, "pointerup", width * 0.7, 60, {button: 0});
    check(/operations [\d,]+ to [\d,]+/.test(text(tools)), "dragging zooms");
    button("Show the whole step").click();
    check(!/operations [\d,]+ to/.test(text(tools)), "and back");
  }

  async function checkPeak() {
    const step = facts.planned, exact = node => Number(/\(([\d,]+) bytes\)/.exec(node.title)?.[1].replaceAll(",", ""));
    const page = one("#peak [role=tabpanel]"), tops = all(".tree > li", page).map(li => exact(one(".bytes", li)));
    check(tops.reduce((a, b) => a + b, 0) === step.peak_bytes,
      `the groups at the peak sum to its bytes (${tops.reduce((a, b) => a + b, 0)} of ${step.peak_bytes})`);
    for (let closed; (closed = all("details:not([open])", page)).length;) {
      closed.forEach(d => {
        d.open = true;
      });
      await wait(30);
    }
    const leaves = all("button.name", one(".tree", page)).map(b => b.textContent).sort(),
          names = aliveAt(step, step.peak_slot).map(b => b.name).sort();
    check(leaves.join("\n") === names.join("\n"),
      `the tree has ${leaves.length} tensors, ${names.length} live at the peak`);
    for (const percent of ["5", "10", "30"]) {
      const choice = one("#lower-planned", page);
      choice.value = percent;
      choice.dispatchEvent(new Event("change"));
      const table = one(".columns > :last-child table", page),
            chosen = all("tbody tr", table).map(r => one("button.name", r).textContent);
      const target = Math.floor(step.peak_bytes * (1 - percent / 100)), without = [...step.load];
      step.buffers.forEach(b => {
        if (chosen.includes(b.name))
          for (let s = b.first; s < b.end; s++) without[s] -= b.bytes;
      });
      const enough = Math.max(...without) <= target;
      check(enough || text(table).includes("not enough"),
        `${percent}%: without ${chosen.join(", ")} the peak is still ${Math.max(...without)}, above ${target}`);
      const gain = b => {
        let n = 0;
        for (let s = b.first; s < b.end; s++) n += Math.min(b.bytes, Math.max(0, step.load[s] - target));
        return n;
      };
      const best = Math.max(...step.buffers.filter(b => !persistent(b)).map(gain)),
            first = step.buffers.find(b => b.name === chosen[0]);
      check(!first || gain(first) === best, `${percent}%: ${chosen[0]} is not what helps most`);
    }
    all("#peak [role=tab]")[1].click();
    check(
      text(all("#peak [role=tabpanel]")[1]).includes(`at operation ${facts.kept.peak_slot.toLocaleString("en-US")}`),
      "the other tab shows the other step");
    all("#peak [role=tab]")[0].click();
  }

  async function checkArena() {
    const step = facts.planned, placed = step.buffers.filter(b => b.offset !== undefined), plot = plotOf("arena");
    const x = xOfSlot(plot, step.peak_slot), found = sweep(plot, step, x, "arena"),
          height = plot.querySelector("canvas").getBoundingClientRect().height;
    placed.filter(b => b.first <= step.peak_slot && step.peak_slot < b.end && b.bytes > 4 * step.arena_bytes / height)
      .forEach(b => check(found.has(b.name), `arena: pointing does not find ${b.name}`));
    check(text(one("#arena figcaption")).includes("are allocated"), "the arena says how much is allocated");
    const held = step.buffers.reduce((n, b) => n + (b.holds?.length || 0) + (b.over !== undefined ? 1 : 0), 0),
          box = document.querySelector("#arena details");
    if (held) {
      check(
        text(one("summary", box)).includes(` ${held.toLocaleString("en-US")},`), "the arena counts what lies in place");
      box.open = true;
      await wait();
      all("button.more", box).forEach(b => b.click());
      check(all("tbody tr", box).length === held, "what lies in place is a table");
    }
    pointer(plot, "pointerleave", 0, 0);
  }

  async function checkBudget() {
    const good = r => ["feasible", "optimal", "limit"].includes(r.status) && typeof r.overhead_percent === "number";
    const others = facts.solvers.filter(r => r.solver !== facts.plan.solver),
          rows = [...facts.frontier, ...others, facts.plan].filter(good), points = all("#budget svg g[tabindex]");
    check(points.length === rows.length, `${points.length} points, ${rows.length} plans`);
    others.filter(good).forEach(
      r => check(points.some(p => p.getAttribute("aria-label").startsWith(`${r.solver}: `) &&
                     p.getAttribute("aria-label").includes(`${r.overhead_percent.toFixed(1)}%`)),
        `no point is ${r.solver}`));
    const methods = others.filter(good), listed = all("#budget .methods tbody tr[data-key]");
    check(
      !methods.length || listed.length === methods.length + 1, `${listed.length} rows for ${methods.length} methods`);
    for (const r of methods) {
      const row = listed.find(l => l.children[1].textContent === r.solver), key = row?.dataset.key;
      check(row && text(row).includes(`${r.overhead_percent.toFixed(1)}%`), `the list of methods has no ${r.solver}`);
      const point = points.find(p => p.dataset.key === key);
      check(point?.getAttribute("aria-label").startsWith(`${r.solver}: `), `${key} is not the point of ${r.solver}`);
      point?.dispatchEvent(new FocusEvent("focusin", {bubbles: true}));
      check(row?.classList.contains("lit"), `focusing ${r.solver} does not light its row`);
    }
    const letters = all("#budget svg .letter").map(text);
    check(new Set(letters).size === letters.length && letters.length === Math.min(26, methods.length),
      "every point of a method has its letter");
    const box = one("#budget details");
    box.open = true;
    await wait();
    check(
      all("tbody tr", box).length === facts.frontier.length + others.length + 1, "every plan is a row of the table");
    seen.plan_row = all("tr.this td", box).map(text);
  }

  async function checkReruns() {
    const rows = () => all("#reruns tbody tr"), facts_ = facts.recomputations;
    if (!facts_.length)
      return check(text(one("#reruns .none")).includes("--budget"), "no recomputation: says how to get some");
    all("#reruns button.more").forEach(b => b.hidden || b.click());
    check(rows().length === facts_.length, `${rows().length} rows, ${facts_.length} recomputations`);
    const column = title => all("#reruns th").findIndex(th => th.textContent === title),
          cells = title => rows().map(r => r.children[column(title)]);
    const names = new Map(facts_.map(r => [facts.planned.operations[r.slot].name, r]));
    rows().forEach(row => {
      const r = names.get(one("button.name", row).textContent);
      check(r, `${text(row)} is no recomputation`);
      if (!r) return;
      check(
        one("[title]", row.children[column("Frees")]).title.includes(`(${r.bytes.toLocaleString("en-US")} bytes)`) ||
          r.bytes < 1024,
        `${text(row)}: frees ${r.bytes}`);
      check(text(row.children[column("From – to")]) ===
          `${r.from.toLocaleString("en-US")} – ${(r.to - 1).toLocaleString("en-US")}`,
        `${text(row)}: from ${r.from} to ${r.to - 1}`);
      check(
        text(row).includes(r.spans_peak ? "over the peak" : "beside the peak"), `${text(row)}: over the peak, or not`);
      (r.instead || [])
        .slice(0, 3)
        .forEach(n => check(row.lastElementChild.textContent.includes(n), `${text(row)}: ${n} would live on`));
      const over = r.without_peak_bytes - (facts.plan.budget_bytes ?? Infinity), shown = text(row.lastElementChild);
      const words = r.without_peak_bytes <= facts.planned.peak_bytes ? /^the same peak/ :
        over > 0 ? /^peak [\d.]+([KMGT]i)?B, [\d.]+([KMGT]i)?B over the budget/ :
                   /^peak .*(within the budget|above this plan)/;
      check(words.test(shown), `${text(row)}: the peak without it`);
    });
    for (const title of ["Frees", "Runs again", "Costs"]) {
      const head = all("#reruns th")[column(title)];
      one("button", head).click();
      const first = head.getAttribute("aria-sort");
      one("button", all("#reruns th")[column(title)]).click();
      const second = all("#reruns th")[column(title)].getAttribute("aria-sort");
      check(
        [first, second].sort().join() === "ascending,descending", `${title}: sorted both ways (${first}, ${second})`);
      const key = {Frees: r => r.bytes, Costs: r => r.cost}[title];
      if (key) {
        const values = rows().map(r => key(names.get(one("button.name", r).textContent))),
              sign = second === "ascending" ? 1 : -1;
        check(values.every((v, i) => !i || sign * (v - values[i - 1]) >= 0), `${title}: not in order`);
      }
    }
    const search = one("#reruns-filter"), name = facts.planned.operations[facts_[0].slot].name;
    search.value = name;
    search.dispatchEvent(new Event("input"));
    check(rows().length >= 1 && rows().every(r => text(r).includes(name)), "the filter leaves what it names");
    search.value = "";
    search.dispatchEvent(new Event("input"));
  }

  async function checkSource() {
    if (!facts.source?.text) return check(document.querySelector("#source .none"), "no source: says so");
    const rows = all("#source tbody tr"), lines = facts.source.text.replace(/\n$/, "").split("\n");
    check(
      rows.map(r => r.lastElementChild.textContent).join("\n") === lines.join("\n"), "the source is shown as it is");
    for (const l of facts.source.lines) {
      if (!(l.peak_bytes > 0) || !rows[l.line - 1]) continue;
      const shown = text(rows[l.line - 1].children[0]),
            expected = (100 * l.peak_bytes / facts.planned.peak_bytes).toFixed(1);
      check(shown === `${expected}%` || (shown === "<0.1%" && expected <= 0.1),
        `line ${l.line}: ${shown}, not ${expected}%`);
    }
  }

  async function checkIr() {
    const tab = title => all("#ir [role=tab]").find(t => t.textContent === title),
          pageOf = t => document.getElementById(t.getAttribute("aria-controls"));
    const graph = pageOf(tab("Graph as planned")), items = () => all("[role=treeitem]", graph);
    all("button", graph).find(b => b.textContent === "Open all").click();
    const leaves = items().filter(i => !i.hasAttribute("aria-expanded"));
    check(leaves.length === facts.planned.operations.length,
      `${leaves.length} operations in the graph of ${facts.planned.operations.length}`);
    check(leaves.filter(i => i.querySelector(".again")).length ===
        facts.planned.operations.filter(o => o.again !== undefined).length,
      "what runs again says so");
    all("button", graph).find(b => b.textContent === "Close all").click();
    items()[0].focus();
    const closed = items().length;
    press(one("[role=tree]", graph), "ArrowRight");
    check(items().length > closed && items()[0].getAttribute("aria-expanded") === "true", "right opens a group");
    press(one("[role=tree]", graph), "ArrowDown");
    check(document.activeElement === items()[1], "down goes to the next row");
    press(one("[role=tree]", graph), "ArrowLeft");
    press(one("[role=tree]", graph), "ArrowLeft");
    check(items().length === closed, "left closes it");
    items().forEach(i => i.dispatchEvent(new PointerEvent("pointerenter")));
    check(items().some(i => {
      i.dispatchEvent(new PointerEvent("pointerenter"));
      return all("svg path", graph).length > 0;
    }),
      "arcs show what reads what");
    if (!facts.ir?.before) return;
    tab("Before").click();
    check(pageOf(tab("Before")).textContent === facts.ir.before, "the text before is shown as it is");
    tab("After").click();
    check(pageOf(tab("After")).textContent === facts.ir.after, "the text after is shown as it is");
    tab("Difference").click();
    const diff = pageOf(tab("Difference"));
    all("tr.gap button", diff).forEach(b => b.click());
    const rows = all("tbody tr",
      diff).map(r => ({a: r.children[0].textContent, b: r.children[1].textContent, text: r.children[3].textContent}));
    if (facts.ir.before !== facts.ir.after) {
      check(rows.filter(r => r.a).map(r => r.text).join("\n") === facts.ir.before,
        "the rows of the difference with a line before are the text before");
      check(rows.filter(r => r.b).map(r => r.text).join("\n") === facts.ir.after,
        "the rows of the difference with a line after are the text after");
      seen.same_rows = rows.filter(r => r.a && r.b).length;
      const removed = new Set(all("tr.del", diff).map(r => r.children[3].textContent));
      check(
        !all("tr.add", diff).some(r => removed.has(r.children[3].textContent) && /=/.test(r.children[3].textContent)),
        "a line that moved is not marked as moved");
    }
    tab("Graph as planned").click();
  }

  async function checkMeasured() {
    if (!facts.measured)
      return check(text(one("#measured .none")).includes("--measure"), "no measurement: says how to get one");
    all("#measured button.more").forEach(b => b.hidden || b.click());
    check(all("#measured table")[0].querySelectorAll("tbody tr").length === facts.measured.kernels.length,
      "every kernel is a row");
    const useful = facts.measured.kernels.filter(k => k.flops > 0 && k.bytes > 0 && k.gflops > 0);
    check(all("#measured svg circle:not(.ring)").length === useful.length, "every kernel is a circle of the roofline");
    seen.measured = {
      kernels: facts.measured.kernels.length,
      circles: useful.length,
      events: facts.measured.threads.reduce((n, t) => n + t.events.length, 0)
    };
    const spent = all("#measured table")[0].querySelector("tbody tr td:nth-child(4)").textContent;
    check(/^[\d.]+ (µs|ms|s)$/.test(spent), `a kernel takes ${spent}`);
    check(all("#reruns th").some(th => th.textContent === "Measured"), "recomputations have their measured time");
    check(all("#source th").some(th => th.textContent === "Measured"), "lines have their measured time");
    const plot = one("#measured .plot"), box = plot.getBoundingClientRect();
    // The first thread's time lies between 90 pixels from the left and 10 from the right.
    const last = Math.max(...facts.measured.threads.flatMap(t => t.events.map(e => e[0] + e[1])));
    let found = 0;
    for (let x = 95; x < box.width - 12; x += 3) {
      pointer(plot, "pointermove", x, 22 + 15);
      const time = (x - 90) / (box.width - 100) * last,
            names = [-0.5, 0, 0.5]
                      .map(dx => time + dx / (box.width - 100) * last)
                      .map(t => facts.measured.threads[0].events.find(e => e[0] <= t && t < e[0] + e[1]))
                      .map(e => e && facts.measured.kernels[e[2]].name);
      const name = shownTip()?.querySelector("b").textContent;
      check(names.includes(name), `the timeline names ${name} where ${names[1]} runs`);
      found += name !== undefined;
    }
    check(found > 3, "pointing at the timeline names kernels");
    pointer(plot, "pointerleave", 0, 0);
  }

  async function checkTheme() {
    const button = one("#theme"), ground = () => getComputedStyle(document.body).backgroundColor, first = ground(),
          pressed = button.getAttribute("aria-pressed");
    const before = coloursOf(plotOf("planned"));
    button.click();
    await wait();
    check(ground() !== first && button.getAttribute("aria-pressed") !== pressed, "the button changes the theme");
    check([...coloursOf(plotOf("planned")).keys()].sort().join() !== [...before.keys()].sort().join(),
      "and the charts with it");
    for (const [ink, behind] of [["ink", "panel"], ["muted", "panel"], ["muted", "ground"], ["accent", "panel"],
           ["limit", "panel"], ["bound", "panel"], ["on-kind", "activation"], ["on-kind", "gradient"],
           ["on-kind", "recomputed"], ["on-kind", "weights"], ["on-kind", "optimizer"], ["on-kind", "workspace"]])
      checkContrast(ink, behind);
    button.click();
    await wait();
    check(ground() === first, "and back");
    for (const [ink, behind] of [["ink", "panel"], ["muted", "panel"], ["muted", "ground"], ["accent", "panel"],
           ["limit", "panel"], ["bound", "panel"]])
      checkContrast(ink, behind);
  }
  // WCAG 2.2, success criterion 1.4.3.
  function checkContrast(ink, behind) {
    const light = name => [16, 8, 0]
                            .map(k => (colourNumber(name) >> k & 255) / 255)
                            .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const [a, b] = [light(ink), light(behind)].sort((p, q) => q - p), ratio = (a + 0.05) / (b + 0.05);
    check(ratio >= 4.5, `${ink} on ${behind} has a contrast of ${ratio.toFixed(2)}`);
  }

  await wait(200);
  // Panels are built, and drawn, when there is time for it.
  const isReady = () => all(".body").every(b => b.childElementCount) && document.querySelector("#budget svg g") &&
    all(".plot").every(p => p.querySelector("canvas").width === Math.round(p.clientWidth * devicePixelRatio));
  for (let k = 0; k < 200 && !isReady(); k++) await wait(100);
  const parts = {
    checkLandmarks,
    checkWords,
    checkMemory,
    checkKeyboard,
    checkZoom,
    checkPeak,
    checkArena,
    checkBudget,
    checkReruns,
    checkSource,
    checkIr,
    checkMeasured,
    checkTheme
  };
  for (const [name, run] of Object.entries(parts)) await part(name, run);
  await wait(200);
  check(document.documentElement.scrollWidth <= innerWidth,
    `the page is ${document.documentElement.scrollWidth} wide, the window ${innerWidth}`);
  check(performance.getEntriesByType("resource").length === 0, "the page loads something");
  check(!document.querySelector("img, iframe, object, embed"), "an element came from the data");
  seen.headline = text(one("#headline"));
  seen.figures = Object.fromEntries(
    all("[data-figure]")
      .map(
        dd => [dd.dataset.figure, {text: dd.firstChild.textContent, small: text(one("small", dd)), title: dd.title}]));
  seen.subline = text(one("#subline"));
  parent.postMessage(JSON.stringify({faults, seen}), "*");
})();
