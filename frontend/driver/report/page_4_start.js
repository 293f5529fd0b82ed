// SPDX-License-Identifier: GPL-3.0-or-later
// The first screen, the theme, printing.

// What the plan does, in one sentence.
function headline(plan) {
  const now = bytes(spentBytes(plan)), floor = `no schedule needs less than ${bytes(plan.peak_lower_bound_bytes)}`;
  if (!reached(plan)) return `No plan fits in ${bytes(plan.budget_bytes)}; ${floor}.`;
  if (plan.recomputed_ops === 0) return `${now}, with nothing computed again; ${floor}.`;
  return `${now} instead of ${bytes(plan.keep_all_peak_bytes)}, for ${moreTime(plan.overhead_percent)}; ${floor}.`;
}

function subline(plan) {
  const parts = [`${plural(plan.recomputed_ops, "operation")} ${plan.recomputed_ops === 1 ? "runs" : "run"} again` +
    (isNumber(plan.overhead_lower_bound_percent) ?
        `; within this budget, no schedule takes less than ${moreTime(plan.overhead_lower_bound_percent)}.` :
        ".")];
  if (plan.masked_tensors > 0)
    parts.push(`${plural(plan.masked_tensors, "tensor")} ${
      plan.masked_tensors === 1 ? "is kept as a mask" : "are kept as masks"}.`);
  if (isNumber(plan.arena_bytes))
    parts.push(plan.arena_bytes === plan.arena_lower_bound_bytes ?
        "The arena equals its lower bound: no placement of this schedule is smaller." :
        `The arena's lower bound is ${bytes(plan.arena_lower_bound_bytes)}.`);
  return parts.join(" ");
}

function figure(term, value, note, key, exact) {
  return el("div", {}, el("dt", {}, term),
    el("dd", {"data-figure": key, title: exact || false}, value, note && el("small", {}, note)));
}

function start() {
  const {plan} = data, sized = key => exactBytes(plan[key]);
  document.title = `${data.title}: ${bytes(spentBytes(plan))}, scrimp report`;
  const set = (id, text) => {
    document.getElementById(id).textContent = text;
  };
  set("title", data.title);
  set("headline", headline(plan));
  set("subline", subline(plan));
  set("command", data.command);
  set("about",
    `scrimp ${data.version}, ${data.device}. Times by the cost model “${plan.cost}”. ` +
      "Bytes are of the whole step, weights and optimizer state included, rounded up: the tooltips have all digits.");
  document.getElementById("figures").append(isNumber(plan.arena_bytes) ?
      figure("As planned", bytes(plan.arena_bytes), "the whole arena", "arena_bytes", sized("arena_bytes")) :
      figure("As planned", bytes(plan.peak_bytes), "peak of the step", "peak_bytes", sized("peak_bytes")),
    figure("Everything kept", bytes(plan.keep_all_peak_bytes), "no recomputation", "keep_all_peak_bytes",
      sized("keep_all_peak_bytes")),
    isNumber(plan.budget_bytes) ?
      figure("Budget", bytes(plan.budget_bytes), "for the whole step", "budget_bytes", sized("budget_bytes")) :
      "",
    figure("Proven bound", bytes(plan.peak_lower_bound_bytes), "of every schedule", "peak_lower_bound_bytes",
      sized("peak_lower_bound_bytes")),
    figure("Extra time", percent(plan.overhead_percent), `at least ${percent(plan.overhead_lower_bound_percent)}`,
      "overhead_percent", String(plan.overhead_percent)),
    figure("Recomputations", count(plan.recomputed_ops), `of ${count(data.planned.operations.length)} operations`,
      "recomputed_ops"),
    figure("Always in memory", bytes(plan.persistent_bytes), "weights, optimizer", "persistent_bytes",
      sized("persistent_bytes")));
  themes();
  buildOnDemand();
  // Closed parts and panels that were not seen yet belong on paper, too.
  addEventListener("beforeprint", () => {
    buildAll();
    tell("theme");
  });
  addEventListener("afterprint", () => tell("theme"));
}

function themes() {
  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)"),
        button = document.getElementById("theme");
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  const show = () => {
    button.setAttribute("aria-pressed", isDark());
    tell("theme");
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  system.addEventListener("change", show);
  show();
}

start();
