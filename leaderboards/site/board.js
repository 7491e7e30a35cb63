"use strict";
// Sort tables by their headings and filter rows by words. Without this script the tables are complete, in their order.
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
  const count = document.getElementById(input.dataset.count);
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let visible = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      visible += row.hidden ? 0 : 1;
    }
    count.textContent = `${visible} of ${table.tBodies[0].rows.length} rows`;
  };
  input.addEventListener("input", filter);
  filter();
}
