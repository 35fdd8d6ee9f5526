// Browsing and searching the transcripts.
const PAGE = 30;
const AHEAD = 4;
// Milliseconds after which a search shows what it has.
const SOON = 500;
const form = byId("filters");
const selects = form ? [...form.querySelectorAll("select[data-filter]")] : [];
let search = 0;

const query = () => {
  const chosen = Object.fromEntries(selects.map((select) => [select.dataset.filter, select.value]));
  const text = byId("search").value.trim().toLowerCase();
  return {
    ...chosen,
    differ: Boolean(byId("filter-judges")?.value),
    item: byId("item").value.trim(),
    text,
    // with files beside the page only whole words can be found
    terms: catalogue.words ? wordsOf(text) : text.split(/\s+/).filter(Boolean),
  };
};
const cellFits = (cell, wanted) => (!wanted.model || cell.model === wanted.model)
  && (!wanted.dataset || cell.dataset === wanted.dataset)
  && (!wanted.perturbation || cell.perturbation === wanted.perturbation)
  && (!wanted.temperature || String(cell.temperature) === wanted.temperature)
  && (!wanted.label || cell.counts[LABEL_PLACE.get(wanted.label)] > 0)
  && (!wanted.differ || cell.differ > 0);
const rowFits = (row, wanted) => {
  if (wanted.label && labelOf(row) !== wanted.label) return false;
  if (wanted.differ && !differs(row)) return false;
  if (wanted.item && row[0] !== wanted.item && (catalogue.words || !row[0].includes(wanted.item))) return false;
  if (!wanted.terms.length) return true;
  const text = row[2].toLowerCase();
  if (!wanted.terms.every((term) => text.includes(term))) return false;
  return !catalogue.words || (() => {
    const there = new Set(wordsOf(text));
    return wanted.terms.every((term) => there.has(term));
  })();
};

// Matches, a piece at a time; the next pieces are on their way meanwhile.
async function* matches(wanted) {
  const terms = [...wanted.terms, ...(wanted.item ? [`item ${wanted.item}`] : [])];
  const possible = await piecesWith(terms);
  const places = catalogue.cells.filter((cell) => cellFits(cell, wanted)).flatMap((cell) => cell.chunks.map(([name]) => [cell, name]))
    .filter(([, name]) => !possible || possible.has(name));
  for (let at = 0; at < places.length; at += 1) {
    for (const [, name] of places.slice(at + 1, at + 1 + AHEAD)) load(name).catch(() => {});
    const [cell, name] = places[at];
    const rows = await load(name);
    yield { found: rows.filter((row) => rowFits(row, wanted)).map((row) => [cell, row]), last: at === places.length - 1 };
  }
}

const total = catalogue.cells.reduce((sum, cell) => sum + cell.counts.reduce((a, b) => a + b, 0), 0);
const counted = (wanted) => {
  if (wanted.terms.length || wanted.item || (wanted.label && wanted.differ)) return null;
  return catalogue.cells.filter((cell) => cellFits(cell, wanted)).reduce((sum, cell) => sum
    + (wanted.label ? cell.counts[LABEL_PLACE.get(wanted.label)] : wanted.differ ? cell.differ : cell.counts.reduce((a, b) => a + b, 0)), 0);
};

const browse = async () => {
  const mine = (search += 1);
  const wanted = query();
  const list = byId("turns");
  const more = byId("more");
  const known = counted(wanted);
  const n = (value) => value.toLocaleString("en");
  let waiting = [];
  let shown = 0;
  let done = false;
  let fitting = 0;
  const source = matches(wanted);
  const status = () => {
    const count = known ?? (done ? fitting : null);
    byId("shown").textContent = count === null
      ? `the first ${n(shown)} that fit, of ${n(total)} user turns`
      : `${n(count)} of ${n(total)} user turns${count > shown ? `, the first ${n(shown)} shown` : ""}`;
    more.hidden = done && !waiting.length;
  };
  const advance = async () => {
    const part = await source.next();
    if (part.done) done = true;
    else {
      waiting.push(...part.value.found);
      fitting += part.value.found.length;
      done = part.value.last;
    }
  };
  const page = async () => {
    // where all is in the page, count to the end; else show what a short while finds, and go on when asked
    const until = performance.now() + SOON;
    while (!done && (waiting.length < PAGE || (inline && known === null))) {
      if (!inline && waiting.length && performance.now() > until) break;
      await advance();
      if (mine !== search) return;
      if (!shown && !waiting.length && performance.now() > until) byId("shown").textContent = "searching …";
    }
    const now = waiting.splice(0, PAGE);
    const lines = now.map(([cell, row]) => turnLine(cell, row));
    if (shown) list.append(...lines);
    else list.replaceChildren(...lines);
    shown += now.length;
    status();
    list.dataset.search = String(mine);
  };
  const safely = () => page().catch((error) => {
    if (mine === search) list.replaceChildren(say(error));
  });
  more.onclick = safely;
  await safely();
};

// Shows one cell; false where the page has no such cell.
const browseCell = (key) => {
  const cell = cells.get(key);
  if (!form) return;
  form.querySelectorAll("input, select").forEach((one) => { one.value = ""; });
  if (cell) {
    for (const select of selects) select.value = select.dataset.filter in cell ? String(cell[select.dataset.filter]) : "";
    browse();
  } else {
    search += 1;
    byId("turns").replaceChildren();
    byId("more").hidden = true;
    byId("shown").textContent = `This page holds no transcripts of ${key}`;
  }
};

if (form) {
  let soon = 0;
  form.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(browse, 120);
  });
  form.addEventListener("reset", () => setTimeout(browse));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    browse();
  });
}
