// Refreshes the parts of a page that are marked with data-live, filters while somebody types, and copies commands.
// Without this script, everything is there all the same.

const LIVE = "[data-live][id]";
const TYPED_MS = 150;

document.documentElement.classList.add("js");

// A part is left alone while somebody works in it: with the keyboard, or with a selection of text.
function isBusy(part) {
  const selection = document.getSelection();
  if (selection && !selection.isCollapsed && part.contains(selection.anchorNode)) return true;
  const active = document.activeElement;
  return active !== part && part.contains(active) && active.matches("input, select, textarea, a, summary, button");
}

function keepOpen(before, after) {
  const opened = [...before.querySelectorAll("details")].map((each) => each.open);
  after.querySelectorAll("details").forEach((each, index) => {
    if (opened[index]) each.open = true;
  });
}

async function refresh() {
  const target = location.href;
  const answer = await fetch(target, { headers: { Accept: "text/html" }, cache: "no-store" });
  if (answer.status === 503) {
    setTimeout(refreshOnce, 1000 * Number(answer.headers.get("Retry-After") || 2));
    return;
  }
  if (!answer.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (target !== location.href) return;
  for (const part of document.querySelectorAll(LIVE)) {
    const fresh = next.getElementById(part.id);
    if (!fresh || isBusy(part)) continue;
    const copy = document.importNode(fresh, true);
    keepOpen(part, copy);
    showAges(copy);
    if (copy.isEqualNode(part)) continue;
    const left = part.scrollLeft;
    part.replaceWith(copy);
    copy.scrollLeft = left;
  }
  document.documentElement.dataset.refreshed = String(Number(document.documentElement.dataset.refreshed || 0) + 1);
}

let isRefreshing = false;
let isWanted = false;

async function refreshOnce() {
  isWanted = true;
  if (isRefreshing || document.hidden) return;
  isRefreshing = true;
  while (isWanted) {
    isWanted = false;
    try {
      await refresh();
    } catch {
      // The server is gone; the stream connects again.
    }
  }
  isRefreshing = false;
}

let events = null;
let heard = "";

// A list of one namespace is refreshed after changes in it, other pages after every change.
function listen(since, namespace) {
  if (events) events.close();
  heard = namespace;
  events = new EventSource(`/v1/events?${new URLSearchParams({ since, namespace })}`);
  events.addEventListener("changed", refreshOnce);
}

if (document.querySelector(LIVE)) {
  listen(document.body.dataset.stamp, document.body.dataset.namespace);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isWanted) refreshOnce();
  });
  addEventListener("pagehide", () => events.close());
}

// A form of the class "typed" filters the page: the address follows what is typed, and the parts of the page follow the address.
const typed = document.querySelector("form.typed");
let timer = 0;

async function filter() {
  const given = [...new FormData(typed)].filter(([, value]) => value !== "");
  const query = new URLSearchParams(given).toString();
  const namespace = new URLSearchParams(query).get("namespace") || "";
  if (events && namespace !== heard) listen("", namespace);
  history.replaceState(null, "", query ? `${typed.action}?${query}` : typed.action);
  await refreshOnce();
  const count = document.getElementById("count");
  if (count) document.getElementById("said").textContent = count.textContent;
}

if (typed) {
  typed.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(filter, TYPED_MS);
  });
  typed.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    filter();
  });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const active = document.activeElement;
  if (event.key === "/" && !active.matches("input, select, textarea, [contenteditable]")) {
    const box = document.querySelector("main input[type=search]") || document.getElementById("find");
    if (!box) return;
    event.preventDefault();
    box.focus();
    box.select();
  } else if (event.key === "Escape" && active.matches("input[type=search], .typed input")) {
    event.preventDefault();
    if (active.value === "") {
      active.blur();
      return;
    }
    active.value = "";
    active.dispatchEvent(new Event("input", { bubbles: true }));
  }
});

// A dense map has no links, which would be a thousand stops of the Tab key; the table of clusters has them.
document.addEventListener("click", (event) => {
  const cell = event.target.closest(".map i[title]");
  if (!cell) return;
  const name = cell.title.slice(0, cell.title.lastIndexOf(", "));
  location.assign(`/clusters/${encodeURIComponent(name)}`);
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const text = button.parentElement.querySelector("pre");
  try {
    await navigator.clipboard.writeText(text.textContent.trimEnd());
  } catch {
    document.getSelection().selectAllChildren(text);
    return;
  }
  button.textContent = "Copied";
  document.getElementById("said").textContent = "Copied";
  setTimeout(() => {
    button.textContent = "Copy";
  }, 2000);
});

// How long ago something was: computed here, again and again, because a page may be open for hours.
function ago(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"]];
  const [size, unit] = units.find(([each]) => seconds >= each) || [1, "s"];
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

function showAges(of = document) {
  for (const part of of.querySelectorAll("[data-since]")) {
    const seconds = (Date.now() - Date.parse(part.dataset.since)) / 1000;
    part.textContent = seconds >= 0 ? ago(seconds) : "";
  }
}

showAges();
setInterval(() => showAges(), 10000);
