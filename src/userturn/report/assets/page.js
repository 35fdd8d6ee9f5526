// What the address asks for: #number/<id>, #item/<model>/<dataset>/<item>[/<perturbation>/t<T>/<sample>], #cell/<cell>.
let asked = 0;
const showPanel = async (making) => {
  const mine = (asked += 1);
  closeTip();
  let view;
  try {
    view = await making;
  } catch (error) {
    view = { title: "This cannot be shown", body: [say(error)] };
  }
  if (mine !== asked) return;
  view ??= { title: "Not in this page", body: [make("p", {}, "Nothing in this page has this address: ", make("code", {}, visibleText(location.hash)))] };
  byId("panel-title").textContent = view.title;
  byId("panel-body").replaceChildren(...view.body);
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
};
const hidePanel = () => {
  asked += 1;
  if (panel.open) panel.close();
};
const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};
const inPanel = () => /^#(number|item)\//.test(location.hash);

const follow = () => {
  const [kind, ...parts] = location.hash.slice(1).split("/");
  const target = parts.map(decoded);
  if (kind === "number") showPanel(numberView(target.join("/")));
  else if (kind === "item" && target.length >= 3) {
    const [model, dataset, item, perturbation, temperature, sample] = target;
    const wanted = perturbation ? { perturbation, temperature: Number((temperature || "").slice(1)), sample: Number(sample) } : null;
    showPanel(itemView(model, dataset, item, wanted));
  } else {
    hidePanel();
    if (kind === "cell") {
      browseCell(target.join("/"));
      byId("transcripts").scrollIntoView();
    }
  }
};

document.addEventListener("click", (event) => {
  const node = numberAt(event.target);
  // a selection is somebody copying the number
  if (!node || !getSelection().isCollapsed) return;
  const target = `#number/${node.dataset.numberId}`;
  if (location.hash === target) follow();
  else location.hash = target;
});
byId("panel-close").addEventListener("click", () => panel.close());
panel.addEventListener("click", (event) => {
  if (event.target === panel) panel.close();
});
panel.addEventListener("close", () => {
  asked += 1;
  // a step of its own, so that going back opens the panel again
  if (inPanel()) history.pushState(null, "", location.pathname + location.search);
});
addEventListener("hashchange", follow);
addEventListener("popstate", follow);
if (form && !location.hash.startsWith("#cell/")) browse();
follow();

byId("theme").addEventListener("change", (event) => {
  if (event.target.value) document.documentElement.dataset.theme = event.target.value;
  else delete document.documentElement.dataset.theme;
});

// Paper shows what is folded away on a screen, except transcripts, which are many.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll(".model:not([open]), .facts:not([open])")];
  for (const one of folded) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of folded) one.open = false;
});
