// Sees to it that a form has a token. It disables nothing: what protects is the server, and without this script the
// token that came with the page does.
//
//   <form id="checkout-form" method="post" action="/checkout" data-once>
//     <input type="hidden" name="_token" value="" data-from="/checkout/token" data-life="300">
//
// - A page that the browser brings back, by its Back button, has the token (and the address) that it had before, also
//   where the browser asked the server for the page anew. So a form that was sent stays one that was sent, until somebody
//   reloads the page.
// - A form without a token, or with one whose life is nearly over, gets a new one, unless it was sent.
"use strict";

const broughtBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";

for (const form of document.querySelectorAll("form[data-once]")) {
  const token = form.elements.namedItem("_token");
  let timer;

  const keep = (sent) => {
    const once = { ...history.state?.once, [form.id]: { action: form.action, token: token?.value, sent } };
    history.replaceState({ ...history.state, once }, "");
  };

  const renewIn = (seconds) => {
    clearTimeout(timer);
    timer = setTimeout(fetchToken, seconds * 800);
  };

  const fetchToken = async () => {
    const response = await fetch(token.dataset.from, { cache: "no-store" });
    if (!response.ok) return;
    const issued = await response.json();
    token.value = issued.token;
    keep(false);
    renewIn(issued.expires_in);
  };

  form.addEventListener("submit", () => {
    clearTimeout(timer);
    keep(true);
  });

  const before = history.state?.once?.[form.id];
  if (broughtBack && before?.sent) {
    form.action = before.action;
    if (token) token.value = before.token;
  } else {
    keep(false);
    if (token?.value && Number(token.dataset.life)) renewIn(Number(token.dataset.life));
    else if (token && !token.value) fetchToken();
  }
}
