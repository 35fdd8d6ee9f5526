// Figures as files: the drawing with the colours it has now, and the numbers it is drawn from.
const save = (name, type, text) => {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};
const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "font-size", "font-weight", "font-family", "text-anchor"];
const drawing = (svg) => {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, place) => {
    const style = getComputedStyle(from[place]);
    if (/^(line|text|circle|polygon|polyline|rect)$/.test(node.tagName)) {
      for (const name of DRAWN) node.setAttribute(name, style.getPropertyValue(name));
    }
    node.removeAttribute("class");
  });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  const ground = document.createElementNS(svg.namespaceURI, "rect");
  for (const [name, value] of Object.entries({ width, height, fill: getComputedStyle(document.body).backgroundColor })) ground.setAttribute(name, value);
  copy.prepend(ground);
  if (catalogue.simulated) {
    const mark = document.createElementNS(svg.namespaceURI, "text");
    for (const [name, value] of Object.entries({ x: width / 2, y: height / 2, "text-anchor": "middle", fill: "#b00020", "font-size": "40" })) mark.setAttribute(name, value);
    mark.textContent = "SIMULATED";
    copy.append(mark);
  }
  copy.setAttribute("width", 2 * width);
  copy.setAttribute("height", 2 * height);
  return new XMLSerializer().serializeToString(copy);
};
// No cell of the table is a formula to a spreadsheet.
const cellOf = (value) => {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = visibleText(String(value));
  return `"${(/^\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
};
const csv = (rows) => rows.map((row) => row.map(cellOf).join(",")).join("\r\n") + "\r\n";
const table = async (svg) => {
  const lines = [...svg.querySelectorAll("[data-series]")];
  if (lines.length) {
    const points = lines.flatMap(({ dataset }) => dataset.points.split(" ").map((point) => [dataset.series, ...point.split(",").map(Number)]));
    return csv([["measure", "step", "value"], ...points]);
  }
  const ids = [...new Set([...svg.querySelectorAll("[data-number-id]")].map((node) => node.dataset.numberId))];
  const rows = await Promise.all(ids.map(async (id) => [id, ...(await numberDetails(id)).raw]));
  return csv([["id", ...catalogue.raw], ...rows]);
};
document.addEventListener("click", async (event) => {
  const asked = event.target instanceof Element && event.target.closest("[data-export]");
  if (!asked) return;
  const figure = asked.closest("figure");
  const svg = figure.querySelector("svg.plot");
  const name = svg.getAttribute("aria-label").toLowerCase().replace(/[^a-z0-9.]+/g, "-");
  try {
    if (asked.dataset.export === "svg") save(`${name}.svg`, "image/svg+xml", drawing(svg));
    else save(`${name}.csv`, "text/csv", await table(svg));
  } catch (error) {
    figure.append(say(error));
  }
});
