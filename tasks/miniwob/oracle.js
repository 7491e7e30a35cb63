// Players written for single pages: each looks at the page and says what to do next, knowing all that the page knows.
// A player is given the goal's text, what it remembered, the seed and the names of the allowed actions; it returns a
// call, or [call, what to remember].
// Where nobody wrote one, nothing is done. Some players do well and do not always win: SOLVED, in __init__.py, names the pages of those that do.
([page, goal, memory, seed, allowed]) => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);
  const text = element => element.textContent.replace(/\s+/g, ' ').trim();
  const shown = element => element && element.checkVisibility() && element.getClientRects().length > 0;
  const say = (name, ...values) => `${name}(${values.map(value => JSON.stringify(value)).join(', ')})`;
  const middle = element => {
    const box = element.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const click = element => {
    if (!element) return null;
    const bid = element.getAttribute('bid');
    if (bid && allowed.includes('click')) return say('click', bid);
    return say('mouse_click', ...(bid ? middle(element).map(Math.round) : middle(element)));
  };
  const hover = element => say('hover', element.getAttribute('bid'));
  const fill = (element, value) => say('fill', element.getAttribute('bid'), String(value));
  const press = (element, key) => say('press', element.getAttribute('bid'), key);
  const choose = (element, options) => say('select_option', element.getAttribute('bid'), options);
  const drag = (from, to) => say('mouse_drag_and_drop', ...from, ...to);
  const labelled = (selector, name, root) => all(selector, root).find(element => text(element) === name);
  const quoted = [...goal.matchAll(/"([^"]*)"/g)].map(match => match[1]);
  const bold = all('#query .bold, #query b').map(text);
  const number = {'1st': 0, '2nd': 1, '3rd': 2};
  const nth = word => number[word] ?? parseInt(word) - 1;
  const submit = () => click(one('#subbtn, #submit, #area button.secondary-action') || labelled('#area button', 'Submit'));
  const typed = pairs => {  // [field, value] of each; then submit
    const open = pairs.find(([field, value]) => field.value !== String(value));
    return open ? fill(...open) : submit();
  };
  const pressed = (wanted, done) => {  // click what is wanted and not done; then submit
    const open = wanted.find(element => !done(element));
    return open ? click(open) : submit();
  };
  const boxes = wants => {
    const wrong = all('#area input').find(box => box.checked !== wants(text(box.parentElement)));
    return wrong ? click(wrong) : submit();
  };
  const listed = /Select (?:words similar to )?(.*) and click Submit/.exec(goal);
  const names = listed ? listed[1].split(', ') : [];

  // The link that is asked for, on a page whose parts are behind tabs or headings.
  const linked = () => {
    const link = all('.alink').filter(element => text(element) === quoted[0]);
    if (!link.length) return click(all('.ui-tab a')[1]);  // one page asks for the empty tab then
    const open = link.find(shown);
    if (open) return click(open);
    const part = link[0].closest('.ui-tabs-panel, .ui-accordion-content');
    return click(one(`[aria-controls="${part.id}"] a, h3[aria-controls="${part.id}"]`));
  };
  // A slider is clicked where the value should be, then moved by keys.
  const slide = (slider, value) => {
    const state = $(slider), [least, most] = [state.slider('option', 'min'), state.slider('option', 'max')];
    const now = state.slider('value');
    if (now === value) return null;
    if (Math.abs(now - value) <= 3) {
      return press(one('.ui-slider-handle', slider), value > now ? 'ArrowRight' : 'ArrowLeft');
    }
    const box = slider.getBoundingClientRect(), share = (value - least) / (most - least);
    const within = (start, size, part) => Math.min(start + size - 1, Math.max(start + 1, start + part * size));
    const place = state.slider('option', 'orientation') === 'horizontal'
      ? [within(box.left, box.width, share), box.top + box.height / 2]
      : [box.left + box.width / 2, within(box.top, box.height, 1 - share)];
    const handle = one('.ui-slider-handle', slider);  // which takes no click: it has to go out of the way
    return document.elementFromPoint(...place) === handle ? press(handle, share < 0.5 ? 'End' : 'Home') : say('mouse_click', ...place);
  };
  const date = () => {
    const [month, day, year] = /(\d+)\/(\d+)\/(\d+)/.exec(goal).slice(1).map(Number);
    return {month, day, year};
  };
  const calendar = field => {
    const {month, day, year} = date();
    if (!shown(one('#ui-datepicker-div'))) return click(field);
    const shownMonth = new Date(`${text(one('.ui-datepicker-month'))} 1, ${text(one('.ui-datepicker-year'))}`);
    const far = (year - shownMonth.getFullYear()) * 12 + month - 1 - shownMonth.getMonth();
    if (far) return click(one(far < 0 ? '.ui-datepicker-prev' : '.ui-datepicker-next'));
    return click(labelled('#ui-datepicker-div td a', String(day)));
  };
  // Fields that suggest what to enter show a list, which may lie above what is needed next.
  const suggested = (field, value) => {
    if (field.value !== value) return fill(field, value);
    return all('.ui-autocomplete').some(shown) ? press(field, 'Escape') : null;
  };
  const picked = () => {
    const field = one('#datepicker'), {month, day, year} = date();
    const pad = value => String(value).padStart(2, '0');
    return field.value === `${pad(month)}/${pad(day)}/${year}` ? submit() : calendar(field);
  };
  // Shapes: letters and digits are text; a large one is 20 pixels, or nearly.
  const kind = element => {
    const name = element.localName, label = text(element);
    const word = {rect: 'rectangle', circle: 'circle', polygon: 'triangle'}[name] || label;
    const type = name !== 'text' ? 'shape' : /\d/.test(label) ? 'digit' : 'letter';
    const size = name === 'circle' ? 2 * element.getAttribute('r') : element.getBBox().width;
    const large = name === 'text' ? parseFloat(getComputedStyle(element).fontSize) > 15 : size > 14;
    return {words: [word, type, 'item'], colour: element.getAttribute('fill') || element.style.fill, large};
  };
  const drawn = () => all('#area_svg > *, #area_svg g > *').filter(element => !element.children.length || element.localName === 'text');
  const described = words => {
    const parts = words.trim().split(' '), what = parts.pop();
    const size = ['small', 'large'].includes(parts[0]) ? parts.shift() : null, colour = parts[0];
    return element => {
      const is = kind(element);
      return is.words.includes(what) && (!size || is.large === (size === 'large')) && (!colour || is.colour === colour);
    };
  };
  const towards = (element, word) => {
    const [x, y] = middle(element);
    const [right, down] = {left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1]}[word];
    return drag([x, y], [x + 14 * right, y + 14 * down]);
  };
  const sorted = (item, place) => {  // drag an entry of a list onto the place of another, and a little beyond
    const items = all('#sortable li'), from = middle(item), to = middle(items[place]);
    const after = place > items.indexOf(item) ? 4 : -4;
    return drag(from, [to[0] + (to[0] === from[0] ? 0 : Math.sign(to[0] - from[0]) * 4), to[1] + (to[1] === from[1] ? 0 : after)]);
  };
  const film = () => {
    const [, genre, name, year] = /Search for (.*) movies directed by (.*) from year (\d+)/.exec(goal);
    const wants = [[/genre/i, genre], [/director/i, name], [/year|released/i, year]];
    for (const field of all('#area input[type=text]')) {
      const row = field.closest('p, tr, .row, .field, .ui-entry') || field.parentElement;
      const [, value] = wants.find(([label]) => label.test(text(row)));
      if (field.value !== value) return fill(field, value);
    }
    return click(one('#area button, #area .final, #area .ui-submit'));
  };
  const mail = sender => all('#main .email-thread').find(row => text(one('.email-sender', row)) === sender);
  const handled = (row, task, words) => {  // what is next to delete, star, reply to or forward a mail
    if (task === 'delete') return click(one('.trash', row));
    if (task === 'star') return click(one('.star', row));
    const written = one('#reply-text'), sender = one('.forward-sender');
    if (shown(written)) return written.value === words ? click(one('#send-reply')) : fill(written, words);
    if (shown(sender)) return sender.value === words ? click(one('#send-forward')) : fill(sender, words);
    return click(shown(one('#email')) ? one(`.email-${task}`) : one('.email-sender', row));
  };
  const post = user => all('.media').filter(row => text(one('.username', row)) === user);

  const dotted = (radius, good) => {  // click where a dot of this radius is best, of all whole pixels of the grid; then submit
    if (one('#blue-circle')) return submit();
    const grid = one('#svg-grid').getBoundingClientRect(), found = {worth: -Infinity};
    for (let x = Math.ceil(grid.left) + 5; x < grid.right - 5; x++) {
      for (let y = Math.ceil(grid.top) + 5; y < grid.bottom - 5; y++) {
        const worth = good({x: x - radius, y: y - 50 - radius});
        if (worth > found.worth) Object.assign(found, {worth, x, y});
      }
    }
    return say('mouse_click', found.x, found.y);
  };
  const ROWS = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];
  const hopes = (board, place) => {  // chance to win by a mark, against the page's player: 55 % chance, else its best
    const now = board.slice(), won = (state, mark) => ROWS.some(row => row.every(i => state[i] === mark));
    now[place] = 1;
    const open = state => [...state.keys()].filter(i => state[i] === 0);
    if (won(now, 1)) return 1;
    const after = open(now).map(answer => {
      const then = now.slice();
      then[answer] = -1;
      return won(then, -1) ? 0 : Math.max(0, ...open(then).map(next => hopes(then, next)));
    });
    return after.length ? 0.55 * after.reduce((sum, chance) => sum + chance) / after.length + 0.45 * Math.min(...after) : 0;
  };

  const players = {
    'ascending-numbers': () => {
      const squares = all('svg rect[data-index]'), first = squares.length ? squares[0] : labelled('svg text', '1');
      return say('mouse_click', ...middle(first));
    },
    'bisect-angle': () => {
      const [first, second] = all('.init-black').map(circle => circle.getBBox()), vertex = one('.init-blue').getBBox();
      const whole = findAngle(first, second, vertex);
      return dotted(3.5, point => whole - Math.max(findAngle(first, point, vertex), findAngle(second, point, vertex)));
    },
    'book-flight': () => {
      const offers = all('.flight'), name = bold[0] === 'cheapest' ? 'price' : 'duration';
      const cost = row => parseInt(one(`[data-${name}]`, row).getAttribute(`data-${name}`));
      if (offers.length) return click(one('.flight-price', offers.sort((a, b) => cost(a) - cost(b))[0]));
      const [from, to] = bold.slice(1, 3).map(name => DOMESTIC_FLIGHTS.find(city => city.includes(name)));
      const {month, day, year} = date(), pad = value => String(value).padStart(2, '0');
      const dated = one('#datepicker').value === `${pad(month)}/${pad(day)}/${year}`;
      return suggested(one('#flight-from'), from) || suggested(one('#flight-to'), to)
        || click(dated ? one('#search') : null) || calendar(one('#datepicker'));
    },
    'button-delay': () => {
      const seconds = parseInt(/wait (\d)/.exec(goal)[1]);
      if (!memory) return [click(one('#subbtn')), 1];
      return memory === 1 ? [say('noop', seconds * 1000 - 500), 2] : click(one('#subbtn2'));
    },
    'buy-ticket': () => {
      const [name, sign] = /cheapest/.test(goal) ? ['price', 1] : /expensive/.test(goal) ? ['price', -1]
        : ['duration', /shortest/.test(goal) ? 1 : -1];
      const cost = row => sign * parseInt(one(`[data-${name}]`, row).getAttribute(`data-${name}`));
      return click(one('.buy-ticket', all('.flight').sort((a, b) => cost(a) - cost(b))[0]));
    },
    'choose-date': picked,
    'choose-list': () => {
      const wanted = /Select (.*) from the list/.exec(goal)[1], list = one('#options');
      return list.options[list.selectedIndex].text === wanted ? submit() : choose(list, wanted);
    },
    'click-button': () => click(labelled('button', quoted[0])),
    'click-button-sequence': () => memory ? click(one('#subbtn2')) : [click(one('#subbtn')), 1],
    'click-checkboxes': () => boxes(name => names.includes(name)),
    'click-checkboxes-soft': () => boxes(name => SYNONYMS.some(group => group.includes(name) && names.some(other => group.includes(other)))),
    'click-collapsible': () => shown(one('.ui-accordion-content')) ? submit() : click(one('h3')),
    'click-collapsible-2': linked,
    'click-color': () => click(one(`#area [data-color="${/the (.*) colored/.exec(goal)[1]}"]`)),
    'click-dialog': () => click(one('.ui-dialog-titlebar-close')),
    'click-dialog-2': () => click(quoted[0] === 'x' ? one('.ui-dialog-titlebar-close') : labelled('.ui-dialog-buttonset button', quoted[0])),
    'click-link': linked,
    'click-menu': () => {
      const path = goal.replace(/^Select /, '').split('>').map(name => labelled('#menu div', name));
      const next = path.findIndex(item => !shown(item));
      return next < 0 ? click(path[path.length - 1]) : hover(path[next - 1]);
    },
    'click-menu-2': () => {
      const icon = one('#query .ui-icon');
      const item = icon ? all('#menu li').find(row => row.querySelector(`:scope > div > .${icon.classList[1]}`))
        : all('#menu li').find(row => text(row) === quoted[quoted.length - 1]);
      if (shown(item)) return click(item);
      return shown(one('#menu')) ? hover(labelled('#menu div', 'Playback')) : click(one('#open-menu'));
    },
    'click-option': () => {
      const box = all('#area input').find(input => names.includes(text(input.parentElement)));
      return box.checked ? submit() : click(box);
    },
    'click-pie': () => {
      const label = name => all('#divWheel text').find(element => text(element) === name);
      const open = label(bold[0]).getBoundingClientRect().width > 4;
      return say('mouse_click', ...middle(label(open ? bold[0] : '+')));
    },
    'click-scroll-list': () => {
      const wanted = /Select (.*) from the scroll list/.exec(goal)[1].split(', '), list = one('#options');
      return list.selectedOptions.length === wanted.length ? submit() : choose(list, wanted);
    },
    'click-shades': () => {
      const colour = /shades of (\w+)/.exec(goal)[1];
      return pressed(all(`#area [data-color=${colour}]`), square => square.className === 'selected');
    },
    'click-shape': () => say('mouse_click', ...middle(drawn().find(described(/Click on an? (.*)/.exec(goal)[1])))),
    'click-tab': () => click(labelled('#area ul a', `Tab #${/#(\d)/.exec(goal)[1]}`)),
    'click-tab-2': linked,
    'click-test': () => click(one('#subbtn')),
    'click-test-transfer': () => click(labelled('button', /button (\w+)/.exec(goal)[1])),
    'click-widget': () => click(one(`#area [data-type="${quoted[0]}"]`)),
    'copy-paste': () => typed([[one('#answer-input'), one('#to-copy').value]]),
    'copy-paste-2': () => typed([[one('#answer-input'), one(`#text-${nth(bold[0]) + 1}`).value]]),
    'count-shape': () => {
      const count = drawn().filter(described(/How many (.*?)s are there/.exec(goal)[1])).length;
      return click(labelled('#count-buttons button', String(count)));
    },
    'count-sides': () => {
      const {data} = one('canvas').getContext('2d').getImageData(0, 0, 150, 100), reach = [];
      for (let step = 0; step < 360; step++) {
        const turn = step * Math.PI / 180;
        let far = 48;
        while (far > 0 && data[4 * (150 * Math.round(50 + far * Math.sin(turn)) + Math.round(75 + far * Math.cos(turn))) + 3] < 128) far -= 0.5;
        reach.push(far);
      }
      const power = sides => Math.hypot(...['cos', 'sin'].map(f => reach.reduce((sum, far, i) => sum + far * Math[f](sides * i * Math.PI / 180), 0)));
      const sides = [3, 4, 5, 6, 7].sort((a, b) => power(b) - power(a))[0];
      return click(one(`[data-sides="${sides}"]`));
    },
    'drag-box': () => {
      const small = one('#draggableSmall').getBoundingClientRect(), large = one('#draggableLarge').getBoundingClientRect();
      if (smallBoxContained()) return submit();
      const from = [small.left + 10, small.top + 10];
      const free = document.elementFromPoint(...from) === one('#draggableSmall') ? from
        : [[2, 2], [18, 2], [2, 18], [18, 18]].map(([x, y]) => [small.left + x, small.top + y])
            .find(point => document.elementFromPoint(...point) === one('#draggableSmall'));
      if (!free) return drag([large.left + 45, large.top + 45], [large.left + 45, large.top < 100 ? large.top + 75 : large.top + 15]);
      return drag(free, [free[0] + large.left + 15 - small.left, free[1] + large.top + 15 - small.top]);
    },
    'drag-circle': () => memory ? submit() : [towards(one('svg circle'), /circle (\w+)/.exec(goal)[1]), 1],
    'drag-single-shape': () => memory ? submit() : [towards(one('.black-shape'), /item (\w+)/.exec(goal)[1]), 1],
    'drag-items': () => {
      const items = all('#sortable li'), [, name, where] = /Drag (\S+) (.*)/.exec(goal);
      const item = items.find(row => text(row) === name), now = items.indexOf(item);
      const place = /top/.test(where) ? 0 : /bottom/.test(where) ? 4 : /down/.test(where) ? now + 1 : /up/.test(where) ? now - 1 : parseInt(/\d/.exec(where)[0]) - 1;
      return sorted(item, place);
    },
    'drag-cube': () => {  // a pixel turns the cube by about 1.2 degrees while the button is held
      const side = bold[0], at = {1: [42, 264], 2: [177, 136], 3: [86, 136], 4: [0, 136], 5: [269, 136], 6: [42, 88]}[side];
      const {positionX, positionY} = cube.viewport, right = text(one('.cube-image.active')) === side;
      if (!memory) return right ? click(one('#subbtn')) : [say('mouse_down', 80, 120), [80, 120]];
      if (right) return memory.length === 2 ? [say('mouse_up', ...memory), [...memory, 0]] : click(one('#subbtn'));
      const round = angle => ((angle + 540) % 360 + 360) % 360 - 180;
      const [x, y] = [round(at[0] - positionX), round(at[1] - positionY)].map((angle, i) => memory[i] - Math.round(angle / 1.2));
      return [say('mouse_move', x, y), [x, y]];
    },
    'drag-items-grid': () => {
      const items = all('#sortable li'), [, name, where] = /Drag (\S+) (.*)/.exec(goal), now = items.findIndex(item => text(item) === name);
      const step = {'up by one.': -3, 'down by one.': 3, 'left by one.': -1, 'right by one.': 1}[where];
      const row = /top/.test(where) ? 0 : /bottom/.test(where) ? 6 : 3, column = /left/.test(where) ? 0 : /right/.test(where) ? 2 : 1;
      const place = step ? now + step : row + column;
      if (memory) return memory.length > 1 ? [memory[0], memory.slice(1)] : memory[0];
      const from = middle(items[now]), to = middle(items[place]).map((value, i) => value + 6 * Math.sign(value - from[i]));
      if (to[0] <= from[0] || to[1] >= from[1]) return drag(from, to);
      return [say('mouse_down', ...from), [say('mouse_move', to[0], from[1]), say('mouse_move', ...to), say('mouse_up', ...to)]];  // others make room
    },
    'drag-shapes': () => {
      const tag = {rectangles: 'rect:not(#shape-container)', circles: 'circle', triangles: 'polygon'}[/Drag all (\w+)/.exec(goal)[1]];
      const open = all(`#area_svg ${tag}`).find(shape => !insideContainer(shape));
      return open ? drag(middle(open), middle(one('#shape-container'))) : submit();
    },
    'drag-shapes-2': () => {
      const tags = {rectangles: 'rect', circles: 'circle', triangles: 'polygon'}, [, what] = /Drag all (\w+)/.exec(goal);
      const [left, right] = all('#shape-container');
      for (const shape of all('#area_svg rect:not(#shape-container), #area_svg circle, #area_svg polygon')) {
        const first = tags[what] ? shape.localName === tags[what] : shape.getAttribute('fill') === what;
        const [x, y] = [first ? LEFT_BOX_X : RIGHT_BOX_X, first ? LEFT_BOX_Y : RIGHT_BOX_Y];
        if (!insideContainer(shape, x, y)) return drag(middle(shape), middle(first ? left : right));
      }
      return submit();
    },
    'drag-sort-numbers': () => {
      const items = all('#sortable li'), wanted = items.map(item => parseInt(text(item))).sort((a, b) => a - b);
      const place = items.findIndex((item, i) => parseInt(text(item)) !== wanted[i]);
      if (place < 0) return submit();
      return sorted(items.slice(place).find(item => parseInt(text(item)) === wanted[place]), place);
    },
    'draw-circle': () => {
      const [step, x, y] = memory || [0, ...middle(one('#circ, svg circle'))], turn = step * Math.PI / 4;
      if (step > 9) return click(one('#controls button'));
      const name = step === 0 ? 'mouse_down' : step === 9 ? 'mouse_up' : 'mouse_move';
      return [say(name, x + 14 * Math.cos(turn), y + 14 * Math.sin(turn)), [step + 1, x, y]];
    },
    'draw-line': () => {
      if (one('svg path')) return click(one('#controls button'));
      const [x, y] = middle(one('#circ'));
      return drag([x - 3, y - 3], goal.includes('horizontal') ? [x + 27, y - 3] : [x - 3, y + 27]);
    },
    'email-inbox': () => {
      const task = /trash|delete/.test(goal) ? 'delete' : /star|important/.test(goal) ? 'star' : /forward/i.test(goal) ? 'forward' : 'reply';
      return handled(mail(bold[0]), task, bold[1]);
    },
    'email-inbox-nl-turk': () => {  // the page keeps what its sentence was made of
      const {task = 'forward', by, to, message} = core.currentFields;
      return handled(mail(by), task, task === 'reply' ? message : to);
    },
    'enter-date': () => {
      const {month, day, year} = date(), pad = value => String(value).padStart(2, '0');
      return typed([[one('#tt'), `${year}-${pad(month)}-${pad(day)}`]]);
    },
    'enter-password': () => typed([[one('#password'), quoted[0]], [one('#verify'), quoted[0]]]),
    'enter-text': () => typed([[one('#tt'), quoted[0]]]),
    'enter-text-2': () => typed([[one('#tt'), /upper case/.test(goal) ? quoted[0].toUpperCase() : quoted[0].toLowerCase()]]),
    'enter-time': () => {
      const [, hour, minute, half] = /(\d+):(\d+)\s*([AP]M)/.exec(goal);
      return typed([[one('#tt'), `${String(parseInt(hour) % 12 + (half === 'PM' ? 12 : 0)).padStart(2, '0')}:${minute}`]]);
    },
    'find-greatest': () => {
      const value = card => parseInt(text(card)), best = all('.card').sort((a, b) => value(b) - value(a))[0];
      return best.classList.contains('hidden') ? click(best) : click(one('#submit'));
    },
    'find-word': () => {
      const words = text(one('#area p')).split(' ');
      return typed([[one('#answer-input'), words[nth(/the (\w+) word/.exec(goal)[1])].replace(/[^a-zA-Z]/g, '')]]);
    },
    'focus-text': () => click(one('#tt')),
    'focus-text-2': () => click(one(`#tt${nth(/the (\w+) input/.exec(goal)[1]) + 1}`)),
    'form-sequence': () => {
      const box = one(`#checkbox-${nth(/the (\w+) checkbox/.exec(goal)[1]) + 1}`);
      return slide(one('#slider'), parseInt(/Select (-?\d+)/.exec(goal)[1])) || (box.checked ? submit() : click(box));
    },
    'form-sequence-2': () => {
      const radio = all('input[type=radio]')[nth(/the (\w+) radio/.exec(goal)[1])];
      return radio.checked ? typed([[one(`#input-${nth(/the (\w+) textbox/.exec(goal)[1]) + 1}`), quoted[0]]]) : click(radio);
    },
    'form-sequence-3': () => {
      const wanted = /Choose (.*) from the dropdown/.exec(goal)[1];
      if (one('#dropdown').value === wanted) return click(labelled('#buttons button', quoted[0]));
      const item = labelled('.selectric-items li', wanted);
      return shown(item) ? click(item) : click(one('.selectric'));
    },
    'generate-number': () => {
      const now = parseInt(text(one('#display-number'))), [, bound] = /than (\d+)/.exec(goal) || [];
      const good = /less/.test(goal) ? now < bound : /greater/.test(goal) ? now > bound : /odd/.test(goal) ? now % 2 === 1 : now % 2 === 0;
      return click(one(good ? '#submit' : '#generate'));
    },
    'grid-coordinate': () => say('mouse_click', ...middle(document.getElementById(bold[0]))),
    'guess-number': () => {
      let [least, most, said] = memory || [0, 9, null];
      const field = one('#tt');
      if (said !== null && field.value === String(said) && !shown(one('#higher')) && !shown(one('#lower'))) return [submit(), [least, most, said]];
      const heard = [one('#higher'), one('#lower')].find(shown);
      if (heard && parseInt(text(one('span', heard))) === said && field.value === String(said)) {
        if (heard.id === 'higher') least = said + 1; else most = said - 1;
      } else if (said !== null && field.value === String(said)) return [submit(), [least, most, said]];
      const guess = Math.floor((least + most) / 2);
      return [fill(field, guess), [least, most, guess]];
    },
    'highlight-text': () => {
      if (memory) return submit();
      const part = all('#randomText p')[nth((/the (\w+) paragraph/.exec(goal) || [0, '1st'])[1])] || one('#randomText');
      const range = document.createRange();
      range.selectNodeContents(part);
      const lines = [...range.getClientRects()], first = lines[0], last = lines[lines.length - 1];
      return [drag([first.left, first.top + 4], [Math.min(last.right - 0.5, part.getBoundingClientRect().right - 1), last.bottom - 4]), 1];
    },
    'hot-cold': () => {  // the page's first two numbers
      const drawn = new Math.seedrandom(seed), [x, y] = [150, 115].map(range => Math.floor(drawn() * range + 5));
      return say('mouse_click', x, y + 50);
    },
    'identify-shape': () => {
      const is = kind(drawn()[0]);
      return click(one(`[data-type="${is.words[1] === 'shape' ? is.words[0] : is.words[1]}"]`));
    },
    'login-user': () => {
      if (shown(one('#popup-cancel'))) return click(one('#popup-cancel'));
      return typed([[one('#username'), quoted[0]], [one('#password'), quoted[1]]]);
    },
    'multi-layouts': film,
    'multi-orderings': film,
    'navigate-tree': () => {
      const names = all('#tree span').filter(element => text(element) === quoted[0]);
      const open = names.find(shown);
      if (open) return click(open);
      let above = names[0].parentElement.parentElement.closest('li');
      while (above.parentElement.closest('li') && !shown(above)) above = above.parentElement.closest('li');
      return click(one('.hitarea', above) || one('span', above));
    },
    'number-checkboxes': () => {
      const wanted = PATTERNS[parseInt(quoted[0])].flat();
      const wrong = all('#checkboxes input').find((box, i) => box.checked !== Boolean(wanted[i]));
      return wrong ? click(wrong) : submit();
    },
    'odd-or-even': () => pressed(
      all('.row').map(row => one(Math.abs(parseInt(text(one('.display-number', row)))) % 2 ? '.odd' : '.even', row)),
      button => button.classList.contains('selected')),
    'order-food': () => {
      const count = row => parseInt(row.getAttribute('data-quantity')), rows = all('.food-item');
      const [, much, type] = /Order (\d+) items that are (.*)/.exec(goal) || [];
      if (type) {
        const row = rows.find(item => MENU[item.getAttribute('data-id')].types.includes(type));
        return count(row) < much ? click(one('.add', row)) : click(one('#submit-order button'));
      }
      const wanted = goal.replace('Order one of each item: ', '').split(',').map(name => name.trim());
      const open = rows.find(row => wanted.includes(row.getAttribute('data-item').trim()) && !count(row));
      return open ? click(one('.add', open)) : click(one('#submit-order button'));
    },
    'phone-book': () => {
      const [, name, what] = /Find (.*) in the contact book and click on their (\w+)/.exec(goal);
      if (text(one('#contact .name')) === name) return click(one(`#contact .${what}`));
      return click(all('#pagination a').find(link => text(link) === '>'));
    },
    'read-table': () => typed([[one('#tt'), text(labelled('td', bold[0]).nextElementSibling)]]),
    'read-table-2': () => typed([1, 2].map(i => [one(`#tt${i}`), text(labelled('td', one(`#ll${i}`).getAttribute('data-key')).nextElementSibling)])),
    'resize-textarea': () => {
      if (memory) return submit();
      const [x, y] = middle(one('.ui-resizable-se')), far = bold[1] === 'larger' ? 12 : -12;
      return [drag([x, y], [x + far, y + far]), 1];
    },
    'right-angle': () => {
      const end = one('#init-black').getBBox(), vertex = one('#init-blue').getBBox();
      return dotted(3, point => -Math.abs(90 - findAngle(end, point, vertex)));
    },
    'scroll-text': () => typed([[one('#answer-input'), one('#text-area').value.trim().split(/\s+/).pop().replace(/[^a-zA-Z0-9]/g, '')]]),
    'scroll-text-2': () => memory ? submit() : [press(one('#text-area'), goal.includes('bottom') ? 'Control+End' : 'Control+Home'), 1],
    'search-engine': () => {
      const field = one('#search-text'), place = nth(/the (\w+) search result/.exec(goal)[1]);
      if (field.value !== bold[0]) return fill(field, bold[0]);
      if (!one('#page-content a')) return click(one('#search'));
      const link = one(`#page-content a[data-result="${place}"]`);
      return link ? click(link) : click(labelled('#pagination a', String(Math.floor(place / 3) + 1)));
    },
    'sign-agreement': () => {
      const name = one('#name');
      if (!quoted.length) return click(one('#cancel'));
      if (name.disabled) return say('scroll_at', ...middle(one('#text-area')), 0, 5000);
      return name.value === quoted[0] ? click(one(quoted[1] === 'Agree' ? '#agree' : '#cancel')) : fill(name, quoted[0]);
    },
    'simple-algebra': () => {
      const [left, sign, right, , total] = text(one('#math-problem')).split(' ');
      const [a, b, c] = [left, right, total].map(Number);
      const x = left === 'x' ? (sign === '+' ? c - b : c + b) : sign === '+' ? c - a : a - c;
      return typed([[one('#math-answer'), x]]);
    },
    'simple-arithmetic': () => {
      const [left, sign, right] = text(one('#math-problem')).split(' '), [a, b] = [Number(left), Number(right)];
      return typed([[one('#math-answer'), sign === '+' ? a + b : sign === '-' ? a - b : a * b]]);
    },
    'social-media': () => {
      const [row] = post(bold[0]), name = Object.keys(ACTIONS).find(key => ACTIONS[key] === bold[1]);
      const target = one(`.controls .${name}`, row);
      return shown(target) ? click(target) : click(one('.more', row));
    },
    'social-media-all': () => {
      const name = bold[0].toLowerCase(), rows = post(bold[bold.length - 1]);
      return pressed(rows.map(row => one(`.${name}`, row)), button => button.classList.contains('active'));
    },
    'social-media-some': () => {
      const name = bold[0].toLowerCase(), rows = post(bold[2]).slice(0, parseInt(bold[1]));
      return pressed(rows.map(row => one(`.${name}`, row)), button => button.classList.contains('active'));
    },
    'stock-market': () => {
      const price = parseFloat(text(one('#stock-price')).slice(1)), bound = parseFloat(/less than \$([\d.]+)\./.exec(goal + '.')[1]);
      if (price <= bound) return click(one('#buy'));
      return say('noop', priceIndex < 75 ? Math.min(500, (76 - priceIndex) * 100) : 100);
    },
    'terminal': () => {
      const [, ending] = /extension \.(\S+?)\.?$/.exec(goal) || [];
      const file = currentFiles.find(name => ending ? name.endsWith('.' + ending) : !name.includes('.'));
      if (document.activeElement !== one('#terminal-target')) return click(one('#terminal'));
      return one('#active-input').textContent === `rm ${file}` ? say('keyboard_press', 'Enter') : say('keyboard_type', `rm ${file}`);
    },
    'text-transform': () => typed([[one('#tt'), one('#captcha').textContent]]),
    'tic-tac-toe': () => {
      const places = all('.ttt-row span'), free = places.map((_, i) => i).filter(i => !gameState[i]);
      const chances = free.map(i => hopes(gameState, i));
      return click(places[free[chances.indexOf(Math.max(...chances))]]);
    },
    'use-autocomplete': () => {
      const item = ui_utils.COUNTRIES.find(name => name.startsWith(quoted[0]) && (!quoted[1] || name.endsWith(quoted[1])));
      return suggested(one('#tags'), item) || submit();
    },
    'use-colorwheel': () => {
      const wanted = ui_utils.colorNameToHex(/Select (.*) with the color/.exec(goal)[1]).slice(1).toUpperCase();
      return typed([[one('#col'), wanted]]);
    },
    'use-colorwheel-2': () => {
      const parts = getComputedStyle(one('#query .cc')).backgroundColor.match(/\d+/g).slice(0, 3);
      return typed([[one('#col'), parts.map(part => Number(part).toString(16).padStart(2, '0')).join('').toUpperCase()]]);
    },
    'use-slider': () => slide(one('#slider'), parseInt(/Select (-?\d+)/.exec(goal)[1])) || submit(),
    'use-slider-2': () => {
      const wanted = JSON.parse(/\[.*\]/.exec(goal)[0]);
      return [0, 1, 2].map(i => slide(one(`#slider-${i + 1}`), wanted[i])).find(Boolean) || submit();
    },
    'use-spinner': () => typed([[one('#spinner'), /Select (-?\d+)/.exec(goal)[1]]]),
    'visual-addition': () => typed([[one('#math-answer'), all('.addition-block').length]]),
  };
  const SAME = {
    'choose-date-easy': 'choose-date', 'choose-date-medium': 'choose-date', 'choose-date-nodelay': 'choose-date', 'book-flight-nodelay': 'book-flight',
    'click-checkboxes-large': 'click-checkboxes', 'click-checkboxes-transfer': 'click-checkboxes',
    'click-collapsible-nodelay': 'click-collapsible', 'click-collapsible-2-nodelay': 'click-collapsible-2',
    'click-tab-2-easy': 'click-tab-2', 'click-tab-2-medium': 'click-tab-2',
    'click-tab-2-hard': 'click-tab-2', 'click-test-2': 'click-test', 'email-inbox-delete': 'email-inbox',
    'email-inbox-forward': 'email-inbox', 'email-inbox-important': 'email-inbox', 'email-inbox-noscroll': 'email-inbox',
    'email-inbox-reply': 'email-inbox', 'email-inbox-star-reply': 'email-inbox', 'enter-text-dynamic': 'enter-text',
    'highlight-text-2': 'highlight-text', 'login-user-popup': 'login-user', 'unicode-test': 'click-button',
    'use-autocomplete-nodelay': 'use-autocomplete', 'click-pie-nodelay': 'click-pie',
    'email-inbox-forward-nl': 'email-inbox-nl-turk', 'email-inbox-forward-nl-turk': 'email-inbox-nl-turk',
  };
  const player = players[SAME[page] || page] || (() => say('noop'));
  const answer = player();
  return Array.isArray(answer) ? answer : [answer, memory];
}
