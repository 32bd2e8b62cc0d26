// Keeps the numbers beside the forms up to date.
"use strict";

const shown = document.querySelectorAll("[data-counts]");

const look = async () => {
  if (document.hidden) return;
  const response = await fetch("/counts", { cache: "no-store" }).catch(() => null);
  if (!response?.ok) return;
  const counts = await response.json();
  for (const element of shown) {
    const { sent, orders } = counts[element.dataset.counts];
    element.querySelector("[data-sent]").textContent = sent;
    element.querySelector("[data-orders]").textContent = orders;
    element.classList.toggle("alarm", element.dataset.counts === "nothing" && orders > 1 && orders === sent);
  }
};

look();
setInterval(look, 1000);
