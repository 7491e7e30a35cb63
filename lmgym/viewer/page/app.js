"use strict";

const ROW = 44; // pixels of a row in the list, as in style.css
const MARKS = 60; // rows drawn at once
const NATS = [0.05, 0.25, 0.7, 1.2, 2, 3, 5]; // lower ends of the shades h1 to h7, of surprisal and of entropy

// Sources -------------------------------------------------------------------------------------------------------

const served = {
  listing: () => load("listing.json"),
  episode: (place) => load(`episode/${place}`),
  picture: (run, digest) => `picture/${run}/${digest}.png`,
  search: (asked, start, signal) => load(`search.json?${new URLSearchParams({ words: asked, start })}`, { signal }),
};

function texts(episode) {
  const turns = episode.turns.flatMap((turn) => [turn.observation.text, turn.thinking, turn.text, turn.action || ""]);
  return [episode.facts.id, episode.prompt || "", ...turns, episode.final ? episode.final.text : ""];
}

const embedded = {
  read: (id) => JSON.parse($(id).textContent),
  listing: async () => embedded.read("listing"),
  episode: async (place) => embedded.read(`episode-${place}`),
  picture: (run, digest) => ($(`picture-${run}-${digest}`) ? `data:image/png;base64,${embedded.read(`picture-${run}-${digest}`)}` : ""),
  search: async (asked, start) => {
    const hits = [];
    const end = Math.min(start + 200, rows.count);
    for (let place = start; place < end; place++) {
      if (texts(embedded.read(`episode-${place}`)).some((text) => text.toLowerCase().includes(asked.toLowerCase()))) hits.push(place);
    }
    await new Promise((resume) => setTimeout(resume));
    return { hits, next: end < rows.count ? end : null };
  },
};

const source = $("listing") ? embedded : served;

// State ---------------------------------------------------------------------------------------------------------

let rows = { count: 0, runs: [], columns: {} };
let places = []; // of the episodes that pass the filters
let hits = null; // places that the search found; null without a search
let chosen = -1; // place of the episode that is open
let at = 0; // turn that is open
let asking = null; // the search under way
let opening = 0;

const column = (name, place) => rows.columns[name][place];

function fill(select, values, labels = values) {
  const before = select.value;
  select.replaceChildren(...values.map((value, n) => element("option", { value }, ...visible(String(labels[n])))));
  if (values.map(String).includes(before)) select.value = before;
}

function status(more = "") {
  const solved = places.filter((place) => column("success", place)).length;
  const share = places.length ? `, ${solved} solved (${Math.round((1000 * solved) / places.length) / 10} %)` : "";
  $("status").textContent = `${places.length} of ${rows.count} episodes${share}${more}`;
}

function filter(more = "") {
  const [run, task, outcome, instance] = ["run", "task", "outcome", "instance"].map((id) => $(id).value.trim());
  const found = hits === null ? null : new Set(hits);
  places = [];
  for (let place = 0; place < rows.count; place++) {
    if (run !== "" && column("run", place) !== Number(run)) continue;
    if (task !== "" && `${column("task", place)} ${column("split", place)}` !== task) continue;
    if (outcome === "success" && !column("success", place)) continue;
    if (outcome === "failure" && column("success", place)) continue;
    if (outcome === "truncated" && !column("truncated", place)) continue;
    if (instance !== "" && String(column("index", place)) !== instance) continue;
    if (found !== null && !found.has(place)) continue;
    places.push(place);
  }
  status(more);
  draw();
}

// List ----------------------------------------------------------------------------------------------------------

function draw() {
  $("room").style.height = `${places.length * ROW}px`;
  const first = Math.max(0, Math.min(Math.floor($("list").scrollTop / ROW) - 10, places.length - MARKS));
  $("rows").style.top = `${first * ROW}px`;
  $("rows").replaceChildren(...places.slice(first, first + MARKS).map((place, n) => listed(place, first + n)));
  $("list").setAttribute("aria-activedescendant", places.includes(chosen) ? `row-${chosen}` : "");
}

