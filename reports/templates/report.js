"use strict";
// The filter hides rows and columns; an area is hidden if all its rows are. Without this script everything is shown.
const form = document.querySelector(".filter");
const rows = [...document.querySelectorAll(".matrix tr[data-level]")];
const columns = [...form.querySelectorAll("[name=target]")];
const ticked = (name) => new Set([...form.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value));
function filter() {
  const text = form.elements.text.value.trim().toLowerCase();
  const standings = ticked("standing"), levels = ticked("level");
  for (const row of rows) {
    const own = row.dataset.standing.split(" ").filter((_, column) => columns[column]?.checked ?? true);
    row.hidden = !(own.some((standing) => standings.has(standing) || standing === "not-run") &&
      levels.has(row.dataset.level) && row.textContent.toLowerCase().includes(text));
  }
  for (const body of document.querySelectorAll(".matrix tbody")) {
    body.hidden = [...body.querySelectorAll("tr[data-level]")].every((row) => row.hidden);
  }
  for (const row of columns.length ? [document.querySelector(".matrix thead tr"), ...rows] : []) {
    columns.forEach((box, column) => { row.children[column + 1].hidden = !box.checked; });
  }
  form.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
}
form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
filter();
// A link from the matrix opens the finding it leads to.
function openTarget() {
  const finding = location.hash && document.getElementById(location.hash.slice(1));
  if (finding instanceof HTMLDetailsElement) { finding.open = true; finding.scrollIntoView(); }
}
addEventListener("hashchange", openTarget);
openTarget();
if (navigator.clipboard) {
  for (const button of document.querySelectorAll(".reproduce button")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
    });
  }
}
