// A frame's body as short HTML: what is shown or can be used, with bids; no scripts, styles, comments, empty wrappers.
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

  const opening = element => {
    const parts = [element.localName], bid = element.getAttribute('bid');
    if (bid) parts.push(`bid="${bid}"`);
    if (element.id && !/^ui-id-/.test(element.id)) parts.push(`id="${quote(element.id)}"`);
    if (typeof element.className === 'string' && element.className) parts.push(`class="${quote(element.className)}"`);
    for (const name of KEPT) {
      const value = element.getAttribute(name);
      if (value && !(SVG_ONLY.has(name) && element instanceof HTMLElement)) parts.push(`${name}="${quote(value)}"`);
    }
    if ('value' in element && typeof element.value === 'string' && element.value && element.localName !== 'option') {
      parts.push(`value="${quote(element.value)}"`);
    }
    for (const name of ['checked', 'selected', 'disabled', 'readOnly']) if (element[name]) parts.push(name.toLowerCase());
    if (document.activeElement === element && element !== document.body) parts.push('focused');
    if (places && element.localName !== 'body') {
      const box = element.getBoundingClientRect();
      if (box.width && box.height) {
        parts.push(`at="${Math.round(box.left + box.width / 2)},${Math.round(box.top + box.height / 2)}"`);
      }
    }
    return parts.join(' ');
  };
  const lines = [];
  const write = (node, depth) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const text = node.data.replace(/\s+/g, ' ').trim();
      if (text) lines.push('  '.repeat(depth) + escape(text));
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || DROPPED.has(node.localName)) return;
    if ((hidden && node.matches(hidden)) || (node.checkVisibility && !node.checkVisibility() && !node.closest('select')))
      return;
    const children = [...(node.shadowRoot ? node.shadowRoot.childNodes : []), ...node.childNodes];
    const start = lines.length;
    lines.push('');
    for (const child of children) write(child, depth + 1);
    const head = '  '.repeat(depth) + `<${opening(node)}>`;
    if (VOID.has(node.localName) || lines.length === start + 1) lines[start] = head + (VOID.has(node.localName) ? '' : `</${node.localName}>`);
    else if (lines.length === start + 2 && !lines[start + 1].trim().startsWith('<'))
      lines.splice(start, 2, `${head}${lines[start + 1].trim()}</${node.localName}>`);
    else {
      lines[start] = head;
      lines.push('  '.repeat(depth) + `</${node.localName}>`);
    }
  };
  if (document.body) write(document.body, 0);
  return lines.join('\n');
}
