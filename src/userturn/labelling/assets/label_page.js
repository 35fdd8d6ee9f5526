"use strict";
// Every text is already in the page; this script shows one turn at a time and keeps labels. It makes no markup.
(() => {
  const byId = (id) => document.getElementById(id);
  const facts = JSON.parse(byId("facts").textContent);
  const known = new Map(facts.turns.map((turn, place) => [turn.id, place]));
  const articles = [...document.querySelectorAll("article")];
  const total = facts.turns.length;
  const slot = `userturn.labels.${facts.sheet}`;
  const GENUINE = "genuine_followup";
  const NAME = /^[a-z0-9][a-z0-9._-]{0,31}$/;

  // labels[id] = {label: string | "" (cannot say) | null (open), reacts_to: string | null, note: string}
  const fresh = () => ({ labeller: "", labels: {}, at: 0, theme: "", advance: true, keys: true });
  let state = fresh();
  let saving = true;
  const session = new Set();

  const entry = (id) => state.labels[id] || { label: null, reacts_to: null, note: "" };
  const complete = (id) => {
    const one = entry(id);
    if (one.label === null || (facts.adjudication && !one.note.trim())) return false;
    return one.label !== GENUINE || one.reacts_to !== null;
  };
  const done = () => facts.turns.filter((turn) => complete(turn.id)).length;
  const say = (text) => { byId("status").textContent = text; };
  const warn = (text) => {
    byId("warning").textContent = text;
    byId("warning").hidden = !text;
  };

  const checked = (value) => {
    const made = fresh();
    if (typeof value !== "object" || value === null) return made;
    if (NAME.test(value.labeller)) made.labeller = value.labeller;
    if (Number.isInteger(value.at) && value.at >= 0 && value.at < total) made.at = value.at;
    if (["light", "dark"].includes(value.theme)) made.theme = value.theme;
    made.advance = value.advance !== false;
    made.keys = value.keys !== false;
    for (const [id, one] of Object.entries(value.labels || {})) {
      if (!known.has(id) || typeof one !== "object" || one === null) continue;
      const label = one.label === "" || facts.labels.includes(one.label) ? one.label : null;
      const ground = label === GENUINE && facts.reacts_to.includes(one.reacts_to) ? one.reacts_to : null;
      made.labels[id] = { label, reacts_to: ground, note: typeof one.note === "string" ? one.note.slice(0, 1000) : "" };
    }
    return made;
  };
  const load = () => {
    let text = null;
    try {
      text = localStorage.getItem(slot);
      if (text !== null) state = checked(JSON.parse(text));
    } catch (error) {
      if (text === null) saving = false;
      else {
        // what cannot be read is kept, not overwritten
        localStorage.setItem(`${slot}.unreadable`, text);
        warn("What this browser had saved could not be read; it was set aside, and the sheet starts anew.");
      }
    }
  };
  const save = () => {
    try {
      localStorage.setItem(slot, JSON.stringify(state));
      saving = true;
    } catch (error) {
      saving = false;
    }
    byId("saved").textContent = saving ? "saved in this browser" : "NOT saved";
    if (!saving) warn("This browser saves nothing for this page: export before you close it.");
  };

  const current = () => facts.turns[state.at];
  const render = () => {
    const turn = current();
    const one = entry(turn.id);
    articles.forEach((article, place) => { article.hidden = place !== state.at; });
    for (const button of byId("labels").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(one.label === button.dataset.label));
    }
    byId("grounds").hidden = one.label !== GENUINE;
    for (const button of byId("grounds").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(one.reacts_to === button.dataset.ground));
      button.disabled = !turn.answer_shown && button.dataset.ground !== "query";
    }
    if (byId("note").value !== one.note) byId("note").value = one.note;
    byId("back").disabled = state.at === 0;
    byId("next").disabled = state.at === total - 1;
    const count = done();
    byId("bar").value = count;
    byId("progress").textContent = `${count} of ${total} labelled, ${[...session].filter(complete).length} in this session`;
    byId("labeller").textContent = state.labeller || "not named yet";
    byId("theme").value = state.theme;
    byId("advance").checked = state.advance;
    byId("keys-on").checked = state.keys;
    if (state.theme) document.documentElement.dataset.theme = state.theme;
    else delete document.documentElement.dataset.theme;
  };
  const focusTurn = () => {
    const heading = articles[state.at].querySelector("h2");
    heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  };
  const go = (place, said = "") => {
    state.at = Math.min(Math.max(0, place), total - 1);
    save();
    render();
    focusTurn();
    say(`${said}Turn ${state.at + 1} of ${total}, ${done()} labelled.`);
  };
  const nextOpen = (said = "") => {
    for (let step = 1; step <= total; step += 1) {
      const place = (state.at + step) % total;
      if (!complete(facts.turns[place].id)) return go(place, said);
    }
    save();
    render();
    focusTurn();
    return say(`${said}All ${total} turns are labelled: press e to export.`);
  };
  const words = (one) => (one.label === "" ? "cannot say" : one.label + (one.reacts_to ? `, ${one.reacts_to}` : ""));

  const changed = (id) => {
    session.add(id);
    const one = entry(id);
    save();
    render();
    if (!complete(id)) {
      if (one.label === GENUINE && one.reacts_to === null) say(`${one.label}, and it reacts to: a the answer, q the query alone, b both.`);
      else if (facts.adjudication && one.label !== null) {
        byId("note").focus();
        say(`${words(one)}: give the reason in one line.`);
      }
      return;
    }
    const said = `Turn ${state.at + 1}: ${words(one)}. `;
    if (done() === total) nextOpen(said);
    else if (state.advance && state.at < total - 1) go(state.at + 1, said);
    else say(said);
  };
  const setLabel = (label) => {
    const turn = current();
    const ground = label === GENUINE && !turn.answer_shown ? "query" : null;
    state.labels[turn.id] = { ...entry(turn.id), label, reacts_to: ground };
    changed(turn.id);
  };
  const setGround = (ground) => {
    const turn = current();
    if (entry(turn.id).label !== GENUINE) return say("What it reacts to is asked of a genuine follow-up only: press 1 first.");
    if (!turn.answer_shown && ground !== "query") return say("No assistant turn was shown: it can only react to the query.");
    state.labels[turn.id] = { ...entry(turn.id), reacts_to: ground };
    return changed(turn.id);
  };
  const clear = () => {
    const id = current().id;
    state.labels[id] = { ...entry(id), label: null, reacts_to: null };
    session.delete(id);
    save();
    render();
    say(`Turn ${state.at + 1}: label cleared.`);
  };
  const leaveNote = () => {
    const id = current().id;
    if (facts.adjudication && complete(id)) changed(id);
    else focusTurn();
  };

  const rows = () => facts.turns.filter((turn) => state.labels[turn.id]).map((turn) => {
    const one = entry(turn.id);
    const open = one.label === null;
    return {
      id: turn.id,
      state: open ? "open" : one.label === "" ? "unscored" : "scored",
      label: one.label || null,
      reacts_to: one.reacts_to,
      note: one.note.trim(),
      text_sha256: turn.text_sha256,
    };
  });
  const download = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    const left = total - done();
    say(`Exported ${name}: ${done()} of ${total} turns${left ? `, ${left} still open` : ""}.`);
  };
  const asJson = () => {
    const lines = rows().map((row) => `  ${JSON.stringify(row)}`);
    const head = `"format":"userturn labels 1","sheet":${JSON.stringify(facts.sheet)},"labeller":${JSON.stringify(state.labeller)}`;
    return `{${head},"labels":[\n${lines.join(",\n")}\n]}\n`;
  };
  const cell = (text) => {
    const safe = /^[ \n]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const asCsv = () => {
    const header = ["id", "label", "reacts_to", "note", "labeller", "sheet", "text_sha256"];
    const lines = rows().map((row) => [
      row.id, row.state === "unscored" ? "unscored" : row.label || "", row.reacts_to || "", row.note, state.labeller, facts.sheet, row.text_sha256,
    ]);
    return `\ufeff${[header, ...lines].map((line) => line.map(cell).join(",")).join("\r\n")}\r\n`;
  };

  let afterName = null;
  const ask = (then) => {
    afterName = then;
    byId("name").value = state.labeller;
    byId("name-wrong").textContent = "";
    byId("who").showModal();
  };
  const named = () => {
    const name = byId("name").value.trim().toLowerCase();
    if (!NAME.test(name)) {
      byId("name-wrong").textContent = "Use 1 to 32 letters a to z, digits, dots, hyphens; a letter or digit first.";
      return;
    }
    state.labeller = name;
    save();
    byId("who").close();
    render();
    if (afterName) afterName();
    else focusTurn();
    afterName = null;
  };
  const exporting = (kind) => {
    if (!state.labeller) return ask(() => exporting(kind));
    if (kind === "csv") return download(`labels-${state.labeller}.csv`, "text/csv;charset=utf-8", asCsv());
    return download(`labels-${state.labeller}.json`, "application/json", asJson());
  };
  const toggleGuide = () => {
    const guide = byId("guide");
    guide.open = !guide.open;
    if (guide.open) {
      guide.scrollIntoView({ block: "start" });
      guide.querySelector("summary").focus({ preventScroll: true });
    } else focusTurn();
  };

  const help = () => {
    byId("help").showModal();
    byId("help-h").focus();
  };

  const moves = {
    j: () => go(state.at + 1), ArrowRight: () => go(state.at + 1),
    k: () => go(state.at - 1), ArrowLeft: () => go(state.at - 1),
    m: () => nextOpen(),
  };
  const actions = {
    0: () => setLabel(""), u: () => setLabel(""),
    a: () => setGround("answer"), q: () => setGround("query"), b: () => setGround("both"),
    x: clear, g: toggleGuide, n: () => byId("note").focus(),
    e: () => exporting("json"), c: () => exporting("csv"), "?": help,
  };
  facts.labels.forEach((label, place) => { actions[place + 1] = () => setLabel(label); });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target === byId("name") && event.key === "Enter") { event.preventDefault(); named(); return; }
    if (document.querySelector("dialog[open]")) return;
    if (event.target === byId("note")) {
      if (event.key === "Enter" || event.key === "Escape") { event.preventDefault(); leaveNote(); }
      return;
    }
    if (event.target.matches("input, select, textarea") || !state.keys) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const act = Object.hasOwn(moves, key) ? moves[key] : Object.hasOwn(actions, key) && !event.repeat ? actions[key] : null;
    if (!act) return;
    event.preventDefault();
    act();
  });
  byId("labels").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) setLabel(button.dataset.label);
  });
  byId("grounds").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button && !button.disabled) setGround(button.dataset.ground);
  });
  byId("note").addEventListener("input", () => {
    const id = current().id;
    state.labels[id] = { ...entry(id), note: byId("note").value };
    save();
    byId("bar").value = done();
  });
  byId("back").addEventListener("click", () => go(state.at - 1));
  byId("next").addEventListener("click", () => go(state.at + 1));
  byId("open").addEventListener("click", () => nextOpen());
  byId("clear").addEventListener("click", clear);
  byId("export").addEventListener("click", () => exporting("json"));
  byId("export-csv").addEventListener("click", () => exporting("csv"));
  byId("help-open").addEventListener("click", help);
  byId("help-close").addEventListener("click", () => byId("help").close());
  byId("name-ok").addEventListener("click", named);
  byId("advance").addEventListener("change", () => { state.advance = byId("advance").checked; save(); });
  byId("keys-on").addEventListener("change", () => { state.keys = byId("keys-on").checked; save(); });
  byId("theme").addEventListener("change", () => { state.theme = byId("theme").value; save(); render(); });
  addEventListener("storage", (event) => {
    // the same sheet in another tab
    if (event.key === slot && event.newValue !== null) { load(); render(); }
  });
  addEventListener("beforeunload", (event) => { if (!saving) event.preventDefault(); });

  load();
  document.querySelector(".panel").hidden = false;
  document.documentElement.classList.add("ready");
  save();
  render();
  if (state.labeller) {
    focusTurn();
    say(`Welcome back: ${done()} of ${total} labelled. Turn ${state.at + 1}.`);
  } else ask(null);
})();
