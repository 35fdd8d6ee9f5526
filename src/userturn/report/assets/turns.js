// One user turn: its line in a list, and what opens below it.
const cells = new Map(catalogue.cells.map((cell) => [cell.key, cell]));
const withheld = new Set(catalogue.withheld);
const LABEL_PLACE = new Map(catalogue.labels.map((label, place) => [label, place]));
const labelOf = (row) => (row[5][0] ? row[5][0][0] : "unscored");
const differs = (row) => new Set(row[5].filter((one) => one && one[0] !== "unscored").map((one) => one[0])).size > 1;
const chip = (label) => make("span", { class: `chip l${LABEL_PLACE.get(label)}` }, make("span", {}, words(label)));
const itemLink = (cell, row) => `#item/${where(cell.model, cell.dataset, row[0], cell.perturbation, `t${cell.temperature}`, row[1])}`;
const cellText = (cell) => `${words(cell.perturbation)} · T = ${cell.temperature}`;

const excerpt = (text, length = 160) => {
  const line = text.slice(0, 4 * length).split(/\s+/).filter(Boolean).join(" ");
  if (!line) return make("i", {}, "empty");
  return make("bdi", {}, visibleText(line.slice(0, length)) + (line.length > length || text.length > 4 * length ? "…" : ""));
};

const WITHHELD = "The owners of this dataset ask that its items are not published as plain text, so neither the context "
  + "nor the turn is shown: a turn may restate its item. Read them in the artefacts of the study, or set "
  + "publish_items: true for the dataset.";

const contextOf = async (cell, row) => {
  const pieces = catalogue.contexts[`${cell.model}/${cell.dataset}/${cell.perturbation}`];
  return pieces && pieces[row[4]] ? (await load(pieces[row[4]]))[row[0]] : null;
};

const message = (role, content, kind = "") => make("div", { class: `message ${kind}` },
  make("p", { class: "role" }, role), make("pre", { dir: "auto" }, visible(content)));

const judgements = (row) => make("ul", { class: "judges" }, row[5].map((given, place) => {
  const judge = catalogue.judges[place];
  const reported = place === 0 ? " (counted in the rates)" : "";
  if (!given) return make("li", {}, make("strong", {}, judge), `${reported}: did not label this turn`);
  const [label, rationale, evidence] = given;
  const line = make("li", {}, make("strong", {}, judge), `${reported}: `, chip(label), " ", rationale ? visible(rationale) : "");
  const told = flat(evidence);
  if (told.length) line.append(make("details", {}, make("summary", {}, "Evidence"), pairs(told)));
  return line;
}));

const promptOf = (prompt) => {
  const text = make("pre", { class: "prompt" });
  const show = (markers) => text.replaceChildren(visible(prompt, { markers }));
  const box = make("input", { type: "checkbox", change: () => show(box.checked) });
  show(false);
  return make("details", { class: "exact" }, make("summary", {}, "Context exactly as the model saw it"),
    make("label", {}, box, " highlight special tokens"), text);
};

const turnBody = async (cell, row, { alone = false } = {}) => {
  const body = [];
  const hidden = withheld.has(cell.dataset);
  if (hidden) body.push(make("p", { class: "callout", role: "note" }, WITHHELD));
  body.push(make("p", { class: "meta" }, "Cell ", make("code", {}, cell.key), ", item ", make("code", {}, visibleText(row[0])),
    `, sample ${row[1]}`, alone ? "" : " · ",
    alone ? "" : make("a", { href: itemLink(cell, row) }, "the same item in every context")));
  const context = hidden ? null : await contextOf(cell, row);
  if (context) {
    const [, messages, changes] = context;
    const done = flat(changes);
    if (done.length) body.push(make("p", { class: "small" }, "What the perturbation did:"), pairs(done));
    body.push(...messages.map(([role, content]) => message(role, content)));
  }
  if (!hidden) body.push(message(`user, ${row[3] === "control" ? "given" : "written by the model"} (ended by: ${row[3]})`, row[2], "generated"));
  body.push(make("h4", {}, "What the judges said"), judgements(row));
  if (context) body.push(promptOf(context[0]));
  return make("div", { class: "body" }, body);
};

// A line that opens: the body is made when it is first opened.
const turnLine = (cell, row, { place = true } = {}) => {
  const line = make("details", { class: "turn", "data-label": labelOf(row) },
    make("summary", {}, chip(labelOf(row)), differs(row) ? make("span", { class: "differ" }, "judges differ") : "",
      make("span", { class: "where" }, place ? `${cell.model} · ${cell.dataset} · ${cellText(cell)} · ${visibleText(row[0])}` : visibleText(row[0])),
      make("span", { class: "excerpt" }, withheld.has(cell.dataset) ? make("i", {}, "text withheld") : excerpt(row[2]))));
  line.addEventListener("toggle", async () => {
    if (!line.open || line.querySelector(".body")) return;
    try {
      line.append(await turnBody(cell, row));
    } catch (error) {
      line.append(say(error));
    }
  });
  return line;
};

const rowsOf = async (cell) => (await Promise.all(cell.chunks.map(([name]) => load(name)))).flat();
