"use strict";
// Sorting by the headings and filtering by words; without it the tables are whole and in their order.
for (const table of document.querySelectorAll("table[data-sorts]")) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const cell = row.cells[column];
    const number = Number(cell.dataset.value ?? "x");
    return Number.isNaN(number) ? cell.textContent.trim().toLowerCase() : number;
  };
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a, column), value(b, column)];
        if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
        const order = x < y ? -1 : x > y ? 1 : 0;
        return down ? -order : order;
      });
      body.append(...rows);
    });
  });
}
for (const input of document.querySelectorAll("input[data-filters]")) {
  input.closest(".tools").hidden = false;
  const table = document.getElementById(input.dataset.filters);
  const told = document.getElementById(input.dataset.told);
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    told.textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
  };
  input.addEventListener("input", filter);
  filter();
}
