"use strict";
(() => {
  const form = document.querySelector("form.filter");
  const rows = [...document.querySelectorAll(".defects tr[data-standing]")];
  const count = form.querySelector("output");
  const apply = () => {
    const wanted = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const standings = new Set([...form.querySelectorAll("[name=standing]:checked")].map((box) => box.value));
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !standings.has(row.dataset.standing) || !wanted.every((word) => text.includes(word));
    }
    for (const body of document.querySelectorAll(".defects tbody")) {
      body.hidden = ![...body.querySelectorAll("tr[data-standing]")].some((row) => !row.hidden);
    }
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} defects`;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
})();
