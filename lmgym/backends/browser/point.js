// Where an element can be clicked, in its frame's window: its middle, or another place that nothing covers; else why it cannot.
element => {
  element.scrollIntoViewIfNeeded();
  if (element.disabled) return 'is disabled';
  const boxes = [...element.getClientRects()].filter(box => box.width > 0 && box.height > 0);
  if (!boxes.length || getComputedStyle(element).visibility !== 'visible') return 'is not visible';
  const root = element.getRootNode();
  const hit = (x, y) => {
    const top = root.elementFromPoint(x, y);
    return top && (element.contains(top) || top.getRootNode().host === element);
  };
  for (const box of boxes) {
    for (const down of [0.5, 0.1, 0.3, 0.7, 0.9]) for (const right of [0.5, 0.1, 0.3, 0.7, 0.9]) {
      const x = box.left + right * box.width, y = box.top + down * box.height;
      if (hit(x, y)) return [x, y];
    }
  }
  return 'is covered by other elements or outside of the window';
}
