// Filters, theme and rows that unfold on demand. The page is complete without it.
(() => {
  "use strict";

  const FACETS = ["rule", "severity", "framework", "verdict", "weight"];
  const STEP = 100; // rows of a list that are laid out at once; as in the style sheet
  const THEMES = ["auto", "light", "dark"];
  const markup = window.trustedTypes
    ? window.trustedTypes.createPolicy("klaudit", { createHTML: (text) => text })
    : { createHTML: (text) => text };

  const root = document.documentElement;
  const form = document.getElementById("filters");
  const count = document.getElementById("count");
  const lists = [...document.querySelectorAll(".filtered")].map((list) => ({
    list,
    rows: [...list.children],
    none: list.parentElement.querySelector(".no-match"),
    more: list.parentElement.querySelector(".more"),
    limit: STEP,
    name: list.parentElement.querySelector("h2").textContent.toLowerCase(),
  }));

  // --- rows: what is inside stays the text of <noscript> until it is opened --------------------------------------------------------

  function unfold(details) {
    const folded = details.querySelector(":scope > noscript");
    if (!folded) return;
    const parsed = document.createElement("template");
    parsed.innerHTML = markup.createHTML(folded.textContent);
    folded.replaceWith(parsed.content);
    for (const link of details.querySelectorAll(".again > a")) showAgain(link);
  }

  function showAgain(link) {
    const id = link.hash.slice(1);
    const holder = document.querySelector(`[data-sources~="${id}"] > details`);
    if (!holder) return;
    unfold(holder);
    const copy = document.getElementById(id).cloneNode(true);
    copy.removeAttribute("id");
    link.parentElement.replaceWith(copy);
  }

  function reveal(id) {
    const target = id && document.getElementById(id);
    if (!target) return;
    const row = target.closest("li");
    const details = row && row.querySelector(":scope > details");
    if (!details) return;
    if (row.matches(".filtered > [data-left-out]")) clear();
    row.hidden = false; // beyond what is laid out at once
    unfold(details);
    details.open = true;
    row.scrollIntoView({ block: "start" });
    details.querySelector("summary").focus({ preventScroll: true });
  }

  document.addEventListener("toggle", (event) => {
    if (event.target.open) unfold(event.target);
  }, true);
  window.addEventListener("beforeprint", () => document.querySelectorAll("details[open]").forEach(unfold));

  for (const button of document.querySelectorAll(".open-all")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const rows = [...button.closest("section").querySelectorAll("li:not([hidden]) > details")];
      const open = rows.some((details) => !details.open);
      for (const details of rows) {
        if (open) unfold(details);
        details.open = open;
      }
      button.textContent = open ? "Close all" : "Open all shown";
    });
  }

  // --- filters: their state is the address's fragment, so that a view can be linked to ----------------------------------------------

  const texts = new Map();
  const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"' };

  function textOf(row) {
    let text = texts.get(row);
    if (text === undefined) {
      const folded = row.querySelector("noscript");
      const inside = folded ? folded.textContent.replace(/<[^>]*>/g, " ") : "";
      const plain = inside.replace(/&(?:#(x?)([0-9a-f]+)|(amp|lt|gt|quot));/g, (_, hex, code, name) =>
        name ? NAMED[name] : String.fromCodePoint(parseInt(code, hex ? 16 : 10)));
      text = `${row.querySelector("summary").textContent} ${folded ? plain : row.textContent}`.toLowerCase();
      texts.set(row, text);
    }
    return text;
  }

  function indexWhenIdle(rows) {
    if (!rows.length || !window.requestIdleCallback) return;
    requestIdleCallback((deadline) => {
      while (rows.length && deadline.timeRemaining() > 2) textOf(rows.pop());
      indexWhenIdle(rows);
    });
  }

  function limitTo(limit) {
    for (const list of lists) list.limit = limit;
    apply();
  }

  function state() {
    const given = new FormData(form);
    const wanted = {};
    for (const name of ["q", ...FACETS]) {
      const value = String(given.get(name) || "").trim();
      if (value) wanted[name] = value;
    }
    return wanted;
  }

  function apply() {
    const wanted = state();
    const facets = FACETS.filter((name) => wanted[name]);
    const words = (wanted.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    const told = [];
    for (const { list, rows, none, more, limit, name } of lists) {
      let fitting = 0;
      for (const row of rows) {
        const fits =
          facets.every((facet) => (row.dataset[facet] || "").split(" ").includes(wanted[facet])) &&
          (!words.length || words.every((word) => textOf(row).includes(word)));
        fitting += fits;
        const shown = fits && fitting <= limit;
        if (row.hidden === shown) row.hidden = !shown;
        row.toggleAttribute("data-left-out", !fits);
      }
      list.hidden = fitting === 0;
      none.hidden = fitting > 0;
      more.hidden = fitting <= limit;
      more.textContent = `Show ${Math.min(STEP, fitting - limit).toLocaleString("en")} more of ${(fitting - limit).toLocaleString("en")}`;
      told.push(`${fitting.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${name}`);
    }
    for (const name of FACETS) {
      if (form.elements[name]) form.elements[name].classList.toggle("set", Boolean(wanted[name]));
    }
    const message = `Showing ${told.join(" and ")}.`;
    if (count.textContent !== message) count.textContent = message;
  }

  function remember() {
    const fragment = new URLSearchParams(state()).toString();
    history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
  }

  function clear() {
    form.reset();
    for (const name of ["q", ...FACETS]) if (form.elements[name]) form.elements[name].value = "";
    apply();
  }

  function follow() {
    const fragment = location.hash.slice(1);
    if (!fragment.includes("=")) {
      reveal(fragment);
      return;
    }
    const wanted = new URLSearchParams(fragment);
    for (const name of ["q", ...FACETS]) {
      if (form.elements[name]) form.elements[name].value = wanted.get(name) || "";
    }
    apply();
  }

  if (lists.length) {
    form.hidden = false;
    form.addEventListener("input", () => { limitTo(STEP); remember(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", (event) => { event.preventDefault(); clear(); remember(); });
    window.addEventListener("hashchange", () => {
      follow();
      if (location.hash.includes("=")) form.scrollIntoView({ block: "start" });
    });
    for (const each of lists) {
      each.more.addEventListener("click", () => {
        const next = each.rows.filter((row) => !row.hasAttribute("data-left-out"))[each.limit];
        each.limit += STEP;
        apply();
        next.querySelector("summary").focus();
      });
    }
    window.addEventListener("beforeprint", () => limitTo(Infinity));
    window.addEventListener("afterprint", () => limitTo(STEP));
    apply();
    for (const { list } of lists) list.classList.add("ready");
    follow();
    indexWhenIdle(lists.flatMap(({ rows }) => rows).reverse());
  }

  // --- theme ------------------------------------------------------------------------------------------------------------------------

  const toggle = document.getElementById("theme");

  function kept() {
    try {
      return THEMES.includes(localStorage.getItem("klaudit-theme")) ? localStorage.getItem("klaudit-theme") : "auto";
    } catch {
      return "auto"; // a page from a file may have no storage
    }
  }

  function paint(theme) {
    root.dataset.theme = theme;
    toggle.textContent = `Theme: ${theme}`;
    try {
      localStorage.setItem("klaudit-theme", theme);
    } catch { /* then it lasts as long as the page */ }
  }

  toggle.hidden = false;
  toggle.addEventListener("click", () => paint(THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length]));
  paint(kept());
})();
