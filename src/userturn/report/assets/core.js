// Everything shown is text: elements are made here, markup is never parsed.
const byId = (id) => document.getElementById(id);
const catalogue = JSON.parse(byId("catalogue").textContent);
const words = (name) => name.replaceAll("_", " ");

// An element: what is a plain string is text; of the attributes, functions listen to events.
const make = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat());
  return made;
};
const button = (text, click, attributes = {}) => make("button", { type: "button", click, ...attributes }, text);

// The same characters as userturn.report.inert: those that hide or reorder text, and halves of surrogate pairs.
const UNSEEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e"
  + "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff\\u{e0000}-\\u{e007f}]", "gu");
const named = (character) => `⟦U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`;
const visibleText = (text) => text.replace(UNSEEN, named);
// Markers of chat templates, shown apart on demand.
const MARKERS = /<\|[^|<>\s]{1,40}\|>|<\/?(?:think|s)>|\[gMASK\]|<sop>/g;

// A model's text as nodes: unseen characters are spelled out, long texts open on demand.
const visible = (text, { markers = false } = {}) => {
  const pattern = markers ? new RegExp(`${UNSEEN.source}|${MARKERS.source}`, "gu") : UNSEEN;
  const nodes = (part) => {
    const found = [];
    let from = 0;
    for (const match of part.matchAll(pattern)) {
      if (match.index > from) found.push(part.slice(from, match.index));
      found.push(match[0].length > 2
        ? make("span", { class: "marker" }, match[0])
        : make("span", { class: "ctl" }, named(match[0])));
      from = match.index + match[0].length;
    }
    found.push(part.slice(from));
    return found;
  };
  const limit = catalogue.shown_characters;
  const shown = make("span", { class: "said" }, nodes(text.slice(0, limit)));
  if (text.length > limit) {
    const rest = button(`⟦${text.length - limit} more characters⟧`, () => {
      rest.replaceWith(...nodes(text.slice(limit)));
    }, { class: "rest" });
    shown.append(rest);
  }
  return shown;
};

const pairs = (entries) => make("dl", { class: "facts-of" },
  entries.flatMap(([name, value]) => [make("dt", {}, visibleText(name)), make("dd", {}, visibleText(value))]));

// A nested value as pairs of dotted name and text; what is empty is left out.
const flat = (value, prefix = "") => Object.entries(value).flatMap(([key, inner]) => {
  if (inner === null || inner === "" || (Array.isArray(inner) && !inner.length)) return [];
  if (typeof inner === "object" && !Array.isArray(inner)) return flat(inner, `${prefix}${key}.`);
  return [[prefix + key, typeof inner === "string" ? inner : JSON.stringify(inner)]];
});

const copyable = (command) => {
  const code = make("code", {}, command);
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(command);
      copy.textContent = "Copied";
    } catch {
      // no clipboard here: leave the command selected for the reader to copy
      getSelection().selectAllChildren(code);
    }
  }, { "aria-label": `Copy ${command}` });
  return make("p", { class: "command" }, code, " ", copy);
};

const say = (error) => make("p", { class: "callout", role: "alert" }, error.message);
const where = (...parts) => parts.map(encodeURIComponent).join("/");
