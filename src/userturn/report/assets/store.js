// Pieces of data by name: in the page, or in files beside it, each opened when it is needed and then kept for a while.
const inline = byId("chunks") ? JSON.parse(byId("chunks").textContent) : null;
const KEPT = 150;
const opened = new Map();

const files = inline ? null : (() => {
  const address = (name) => {
    if (!/^[0-9a-f]+$/.test(name) || name.length !== catalogue.name_length) throw new TypeError(`no piece of data: ${name}`);
    return `${catalogue.folder}/${name}.js`;
  };
  const policy = window.trustedTypes
    ? trustedTypes.createPolicy(catalogue.policy, { createScriptURL: address })
    : { createScriptURL: address };
  const arrived = new Map();
  window.userturnChunk = (name, data) => arrived.set(name, data);
  return (name) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = policy.createScriptURL(name);
    const fail = () => reject(new Error(`${catalogue.folder}/${name}.js is not beside this page, or belongs to another one: copy the page together with its folder.`));
    script.addEventListener("load", () => {
      script.remove();
      if (!arrived.has(name)) return fail();
      resolve(arrived.get(name));
      arrived.delete(name);
    });
    script.addEventListener("error", () => {
      script.remove();
      fail();
    });
    document.head.append(script);
  });
})();

const unpack = async (data) => {
  const binary = atob(data);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
};

const load = (name) => {
  let found = opened.get(name);
  if (!found) {
    found = (async () => unpack(inline ? inline[name] : await files(name)))();
    found.catch(() => opened.delete(name));
  }
  // the last ones used stay
  opened.delete(name);
  opened.set(name, found);
  if (opened.size > KEPT) opened.delete(opened.keys().next().value);
  return found;
};

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});
const crc32 = (text) => {
  let c = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) c = CRC[(c ^ byte) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
};

const numberDetails = async (id) => {
  const pieces = catalogue.numbers;
  return (await load(pieces[crc32(id) % pieces.length]))[id];
};

// The pieces that hold all of these words and items; null where every piece may.
const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
const piecesWith = async (terms) => {
  if (!catalogue.words || !terms.length) return null;
  let left = null;
  for (const term of terms) {
    const hash = crc32(term);
    const bucket = await load(catalogue.words.buckets[hash % catalogue.words.buckets.length]);
    const here = new Set(bucket[hash] || []);
    left = left ? left.filter((place) => here.has(place)) : [...here];
  }
  return new Set(left.map((place) => catalogue.words.pieces[place]));
};