function listed(place, position) {
  const solved = column("success", place);
  const seat = column("seat", place) === "agent" ? "" : ` as ${column("seat", place)}`;
  const run = rows.runs.length > 1 ? `${rows.runs[column("run", place)]} · ` : "";
  const head = `${column("task", place)} ${column("split", place)} ${column("index", place) ?? ""}.${column("attempt", place)}${seat}`;
  const more = `${run}score ${number(column("score", place))} · ${column("turns", place)} turns · ${column("stop", place)}`;
  const attributes = {
    class: "row", role: "option", id: `row-${place}`, "aria-selected": String(place === chosen),
    "aria-posinset": position + 1, "aria-setsize": places.length, on: { click: () => open(place) },
  };
  return element("div", attributes,
    element("div", {}, element("span", { class: solved ? "good" : "bad" }, solved ? "✓ " : "✗ "), ...visible(head)),
    element("div", { class: "more" }, ...visible(more)));
}

function reveal() {
  const position = places.indexOf(chosen);
  const list = $("list");
  if (position >= 0) {
    if (position * ROW < list.scrollTop) list.scrollTop = position * ROW;
    if ((position + 1) * ROW > list.scrollTop + list.clientHeight) list.scrollTop = (position + 1) * ROW - list.clientHeight;
  }
  draw();
}

// Episode -------------------------------------------------------------------------------------------------------

async function open(place) {
  const turn = ++opening;
  chosen = place;
  at = 0;
  history.replaceState(null, "", `#${place}`);
  const others = [];
  for (let other = 0; other < rows.count; other++) {
    const same = ["task", "split", "index", "seat"].every((name) => column(name, other) === column(name, place));
    if (same && other !== place && column("index", place) !== null) others.push(other);
  }
  const label = (other) => `${rows.runs[column("run", other)]}: try ${column("attempt", other)}, score ${number(column("score", other))}`;
  fill($("against"), ["", ...others], ["nothing", ...others.map(label)]);
  reveal();
  await show(turn);
}

async function show(turn = ++opening) {
  if (chosen < 0) return;
  const against = $("against").value;
  try {
    const pair = [chosen, ...(against === "" ? [] : [Number(against)])];
    const episodes = await Promise.all(pair.map((place) => source.episode(place)));
    if (turn !== opening) return;
    $("episode").replaceChildren(...(episodes.length === 1 ? alone(episodes[0]) : beside(episodes, pair)));
    $("episode").scrollTop = 0;
  } catch (error) {
    if (turn === opening) $("episode").replaceChildren(element("p", { class: "bad" }, `This episode cannot be shown: ${error.message}`));
  }
}

function heading(episode, place) {
  const facts = episode.facts;
  const outcome = `${facts.success ? "success" : "failure"}, score ${number(facts.score)}, return ${number(facts.reward)}, ended by ${facts.stop || "-"}`;
  const rest = { run: rows.runs[column("run", place)], seed: facts.seed, options: facts.options, tags: facts.tags, ...episode.info };
  return [
    element("h1", {}, ...visible(`${facts.task} ${facts.split} ${facts.index ?? ""} try ${facts.attempt}`)),
    element("p", { class: facts.success ? "good" : "bad" }, ...visible(outcome)),
    element("p", { class: "facts" }, ...visible(String(facts.id))),
    folded("details", rest),
    episode.prompt ? folded("system prompt", episode.prompt) : null,
  ].filter((part) => part !== null);
}

function folded(title, value) {
  return element("details", {}, element("summary", {}, title), element("pre", {}, ...visible(words(value))));
}

function alone(episode) {
  const run = column("run", chosen);
  return [...heading(episode, chosen), ...legend(), ...episode.turns.map((turn, n) => section(n, ...turned(turn, run))), ...last(episode, run)];
}

// What the shades mean; none while tokens are plain.
function legend() {
  if ($("tokens").value === "") return [];
  const steps = NATS.map((low, n) => element("span", { class: `token h${n + 1}` }, ` ${low}+ `));
  const named = $("tokens").value === "logprob" ? "surprisal (negative log-prob) in nats: " : "entropy in nats: ";
  return [element("p", { id: "legend", class: "facts" }, named, ...steps)];
}

