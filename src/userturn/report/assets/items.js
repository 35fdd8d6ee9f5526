// One item in every context and at every temperature, side by side.
const scoreLine = async (model, dataset, item) => {
  const piece = catalogue.scores[`${model}/${dataset}`];
  const found = piece ? (await load(piece))[item] : null;
  if (!found) return null;
  const [correct, extracted, reason] = found;
  const verdict = correct === null ? "not scored" : correct ? "right" : "wrong";
  return make("p", {}, "The model's own answer: ", make("strong", {}, verdict),
    extracted ? [", read as ", make("code", {}, visible(extracted))] : "", reason ? [" (", visible(reason), ")"] : "");
};

const card = (cell, rows, wanted) => make("section", { class: "card", "aria-label": cellText(cell) },
  make("h3", {}, cellText(cell)),
  rows.map((row) => {
    const here = wanted && wanted.perturbation === cell.perturbation && wanted.temperature === cell.temperature && wanted.sample === row[1];
    const turn = make("details", { class: `turn${here ? " wanted" : ""}`, "data-label": labelOf(row) },
      make("summary", {}, chip(labelOf(row)), differs(row) ? make("span", { class: "differ" }, "judges differ") : "",
        rows.length > 1 ? make("span", { class: "where" }, `sample ${row[1]}`) : "",
        make("span", { class: "whole" }, withheld.has(cell.dataset) ? make("i", {}, "text withheld") : excerpt(row[2], 600))));
    const open = async () => {
      if (!turn.open || turn.querySelector(".body")) return;
      try {
        turn.append(await turnBody(cell, row, { alone: true }));
      } catch (error) {
        turn.append(say(error));
      }
      if (here) turn.scrollIntoView({ block: "nearest" });
    };
    turn.addEventListener("toggle", open);
    if (here) turn.open = true;
    return turn;
  }));

// The view of an item; null where the page has no such item.
const itemView = async (model, dataset, item, wanted) => {
  const there = catalogue.cells.filter((cell) => cell.model === model && cell.dataset === dataset);
  const found = await Promise.all(there.map(async (cell) => [cell, (await rowsOf(cell)).filter((row) => row[0] === item)]));
  const cards = found.filter(([, rows]) => rows.length);
  if (!cards.length) return null;
  const first = cards.find(([cell]) => cell.perturbation === "baseline") || cards[0];
  const context = withheld.has(dataset) ? null : await contextOf(first[0], first[1][0]);
  const body = [make("p", { class: "meta" }, `${model} · ${dataset} · item `, make("code", {}, visibleText(item)))];
  if (context) body.push(make("details", { class: "context", open: !wanted }, make("summary", {}, "Question and answer"), context[1].map(([role, content]) => message(role, content))));
  body.push(await scoreLine(model, dataset, item) || "");
  if (withheld.has(dataset)) body.push(make("p", { class: "callout", role: "note" }, WITHHELD));
  body.push(make("h3", {}, "What the model wrote as the user, in every context"),
    make("div", { class: "cards" }, cards.map(([cell, rows]) => card(cell, rows, wanted))));
  return { title: `Item ${visibleText(item)}`, body };
};
