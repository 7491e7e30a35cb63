"use strict";

let state = null; // what the server said last
let busy = false;
let said = []; // turns of this episode, newest first

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
  return image;
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
  show();
  $("action").focus();
}

async function clicked(event) {
  if (state.ended) return;
  const [x, y] = where(event);
  const found = await ask("point", { x, y });
  if (found === null) return;
  show();
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