const section = (n, ...children) => element("section", { class: "turn", id: `turn-${n}`, tabindex: "-1" }, element("h2", {}, `turn ${n + 1}`), ...children);

function last(episode, run) {
  return episode.final ? [element("h2", {}, "after the last turn"), ...message(episode.final, run)] : [];
}

// `points` are in the last of its pictures.
function message(shown, run, other = null, points = []) {
  const pictures = shown.images.map((digest, n) => {
    const address = /^[0-9a-f]{32}$/.test(digest) ? source.picture(run, digest) : "";
    const here = n === shown.images.length - 1 ? points : [];
    return address ? marked(address, `picture ${digest}`, here) : element("p", { class: "facts" }, "a picture that is not in the run's folder");
  });
  return [element("pre", { class: "seen" }, ...differing(shown.text, other)), ...pictures];
}

function turned(turn, run, other = null) {
  const facts = [`reward ${number(turn.reward)}`];
  if (turn.kind !== "act") facts.push(turn.kind);
  if (turn.finish !== "stop") facts.push(`ended by ${turn.finish}`);
  if (turn.info.valid === false) facts.push("no valid action");
  const mode = $("tokens").value;
  const said = mode !== "" && turn.tokens.length && other === null ? turn.tokens.map((token) => coloured(token, mode)) : differing(turn.text, other && other.text);
  return [
    ...message(turn.observation, run, other && other.observation.text, turn.points),
    turn.thinking ? element("details", { open: "" }, element("summary", {}, "thinking"), element("pre", { class: "thinking" }, ...visible(turn.thinking))) : null,
    element("pre", { class: "said" }, ...said),
    turn.replaced ? folded("the environment was given", turn.action) : null,
    element("p", { class: turn.info.valid === false ? "bad" : "facts" }, ...visible(facts.join(" · "))),
    folded("turn's record", { terms: turn.terms, info: turn.info, usage: turn.usage, version: turn.version, fresh: turn.fresh }),
  ].filter((part) => part !== null);
}

function coloured([text, logprob, entropy], mode) {
  const value = mode === "logprob" ? (typeof logprob === "number" ? -logprob : null) : entropy;
  const shade = typeof value === "number" ? `h${NATS.filter((low) => value >= low).length}` : "unknown";
  const title = `log-prob ${number(logprob)}, probability ${typeof logprob === "number" ? number(Math.exp(logprob)) : "-"}, entropy ${number(entropy)} nats`;
  return element("span", { class: `token ${shade}`, title }, ...visible(text));
}

// Two episodes --------------------------------------------------------------------------------------------------

// The text with what lies between the common beginning and the common end marked, in whole words.
function differing(text, other) {
  if (other === null || text === other) return visible(text);
  const [mine, theirs] = [text, other].map((one) => one.split(/(\s+)/u));
  let [first, end] = [0, 0];
  const shortest = Math.min(mine.length, theirs.length);
  while (first < shortest && mine[first] === theirs[first]) first++;
  while (end < shortest - first && mine[mine.length - 1 - end] === theirs[theirs.length - 1 - end]) end++;
  const [before, middle, after] = [mine.slice(0, first), mine.slice(first, mine.length - end), mine.slice(mine.length - end)].map((part) => part.join(""));
  return [...visible(before), element("mark", {}, ...visible(middle)), ...visible(after)];
}

function beside(episodes, pair) {
  const runs = pair.map((place) => column("run", place));
  const longest = Math.max(...episodes.map((episode) => episode.turns.length));
  const same = (n) => episodes[0].turns[n] && episodes[1].turns[n] && episodes[0].turns[n].text === episodes[1].turns[n].text && episodes[0].turns[n].observation.text === episodes[1].turns[n].observation.text;
  const first = [...Array(longest).keys()].find((n) => !same(n));
  const both = (make) => element("div", { class: "sides" }, ...[0, 1].map((side) => element("div", {}, ...make(side))));
  const where = first === undefined ? "Both went alike." : `They part at turn ${first + 1}.`;
  const parts = [both((side) => heading(episodes[side], pair[side])), element("p", { id: "parting", class: "facts" }, where)];
  for (let n = 0; n < longest; n++) {
    parts.push(section(n, both((side) => {
      const [turn, other] = [episodes[side].turns[n], episodes[1 - side].turns[n]];
      return turn ? turned(turn, runs[side], other || null) : [element("p", { class: "facts" }, "no such turn")];
    })));
  }
  parts.push(both((side) => last(episodes[side], runs[side])));
  return parts;
}

