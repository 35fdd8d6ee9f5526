// The tooltip and the panel of a number.
const tip = byId("tip");
const panel = byId("panel");
const numberAt = (node) => node instanceof Element && node.closest("[data-number-id]");

let owner = null;
let closing = 0;
const placeTip = () => {
  const at = owner.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, at.left), innerWidth - size.width - 8);
  const below = at.bottom + 6;
  const top = below + size.height > innerHeight && at.top > size.height + 6 ? at.top - size.height - 6 : below;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${top}px`;
};
const closeTip = () => {
  clearTimeout(closing);
  if (owner) owner.removeAttribute("aria-describedby");
  owner = null;
  tip.hidden = true;
};
const openTip = async (node) => {
  if (panel.open && !panel.contains(node)) return;
  closeTip();
  owner = node;
  let known;
  try {
    known = await numberDetails(node.dataset.numberId);
  } catch (error) {
    known = { title: error.message, short: [], notes: [] };
  }
  // the pointer may have moved on meanwhile
  if (owner !== node || !known) return;
  tip.replaceChildren(make("strong", {}, visibleText(known.title)), pairs(known.short), ...known.notes.map((note) => make("div", {}, visibleText(note))));
  tip.hidden = false;
  node.setAttribute("aria-describedby", "tip");
  placeTip();
};
document.addEventListener("pointerover", (event) => {
  if (event.pointerType === "touch") return;
  const node = numberAt(event.target);
  if (node) {
    clearTimeout(closing);
    if (node !== owner) openTip(node);
  } else if (tip.contains(event.target)) clearTimeout(closing);
  else if (owner && owner !== document.activeElement) {
    clearTimeout(closing);
    closing = setTimeout(closeTip, 150);
  }
});
document.addEventListener("focusin", (event) => {
  const node = numberAt(event.target);
  if (node && node.matches(":focus-visible")) openTip(node);
  else if (owner && !tip.contains(event.target)) closeTip();
});
const held = () => owner === document.activeElement || owner.matches(":hover") || tip.matches(":hover");
addEventListener("scroll", () => owner && (held() ? placeTip() : closeTip()), { capture: true, passive: true });
addEventListener("resize", closeTip);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeTip();
});

// Rows behind a number: some of each kind first, then by label.
const FEW = 3;
const LISTED = 30;
const rowsBehind = (known) => {
  const there = known.cells.map((key) => cells.get(key)).filter(Boolean);
  if (!there.length) return null;
  const list = make("div", { class: "rows" });
  const state = make("p", { class: "small", role: "status" });
  const genuine = known.positive in Object.fromEntries(catalogue.labels.map((label) => [label, 1])) ? known.positive : "genuine_followup";
  const cellChoice = make("select", {}, there.map((cell) => make("option", { value: cell.key }, cell.key)));
  const counts = (cell) => catalogue.labels.map((label, place) => [label, cell.counts[place]]);
  const choice = make("select", {});
  const labels = () => {
    const cell = cells.get(cellChoice.value);
    choice.replaceChildren(make("option", { value: "" }, "a few of each"),
      ...counts(cell).filter(([, n]) => n).map(([label, n]) => make("option", { value: label }, `${words(label)} (${n})`)),
      make("option", { value: "*" }, `all (${cell.counts.reduce((a, b) => a + b, 0)})`));
  };
  const show = async () => {
    const cell = cells.get(cellChoice.value);
    const rows = await rowsOf(cell);
    const wanted = choice.value;
    const line = (row) => turnLine(cell, row, { place: false });
    if (!wanted) {
      const yes = rows.filter((row) => labelOf(row) === genuine).slice(0, FEW);
      const no = rows.filter((row) => labelOf(row) !== genuine).slice(0, FEW);
      list.replaceChildren(make("h4", {}, words(genuine)), ...(yes.length ? yes.map(line) : [make("p", { class: "empty" }, "none in this cell")]),
        make("h4", {}, `not ${words(genuine)}`), ...(no.length ? no.map(line) : [make("p", { class: "empty" }, "none in this cell")]));
      state.textContent = `${yes.length + no.length} of ${rows.length} user turns`;
    } else {
      const fit = wanted === "*" ? rows : rows.filter((row) => labelOf(row) === wanted);
      list.replaceChildren(...fit.slice(0, LISTED).map(line));
      state.textContent = `${Math.min(fit.length, LISTED)} of ${fit.length} user turns`;
    }
  };
  const safely = () => show().catch((error) => list.replaceChildren(say(error)));
  cellChoice.addEventListener("change", () => {
    labels();
    safely();
  });
  choice.addEventListener("change", safely);
  labels();
  safely();
  const all = make("a", { href: `#cell/${there[0].key}` }, "All in the browser of transcripts");
  cellChoice.addEventListener("change", () => all.setAttribute("href", `#cell/${cellChoice.value}`));
  return [make("h3", {}, "The rows behind it"),
    make("div", { class: "filters" },
      there.length > 1 ? make("p", {}, make("label", {}, "cell ", cellChoice)) : "",
      make("p", {}, make("label", {}, "label ", choice)), all),
    state, list];
};

