"use strict";
(() => {
  const form = document.getElementById("filters");
  for (const block of document.querySelectorAll("pre.command")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const text = block.querySelector("code").textContent;
      let done = true;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        done = document.execCommand("copy");
        area.remove();
        button.focus();
      }
      button.textContent = done ? "Copied" : "Select it";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
  if (!form) { return; }
  form.hidden = false;
  const list = document.getElementById("list");
  const count = document.getElementById("count");
  const search = document.getElementById("search");
  const sort = document.getElementById("sort");
  const facets = ["code", "severity", "status", "topic"];
  const rows = Array.from(list.children, (element) => ({ element, data: element.dataset, text: null }));
  const words = (row) => {
    if (row.text === null) { row.text = row.element.textContent.toLowerCase(); }
    return row.text;
  };
  const filter = () => {
    const wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const values = facets.map((name) => [name, document.getElementById("by-" + name).value]);
    let shown = 0;
    for (const row of rows) {
      const fits = values.every(([name, value]) => !value || row.data[name] === value)
        && (wanted.length === 0 || wanted.every((word) => words(row).includes(word)));
      if (row.element.hidden === fits) { row.element.hidden = !fits; }
      if (fits) { shown += 1; }
    }
    count.textContent = shown + " of " + rows.length + " shown";
  };
  const orders = {
    number: (a, b) => a.data.number - b.data.number,
    time: (a, b) => b.data.time - a.data.time || a.data.number - b.data.number,
    topic: (a, b) => a.data.topic.localeCompare(b.data.topic) || a.data.number - b.data.number,
    code: (a, b) => a.data.code.localeCompare(b.data.code) || a.data.number - b.data.number,
  };
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });
  for (const name of facets) {
    document.getElementById("by-" + name).addEventListener("change", filter);
  }
  sort.addEventListener("change", () => {
    list.append(...rows.slice().sort(orders[sort.value]).map((row) => row.element));
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); filter(); });
  const unfold = document.getElementById("unfold");
  unfold.addEventListener("click", () => {
    const open = unfold.textContent === "Open all";
    for (const row of rows) { if (!row.element.hidden && row.element.tagName === "DETAILS") { row.element.open = open; } }
    unfold.textContent = open ? "Close all" : "Open all";
  });
  const named = () => {
    const target = location.hash.startsWith("#f-") && document.getElementById(location.hash.slice(1));
    if (target) { target.open = true; target.scrollIntoView(); }
  };
  window.addEventListener("hashchange", named);
  filter();
  named();
})();