// Search --------------------------------------------------------------------------------------------------------

async function search() {
  const asked = $("search").value;
  if (asking) asking.abort();
  hits = null;
  if (asked === "") return filter();
  const mine = (asking = new AbortController());
  hits = [];
  try {
    for (let next = 0; next !== null && mine === asking; ) {
      const found = await source.search(asked, next, mine.signal);
      if (mine !== asking) return;
      hits.push(...found.hits);
      next = found.next;
      filter(next === null ? "" : `; searched ${next} of ${rows.count}`);
    }
  } catch (error) {
    if (mine === asking) filter(`; the search failed: ${error.message}`);
  }
}

let pause = 0;
function soon() {
  clearTimeout(pause);
  pause = setTimeout(search, 200);
}

// Keys ----------------------------------------------------------------------------------------------------------

function step(by) {
  const position = places.indexOf(chosen);
  const next = position < 0 ? 0 : position + by;
  if (places[next] !== undefined) open(places[next]);
}

function turnTo(by) {
  const next = $(`turn-${at + by}`) || $(`turn-${at}`);
  if (!next) return;
  at = Number(next.id.slice(5));
  next.scrollIntoView({ block: "start" });
  next.focus({ preventScroll: true });
}

function cycle(select) {
  select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
  select.dispatchEvent(new Event("change"));
}

const KEYS = {
  j: () => step(1), k: () => step(-1), n: () => turnTo($("turn-0") === document.activeElement || at > 0 ? 1 : 0), p: () => turnTo(-1),
  "/": () => $("search").focus(), o: () => cycle($("outcome")), t: () => cycle($("tokens")), d: () => cycle($("against")),
  "?": () => $("keys").showModal(),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  const field = event.target.closest("input, select, textarea");
  if (event.key === "Escape") {
    if (field) field.blur();
    if ($("search").value) {
      $("search").value = "";
      search();
    }
  } else if (!field) {
    const arrow = event.target === $("list") && { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const act = arrow ? () => step(arrow) : Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
    if (act) {
      event.preventDefault();
      act();
    }
  }
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

async function start() {
  try {
    rows = await source.listing();
  } catch (error) {
    $("status").textContent = `The list cannot be loaded: ${error.message}`;
    return;
  }
  const tasks = new Set();
  for (let place = 0; place < rows.count; place++) tasks.add(`${column("task", place)} ${column("split", place)}`);
  fill($("run"), ["", ...rows.runs.keys()], ["all", ...rows.runs]);
  fill($("task"), ["", ...tasks], ["all", ...tasks]);
  fill($("against"), [""], ["nothing"]);
  $("absent").hidden = rows.absent.length === 0;
  $("absent").replaceChildren(...visible(`Not in the list: ${rows.absent.join("; ")}.`));
  for (const id of ["run", "task", "outcome"]) $(id).addEventListener("change", () => filter());
  for (const id of ["tokens", "against"]) $(id).addEventListener("change", () => show());
  $("instance").addEventListener("input", () => filter());
  $("search").addEventListener("input", soon);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("list").addEventListener("scroll", draw);
  $("theme").addEventListener("click", theme);
  $("help").addEventListener("click", () => $("keys").showModal());
  document.addEventListener("keydown", pressed);
  new ResizeObserver(draw).observe($("list"));
  filter();
  const wanted = /^#\d{1,9}$/.test(location.hash) ? Number(location.hash.slice(1)) : 0;
  if (rows.count === 1) document.documentElement.dataset.single = "yes";
  if (rows.count) await open(wanted < rows.count ? wanted : 0);
  document.documentElement.dataset.ready = "yes";
}

start();
