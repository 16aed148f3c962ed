// Refreshes the parts of a page that are marked with data-live, and makes cells of a dense map and patches handier.
// Without this script, everything is there all the same.

const LIVE = "[data-live][id]";

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
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
  if (!answer.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll(LIVE)) {
    const fresh = next.getElementById(part.id);
    if (!fresh || isBusy(part)) continue;
    const copy = document.importNode(fresh, true);
    keepOpen(part, copy);
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

if (document.querySelector(LIVE)) {
  const events = new EventSource(`/v1/events?since=${encodeURIComponent(document.body.dataset.stamp)}`);
  events.addEventListener("changed", refreshOnce);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isWanted) refreshOnce();
  });
  addEventListener("pagehide", () => events.close());
}

// A dense map has no links, which would be a thousand stops of the Tab key; the table below has them.
document.addEventListener("click", (event) => {
  const cell = event.target.closest(".map i[title]");
  if (!cell) return;
  const name = cell.title.slice(0, cell.title.lastIndexOf(", "));
  location.assign(`/clusters/${encodeURIComponent(name)}`);
});

for (const text of document.querySelectorAll("pre.copied")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  });
  text.before(button);
}
