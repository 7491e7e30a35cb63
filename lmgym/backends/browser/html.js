// A frame's body as short HTML: what is shown or can be used, with bids; no scripts, styles, comments, empty wrappers.
// A form has its fields as properties, whatever they are called ("id", "childNodes"): nodes are asked past their own.
([hidden, places]) => {
  const KEPT = ['type', 'name', 'placeholder', 'href', 'alt', 'title', 'role', 'for', 'action', 'method', 'min', 'max',
    'step', 'aria-label', 'aria-expanded', 'aria-selected', 'aria-checked', 'x', 'y', 'cx', 'cy', 'r', 'rx', 'ry', 'x1',
    'y1', 'x2', 'y2', 'width', 'height', 'points', 'fill', 'stroke', 'transform'];
  const SVG_ONLY = new Set(['x', 'y', 'cx', 'cy', 'r', 'rx', 'ry', 'x1', 'y1', 'x2', 'y2', 'width', 'height', 'points',
    'fill', 'stroke', 'transform']);
  const VOID = new Set(['input', 'img', 'br', 'hr', 'area', 'col', 'embed', 'source', 'wbr']);
  const DROPPED = new Set(['script', 'style', 'noscript', 'template', 'link', 'meta']);
  const escape = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
  const quote = text => escape(text).replace(/"/g, '&quot;');

  const property = (type, name) => {
    const read = Object.getOwnPropertyDescriptor(type.prototype, name).get;
    return node => read.call(node);
  };
  const method = (type, name) => (node, ...words) => type.prototype[name].apply(node, words);
  const kind = property(Node, 'nodeType'), inside = property(Node, 'childNodes');
  const tag = property(Element, 'localName'), shadow = property(Element, 'shadowRoot');
  const attribute = method(Element, 'getAttribute'), matches = method(Element, 'matches');
  const closest = method(Element, 'closest'), visible = method(Element, 'checkVisibility');
  const place = method(Element, 'getBoundingClientRect');

  const opening = element => {
    const parts = [tag(element)], bid = attribute(element, 'bid'), id = attribute(element, 'id');
    if (bid) parts.push(`bid="${bid}"`);
    if (id && !/^ui-id-/.test(id)) parts.push(`id="${quote(id)}"`);
    const kinds = element instanceof HTMLElement && attribute(element, 'class');
    if (kinds) parts.push(`class="${quote(kinds)}"`);
    for (const name of KEPT) {
      const value = attribute(element, name);
      if (value && !(SVG_ONLY.has(name) && element instanceof HTMLElement)) parts.push(`${name}="${quote(value)}"`);
    }
    if ('value' in element && typeof element.value === 'string' && element.value && tag(element) !== 'option') {
      parts.push(`value="${quote(element.value)}"`);
    }
    for (const name of ['checked', 'selected', 'disabled', 'readOnly']) if (element[name] === true) parts.push(name.toLowerCase());
    if (document.activeElement === element && element !== document.body) parts.push('focused');
    if (places && tag(element) !== 'body') {
      const box = place(element);
      if (box.width && box.height) {
        parts.push(`at="${Math.round(box.left + box.width / 2)},${Math.round(box.top + box.height / 2)}"`);
      }
    }
    return parts.join(' ');
  };
  const lines = [];
  const write = (node, depth) => {
    if (kind(node) === Node.TEXT_NODE) {
      const text = node.data.replace(/\s+/g, ' ').trim();
      if (text) lines.push('  '.repeat(depth) + escape(text));
      return;
    }
    if (kind(node) !== Node.ELEMENT_NODE || DROPPED.has(tag(node))) return;
    if ((hidden && matches(node, hidden)) || (!visible(node) && !closest(node, 'select'))) return;
    const name = tag(node), root = shadow(node), children = [...(root ? root.childNodes : []), ...inside(node)];
    const start = lines.length;
    lines.push('');
    for (const child of children) write(child, depth + 1);
    const head = '  '.repeat(depth) + `<${opening(node)}>`;
    if (VOID.has(name) || lines.length === start + 1) lines[start] = head + (VOID.has(name) ? '' : `</${name}>`);
    else if (lines.length === start + 2 && !lines[start + 1].trim().startsWith('<'))
      lines.splice(start, 2, `${head}${lines[start + 1].trim()}</${name}>`);
    else {
      lines[start] = head;
      lines.push('  '.repeat(depth) + `</${name}>`);
    }
  };
  if (document.body) write(document.body, 0);
  return lines.join('\n');
}
