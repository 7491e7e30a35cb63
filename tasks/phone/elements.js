// The elements on the phone's screen, from top to bottom: class, text, description, state and the box that can be seen.
() => {
  const main = document.querySelector('main');
  const view = main.getBoundingClientRect();
  const listed = [];
  for (const element of document.querySelectorAll('[data-e]')) {
    const box = element.getBoundingClientRect();
    const scrolled = main.contains(element);
    const top = Math.max(box.top, scrolled ? view.top : 0);
    const bottom = Math.min(box.bottom, scrolled ? view.bottom : innerHeight);
    if (bottom - top < 12 || box.width < 1) continue;
    const lines = element.innerText.split('\n').map(line => line.trim()).filter(line => line);
    listed.push({
      kind: element.dataset.e,
      text: element.localName === 'input' ? element.value : lines.join(' | '),
      description: element.getAttribute('aria-label') ?? '',
      checked: element.hasAttribute('aria-checked') ? element.getAttribute('aria-checked') === 'true' : null,
      focused: element === document.activeElement,
      box: [box.left, top, box.right, bottom].map(Math.round),
    });
  }
  const below = main.scrollHeight - main.clientHeight - main.scrollTop > 1;
  return {elements: listed, above: main.scrollTop > 1, below};
}
