// Gives every element of a frame its bid, once, and says where elements are and how much of them can be seen.
// Bids count standard HTML elements in document order, shadow trees included; frames get letters: BrowserGym's rule.
([prefix, hidden, counted]) => {
  const state = (window.__lmgym ??= {count: 0, frames: 0});
  const letters = n => {
    let name = '';
    for (; ; n = Math.floor(n / 26) - 1) {
      const letter = String.fromCharCode(97 + (n % 26));
      name = (n < 26 ? letter : letter.toUpperCase()) + name;
      if (n < 26) return name;
    }
  };
  const standard = element =>
    element.localName === 'svg' ||
    (element instanceof HTMLElement && !(element instanceof HTMLUnknownElement) && !element.localName.includes('-'));
  const seen = new Set(), found = [], frames = [];
  let fresh = 0;

  const mark = element => {
    let bid = element.getAttribute('bid');
    if (bid === null || seen.has(bid) || !bid.startsWith(prefix)) {
      const frame = element.localName === 'iframe' || element.localName === 'frame';
      bid = prefix + (frame ? letters(state.frames++) : state.count++);
      element.setAttribute('bid', bid);
      fresh++;
    }
    seen.add(bid);
    return bid;
  };
  const overlap = (a, b) => [
    Math.max(a[0], b[0]), Math.max(a[1], b[1]), Math.min(a[2], b[2]), Math.min(a[3], b[3])];
  const area = box => Math.max(0, box[2] - box[0]) * Math.max(0, box[3] - box[1]);
  const view = [0, 0, innerWidth, innerHeight];

  // `clip` is what ancestors leave to see of an element, `outer` what they leave to one that is placed absolutely.
  const walk = (element, clip, outer) => {
    if (hidden && element.matches(hidden)) {
      if (element.getAttribute('bid') !== '') {
        fresh++;
        if (counted && element.matches(counted)) state.count++;
        element.setAttribute('bid', '');
      }
      return;
    }
    if (element.localName === 'script' || element.localName === 'style') {
      if (standard(element)) mark(element);
      return;
    }
    const rect = element.getBoundingClientRect(), box = [rect.left, rect.top, rect.right, rect.bottom];
    const style = getComputedStyle(element);
    if (style.position === 'fixed') clip = outer = view;
    else if (style.position === 'absolute') clip = outer;
    if (standard(element)) {
      const whole = area(box);
      const share = whole && style.visibility === 'visible' ? area(overlap(box, clip)) / whole : 0;
      const pressed = element.onclick !== null || style.cursor === 'pointer';
      found.push([mark(element), rect.left, rect.top, rect.width, rect.height, share, pressed, element.localName]);
      if (element.localName === 'iframe' || element.localName === 'frame') {
        frames.push([element.getAttribute('bid'), rect.left + element.clientLeft, rect.top + element.clientTop]);
      }
    }
    if (style.overflow !== 'visible') clip = overlap(clip, box);
    if (style.position !== 'static') outer = clip;
    if (element.shadowRoot) for (const child of element.shadowRoot.children) walk(child, clip, outer);
    for (const child of element.children) walk(child, clip, outer);
  };
  if (document.documentElement) walk(document.documentElement, view, view);  // null where a load was stopped early
  return {fresh, found, frames};
}
