"use strict";
// Sorts the tables, and filters those that are long. The page is whole without it.
const LONG = 6;
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    const [numeric, other] = [a !== "" && !Number.isNaN(x), b !== "" && !Number.isNaN(y)];
    if (numeric && other) return x - y;
    if (numeric !== other) return numeric ? -1 : 1;
    return a.localeCompare(b, "en", { numeric: true });
  };
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent.trim();
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = [...rows].sort((a, b) => compare(value(a, column), value(b, column)));
      body.append(...(down ? sorted.reverse() : sorted));
    });
  });
  if (rows.length < LONG) continue;
  const label = document.createElement("label");
  label.className = "filter";
  label.append("Filter ");
  const input = document.createElement("input");
  input.type = "search";
  input.setAttribute("aria-label", "Filter the table " + table.dataset.name);
  label.append(input, " ");
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  label.append(count);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = words.length ? shown + " of " + rows.length : "";
  });
  table.parentElement.before(label);
}