// Answers behind an accuracy: right and wrong ones, each leading to its item.
const answersBehind = (known) => {
  const there = known.answers.filter((key) => catalogue.scores[key]);
  if (!there.length) return null;
  const list = make("div", { class: "rows" });
  Promise.all(there.map(async (key) => [key.split("/"), await load(catalogue.scores[key])])).then((found) => {
    for (const [[model, dataset], scores] of found) {
      for (const [verdict, name] of [[true, "right"], [false, "wrong"], [null, "not scored"]]) {
        const items = Object.keys(scores).filter((item) => scores[item][0] === verdict);
        if (!items.length) continue;
        list.append(make("h4", {}, `${name}: ${items.length}`), make("p", {}, items.slice(0, LISTED).flatMap((item) => [
          make("a", { href: `#item/${where(model, dataset, item)}` }, visibleText(item)), " "])));
      }
    }
  }).catch((error) => list.append(say(error)));
  return [make("h3", {}, "The answers behind it"), list];
};

const numberView = async (id) => {
  const known = await numberDetails(id);
  if (!known) return null;
  const about = [];
  if (known.definition) about.push(make("p", {}, known.definition));
  about.push(pairs(known.short));
  const [quantity, ...of] = id.split("/");
  const twin = quantity === "followup_rate" && await numberDetails(`corrected_rate/${of.join("/")}`);
  if (twin) {
    about.push(make("p", {}, "The interval holds the error of sampling. With ", make("a", { href: "#judge" }, "the judge's errors"), " taken out: ",
      make("a", { href: `#number/${twin.id}` }, twin.short[0][1], " ", twin.short[1][1]), "."));
  }
  if (known.notes.length) about.push(make("h3", {}, "Notes"), make("ul", {}, known.notes.map((note) => make("li", {}, visibleText(note)))));
  about.push(make("h3", {}, "Check it"), make("p", { class: "small" }, "In the study's folder, with its ", make("code", {}, ".envs/workflow/bin"), " on the path. Recomputes the value from its rows, and follows every file back to its source:"), copyable(known.audit));
  const rebuilt = known.cell ? [known.cell] : known.cells.slice(0, 2);
  if (rebuilt.length) {
    about.push(make("p", { class: "small" }, "Makes the user turns of a cell once more and compares them byte by byte:"),
      ...rebuilt.map((cell) => copyable(`userturn rebuild ${cell}`)));
  }
  about.push(make("h3", {}, "How it is computed"));
  if (known.formula) about.push(make("p", {}, make("code", {}, known.formula)));
  if (known.limits) about.push(make("p", {}, make("strong", {}, "Where it misleads: "), known.limits));
  about.push(pairs(known.more));
  if (known.sources.length) {
    about.push(make("details", {}, make("summary", {}, `Made from ${known.sources.length} ${known.sources.length === 1 ? "file" : "files"}`),
      make("ul", {}, known.sources.map((source) => make("li", {}, make("code", {}, visibleText(source)))))));
  }
  about.push(make("p", {}, make("a", { href: `#number/${id}` }, "Link to this number")));
  const rows = rowsBehind(known) || answersBehind(known);
  const view = make("div", { class: "number-view" }, make("div", {}, about));
  if (rows) view.append(make("div", {}, rows));
  return { title: visibleText(known.title), body: [view] };
};
