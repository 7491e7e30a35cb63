"use strict";
// What all pages have in common. Everything shown is hostile data: elements are made by name and filled as text, never
// from markup. Data makes no link.

const SMALL = 320; // pixels; narrower pictures are shown larger
const CONTROLS = 2000; // characters of one text that are written out
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udfff]/gu;

const $ = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// What does not show, or turns text around, is written out; past CONTROLS of them it is a mark each.
function visible(text) {
  const parts = [];
  let from = 0;
  let count = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (++count > CONTROLS) break;
    if (found.index > from) parts.push(text.slice(from, found.index));
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    parts.push(element("span", { class: "control", title: "a character that does not show" }, `U+${code}`));
    from = found.index + found[0].length;
  }
  const rest = text.slice(from);
  parts.push(count > CONTROLS ? rest.replace(HIDDEN, "\ufffd") : rest);
  return parts;
}

const words = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));
const number = (value) => (typeof value === "number" ? String(Math.round(value * 1000) / 1000) : String(value ?? "-"));

// What the server answers; `sent`, if given, is sent to it.
async function load(address, { signal, sent } = {}) {
  const asking = sent === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(sent) };
  const response = await fetch(address, { signal, ...asking });
  const content = (response.headers.get("Content-Type") || "").startsWith("application/json") ? await response.json() : {};
  if (!response.ok) throw new Error(content.error || `${response.status} ${response.statusText}`);
  return content;
}

// Small pictures are shown larger, by a whole number of times.
function enlarge(image) {
  const times = Math.floor((2 * SMALL) / Math.max(image.naturalWidth, SMALL / 2));
  if (image.naturalWidth < SMALL) image.style.width = `${times * image.naturalWidth}px`;
}

// A picture with marks at points [x, y] in its own pixels; several of them are numbered. Points outside of it are not drawn.
function marked(address, name, points) {
  const image = element("img", { src: address, alt: name, loading: "lazy" });
  const frame = element("div", { class: "picture" }, image);
  image.addEventListener("load", () => {
    enlarge(image);
    points.forEach(([x, y], n) => {
      if (!(x >= 0 && y >= 0 && x < image.naturalWidth && y < image.naturalHeight)) return;
      const mark = element("span", { class: "point", title: `${x}, ${y}` }, points.length > 1 ? String(n + 1) : "");
      mark.style.left = `${(100 * (x + 0.5)) / image.naturalWidth}%`;
      mark.style.top = `${(100 * (y + 0.5)) / image.naturalHeight}%`;
      frame.append(mark);
    });
  }, { once: true });
  return frame;
}
