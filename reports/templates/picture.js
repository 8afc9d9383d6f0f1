"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const bars = new Map([...document.querySelectorAll("[data-bar]")].map((bar) => [Number(bar.dataset.bar), bar]));
const orders = [...document.querySelectorAll("[data-order]")];
const scroll = document.querySelector(".scroll");
const bad = document.querySelector(".bar.bad") || [...document.querySelectorAll(".bar.evidence")].pop() || bars.get(0);
let chosen = bad ? Number(bad.dataset.bar) : 0, order = 0;

// Show the details of a bar below the timeline: its facts, then the states before and after it in the selected order.
function showDetails(number) {
  const bar = data.bars[number], step = data.orders[order] && data.orders[order][number];
  if (!bar) return;
  document.getElementById("details-title").textContent = bar.title;
  document.getElementById("details-label").textContent = bar.label;
  const rows = bar.details.map(([name, text]) => [name, text, ""]);
  if (step) rows.push(["Place in the order", String(step[0]), ""], ["State before", step[1], "state"], ["State after", step[2], "state"]);
  else if (data.orders.length && bars.get(number).classList.contains("process")) rows.push(["Place in the order", "none: not placed", ""]);
  document.getElementById("details").replaceChildren(...rows.map(([name, text, kind]) => {
    const row = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = name; dd.textContent = text; row.className = kind || (text.length > 50 ? "wide" : "");
    row.append(dt, dd);
    return row;
  }));
}

function choose(number, centre) {
  if (!bars.has(number)) return;
  bars.get(chosen).classList.remove("chosen");
  chosen = number;
  const bar = bars.get(number);
  bar.classList.add("chosen");
  showDetails(number);
  const box = bar.getBoundingClientRect(), view = scroll.getBoundingClientRect();
  if (centre || box.left < view.left || box.right > view.right) {
    scroll.scrollLeft += box.left + box.width / 2 - view.left - view.width / 2;
  }
}

function showOrder(number) {
  if (!orders[number]) return;
  order = number;
  orders.forEach((group, place) => group.toggleAttribute("hidden", place !== number));
  document.querySelectorAll("[name=order]").forEach((radio) => { radio.checked = Number(radio.value) === number; });
  showDetails(chosen);
}

const moves = {
  previous: () => choose(chosen - 1), next: () => choose(chosen + 1), bad: () => bad && choose(Number(bad.dataset.bar), true),
};
const keys = {
  ArrowLeft: moves.previous, ArrowRight: moves.next, b: moves.bad, Home: () => choose(0), End: () => choose(data.bars.length - 1),
};
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  else if (event.key >= "1" && event.key <= "9") showOrder(Number(event.key) - 1);
});
for (const [number, bar] of bars) {
  bar.addEventListener("mouseenter", () => showDetails(number));
  bar.addEventListener("mouseleave", () => showDetails(chosen));
  bar.addEventListener("click", () => choose(number));
}
document.querySelectorAll("[data-do]").forEach((button) => button.addEventListener("click", moves[button.dataset.do]));
document.querySelectorAll("[name=order]").forEach((radio) => radio.addEventListener("change", () => showOrder(Number(radio.value))));
document.querySelectorAll(".tools, .help").forEach((part) => { part.hidden = false; });
moves.bad();
