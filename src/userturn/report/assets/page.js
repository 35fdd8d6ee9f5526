"use strict";
// Everything shown is text that the page already holds: elements are made here, markup is never parsed.
(() => {
  const byId = (id) => document.getElementById(id);
  const numbers = new Map(Object.entries(JSON.parse(byId("numbers").textContent)));
  const tip = byId("tip");
  const panel = byId("panel");

  const element = (tag, text, ...children) => {
    const made = document.createElement(tag);
    if (text !== null) made.textContent = text;
    made.append(...children);
    return made;
  };
  const pairs = (entries) => {
    const list = element("dl", null, ...entries.flatMap(([k, v]) => [element("dt", k), element("dd", v)]));
    list.className = "facts-of";
    return list;
  };
  const numberAt = (node) => node instanceof Element && node.closest("[data-number-id]");

  // The tooltip of a number: on hover and on focus, kept while the pointer is on it, closed with Escape.
  let owner = null;
  let closing = 0;
  const place = () => {
    const at = owner.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left), innerWidth - size.width - 8);
    const below = at.bottom + 6;
    const top = below + size.height > innerHeight && at.top > size.height + 6 ? at.top - size.height - 6 : below;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${top}px`;
  };
  const close = () => {
    clearTimeout(closing);
    if (owner) owner.removeAttribute("aria-describedby");
    owner = null;
    tip.hidden = true;
  };
  const open = (node) => {
    const known = numbers.get(node.dataset.numberId);
    if (!known || panel.open) return;
    close();
    owner = node;
    tip.replaceChildren(element("strong", known.title), pairs(known.short), ...known.notes.map((n) => element("div", n)));
    tip.hidden = false;
    node.setAttribute("aria-describedby", "tip");
    place();
  };
  const closeSoon = () => {
    clearTimeout(closing);
    closing = setTimeout(close, 150);
  };
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const node = numberAt(event.target);
    if (node) {
      clearTimeout(closing);
      if (node !== owner) open(node);
    } else if (tip.contains(event.target)) clearTimeout(closing);
    else if (owner && owner !== document.activeElement) closeSoon();
  });
  document.addEventListener("focusin", (event) => {
    const node = numberAt(event.target);
    if (node && node.matches(":focus-visible")) open(node);
    else if (owner && !tip.contains(event.target)) close();
  });
  const held = () => owner === document.activeElement || owner.matches(":hover") || tip.matches(":hover");
  addEventListener("scroll", () => owner && (held() ? place() : close()), { capture: true, passive: true });
  addEventListener("resize", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });

  // The panel of a number: everything about it, at a permanent link.
  const show = (id) => {
    const known = numbers.get(id);
    if (!known) return false;
    close();
    byId("panel-title").textContent = known.title;
    const body = [element("p", known.definition), pairs([...known.short, ...known.more])];
    if (known.notes.length) body.push(element("h3", "Notes"), element("ul", null, ...known.notes.map((n) => element("li", n))));
    const copy = element("button", "Copy");
    copy.type = "button";
    const command = element("code", known.audit);
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(known.audit);
        copy.textContent = "Copied";
      } catch {
        // no clipboard here: leave the command selected for the reader to copy
        getSelection().selectAllChildren(command);
      }
    });
    body.push(element("h3", "Check it"), element("p", null, command, " ", copy));
    if (known.sources.length) {
      const sources = known.sources.map((source) => element("li", null, element("code", source)));
      body.push(element("h3", "Made from"), element("ul", null, ...sources));
    }
    const links = element("p", null);
    if (known.cell) {
      const turns = element("a", "Transcripts of this cell");
      turns.href = `#cell/${known.cell}`;
      turns.addEventListener("click", () => panel.close());
      links.append(turns, " · ");
    }
    const link = element("a", "Link to this number");
    link.href = `#number/${id}`;
    links.append(link);
    body.push(links);
    byId("panel-body").replaceChildren(...body);
    if (!panel.open) panel.showModal();
    return true;
  };
  document.addEventListener("click", (event) => {
    const node = numberAt(event.target);
    // a selection is somebody copying the number
    if (node && getSelection().isCollapsed) show(node.dataset.numberId);
  });
  byId("panel-close").addEventListener("click", () => panel.close());
  panel.addEventListener("click", (event) => {
    if (event.target === panel) panel.close();
  });
  panel.addEventListener("close", () => {
    if (location.hash.startsWith("#number/")) history.replaceState(null, "", location.pathname);
  });

  // Filters of the transcripts.
  const form = byId("filters");
  const turns = [...document.querySelectorAll(".turn")];
  const selects = form ? [...form.querySelectorAll("select")] : [];
  const apply = (possible = true) => {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const turn of turns) {
      const text = words.length ? turn.textContent.toLowerCase() : "";
      const fits = possible && selects.every((s) => !s.value || turn.dataset[s.dataset.filter] === s.value)
        && words.every((word) => text.includes(word));
      turn.hidden = !fits;
      count += fits;
    }
    byId("shown").textContent = `${count} of ${turns.length} transcripts`;
  };
  if (form) {
    form.addEventListener("input", () => apply());
    form.addEventListener("reset", () => setTimeout(apply));
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  // Permanent links: #number/<id>, #item/<cell>/<item>/<sample>, #cell/<cell>.
  const follow = () => {
    let target;
    try {
      target = decodeURIComponent(location.hash.slice(1));
    } catch {
      return;
    }
    if (target.startsWith("number/")) show(target.slice("number/".length));
    else if (target.startsWith("cell/") && form) {
      const [model, dataset, perturbation, temperature] = target.split("/").slice(1);
      const wanted = { model, dataset, perturbation, temperature: String(Number((temperature || "").slice(1))), label: "" };
      let known = true;
      for (const select of selects) {
        select.value = wanted[select.dataset.filter];
        known = known && select.selectedIndex >= 0;
      }
      byId("search").value = "";
      apply(known);
      if (!known) byId("shown").textContent = `This page holds no transcripts of ${target.slice("cell/".length)}`;
      byId("transcripts").scrollIntoView();
    } else {
      const turn = byId(target);
      if (turn && turn.classList.contains("turn")) {
        turn.hidden = false;
        turn.open = true;
        turn.scrollIntoView();
      }
    }
  };
  addEventListener("hashchange", follow);
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
})();
