"use strict";

let state = null; // what the server said last
let busy = false;
let said = []; // turns of this episode, newest first
let keys = []; // pressed on the picture and not yet sent
let sending = null; // timer
const MODIFIERS = ["Control", "Alt", "Meta", "Shift"];
const PAUSE = 400; // milliseconds after a character until what was typed is sent

function status(words, bad = false) {
  $("status").textContent = words;
  $("status").className = bad ? "bad" : "";
}

function outcome() {
  const total = `return ${number(state.total)}`;
  if (state.ended === "void") return "The episode is void.";
  if (!state.ended) return `turn ${state.turn + 1}, ${total}`;
  const ending = state.ended === "done" ? "ended" : "cut";
  return `${ending} after ${state.turn} turns: ${total}, score ${number(state.score)}, ${state.success ? "success" : "failure"}`;
}

function where(event) {
  const image = event.currentTarget;
  const share = (at, length) => Math.min(Math.max(at / length, 0), 1);
  const x = Math.min(Math.floor(share(event.offsetX, image.clientWidth) * image.naturalWidth), image.naturalWidth - 1);
  const y = Math.min(Math.floor(share(event.offsetY, image.clientHeight) * image.naturalHeight), image.naturalHeight - 1);
  return [x, y];
}

function pictured(digest) {
  const image = element("img", { src: `picture/${digest}.png`, alt: "what the task shows", draggable: "false" });
  image.addEventListener("load", () => enlarge(image));
  image.addEventListener("mousemove", (event) => { $("place").textContent = where(event).join(", "); });
  image.addEventListener("click", clicked);
  if (state.keys) {
    image.tabIndex = 0;
    image.addEventListener("keydown", pressed);
  }
  return image;
}

function pressed(event) {
  const leaves = event.key === "Tab" && event.shiftKey;
  const incomplete = MODIFIERS.includes(event.key) || event.key === "AltGraph" || event.isComposing;
  if (state.ended || leaves || incomplete) return;
  event.preventDefault();
  const character = [...event.key].length === 1;
  const plain = character && (event.getModifierState("AltGraph") || !(event.ctrlKey || event.altKey || event.metaKey));
  const held = MODIFIERS.filter((name) => event.getModifierState(name) && !(character && name === "Shift"));
  keys.push(plain ? event.key : [...held, event.key].join("+"));
  clearTimeout(sending);
  sending = setTimeout(flush, plain ? PAUSE : 0);
}

// Send what was pressed, characters together and everything else one by one.
async function flush() {
  if (busy) {
    sending = setTimeout(flush, PAUSE);
    return;
  }
  const other = keys.findIndex((key) => [...key].length > 1);
  const found = await ask("press", { keys: keys.splice(0, Math.max(other < 0 ? keys.length : other, 1)) });
  if (found === null) return;
  if (found.action === null) {
    status("The task has no action for this key.", true);
  } else {
    await play("act", { action: found.action });
  }
  if (state.ended) keys = [];
  if (keys.length > 0) await flush();
}

function show() {
  document.title = `Play ${state.task}`;
  $("title").replaceChildren(...visible(`${state.task} ${state.instance}`));
  $("shown").replaceChildren(
    ...state.pictures.map(pictured),
    element("pre", { class: "seen" }, ...visible(state.text)),
    ...said.map((turn) => element("div", { class: "past" },
      element("pre", { class: "said" }, ...visible(turn.action)),
      element("p", { class: turn.valid === false ? "bad" : "facts" }, `reward ${number(turn.reward)}${turn.valid === false ? " · no valid action" : ""}`))),
  );
  for (const id of ["action", "send", "next"]) $(id).disabled = state.ended !== "";
  $("keyed").hidden = !state.keys;
  $("next").hidden = state.adviser === null;
  $("next").textContent = state.adviser === null ? "next" : `next by ${state.adviser}`;
  status(outcome(), state.ended === "void");
  document.documentElement.dataset.turn = `${state.episode}.${state.turn}${state.ended}`;
}

// Ask the server for something, one question at a time; what it refuses is said and changes nothing.
async function ask(path, sent) {
  if (busy) return null;
  busy = true;
  status("…");
  try {
    return await load(path, { sent });
  } catch (error) {
    show();
    status(error.message, true);
    return null;
  } finally {
    busy = false;
  }
}

async function play(path, sent) {
  const found = await ask(path, { turn: state.turn, ...sent });
  if (found === null) return;
  state = found;
  said.unshift({ action: found.action, reward: found.reward, valid: found.valid });
  $("action").value = "";
  const pictured = document.activeElement.matches("#shown img");
  show();
  (pictured && document.querySelector("#shown img") || $("action")).focus();
}

async function clicked(event) {
  if (state.ended) return;
  const [x, y] = where(event);
  const found = await ask("point", { x, y });
  if (found === null) return;
  status(outcome());
  if (found.action === null) {
    const field = $("action");
    field.setRangeText(`${x}, ${y}`, field.selectionStart, field.selectionEnd, "end");
    field.focus();
  } else if ($("direct").checked) {
    await play("act", { action: found.action });
  } else {
    $("action").value = found.action;
    $("action").focus();
  }
}

async function again() {
  const found = await ask("again", {});
  if (found === null) return;
  state = found;
  said = [];
  show();
}

async function start() {
  try {
    state = await load("state.json");
  } catch (error) {
    status(`This task cannot be shown: ${error.message}`, true);
    return;
  }
  show();
  $("say").addEventListener("submit", (event) => {
    event.preventDefault();
    play("act", { action: $("action").value });
  });
  $("action").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      play("act", { action: $("action").value });
    }
  });
  $("next").addEventListener("click", () => play("next", {}));
  $("again").addEventListener("click", again);
  $("action").focus();
  document.documentElement.dataset.ready = "yes";
}

start();
