// Search, copy buttons and the forms of the reference page. The page reads without it. The key stays in its field.
"use strict";

const key = document.getElementById("key");
const filter = document.getElementById("filter");
document.getElementById("tools").hidden = false;
document.getElementById("tools").addEventListener("submit", event => event.preventDefault());

// The first steps name the address of this page.
for (const code of document.querySelectorAll("[data-step=setup] code"))
  code.textContent = code.textContent.replace("http://127.0.0.1:8000", location.origin);

for (const block of document.querySelectorAll("pre[data-language]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${block.dataset.language} of ${block.dataset.operation || block.dataset.step || "the receiver"}`);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    button.textContent = "Copied";
  });
  block.before(button);
}

filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const article of document.querySelectorAll("article")) {
    const text = article.textContent.toLowerCase();
    article.hidden = !words.every(word => text.includes(word));
    shown += article.hidden ? 0 : 1;
    const link = document.querySelector(`nav a[href="#${CSS.escape(article.id)}"]`);
    if (link) link.parentElement.hidden = article.hidden;
  }
  for (const part of ["start", "plans", "headers"]) document.getElementById(part).hidden = words.length > 0;
  document.getElementById("found").textContent = words.length ? `${shown} found` : "";
});

for (const form of document.querySelectorAll("form.try")) {
  form.hidden = false;
  form.addEventListener("submit", async event => {
    event.preventDefault();
    const answer = form.querySelector("pre");
    answer.hidden = false;
    answer.textContent = "…";
    try {
      answer.textContent = await send(form);
    } catch (error) {
      answer.textContent = `The server did not answer: ${error.message}`;
    }
  });
}

async function send(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = {"x-api-key": key.value};
  for (const input of form.querySelectorAll("input[data-in]")) {
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.value && input.dataset.in === "query") query.set(input.name, input.value);
    else if (input.value) headers[input.name] = input.value;
  }
  const field = form.querySelector("textarea, input[type=file]");
  const body = field && (field.files ? field.files[0] : field.value);
  if (body) headers["content-type"] = field.dataset.type;
  const request = {method: form.dataset.method, headers, cache: "no-store", ...(body ? {body} : {})};
  const answer = await fetch(path + (query.size ? `?${query}` : ""), request);
  const text = await answer.text();
  const shown = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  let pretty = text.slice(0, 20000);
  try { pretty = JSON.stringify(JSON.parse(text), null, 1).slice(0, 20000); } catch { /* a file is shown as it is */ }
  return `${answer.status} ${answer.statusText}\n${shown}\n\n${pretty}`;
}
