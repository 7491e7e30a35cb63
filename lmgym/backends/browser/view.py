"""Observations of a page: accessibility tree with bids, short HTML, screenshot, screenshot with marks."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgym.backends.browser.context import IsolatedContext
from lmgym.backends.browser.scripts import script
from lmgym.backends.browser.tab import Tab
from lmgym.errors import MissingExtra

if TYPE_CHECKING:
    from PIL.Image import Image
    from playwright.async_api import Frame


PASSED_OVER = frozenset({"editable", "readonly", "level", "settable", "multiline", "invalid", "focusable"})
ONLY_IF_TRUE = frozenset({"required", "focused", "atomic", "busy", "hidden", "modal"})
MARKED = frozenset({"input", "textarea", "select", "button", "a", "iframe", "video", "li", "td", "option"})
SMALLEST = 20.0  # square pixels; smaller elements get no mark
COLOURS = ("#d00000", "#0050c8", "#007a33", "#8a00b8", "#a85400", "#006d77")


@dataclass(frozen=True)
class PageElement:
    """An element's box in the window, in pixels, and its visibility."""

    bid: str
    left: float
    top: float
    width: float
    height: float
    visible: float  # share of its area in [0, 1]
    pressed: bool  # asks to be clicked
    tag: str

    @property
    def middle(self) -> tuple[float, float]:
        """The centre of the box, in pixels."""
        return self.left + self.width / 2, self.top + self.height / 2


async def mark(context: IsolatedContext, hidden: str = "", counted: str = "") -> list[PageElement]:
    """Assign bids to all elements of the active tab, except to those that `hidden` selects and their descendants.

    Hidden elements that `counted` selects still use up a number, so that bids equal BrowserGym's.
    """
    elements: list[PageElement] = []
    fresh = await _mark_frame(context.tab.page.main_frame, ["", hidden, counted], (0.0, 0.0), elements)
    if fresh:
        context.tab.bids.clear()
    return elements


async def _mark_frame(frame: Frame, how: list[str], shift: tuple[float, float], elements: list[PageElement]) -> int:
    answer = await frame.evaluate(script("mark.js"), how)
    for bid, left, top, *rest in answer["found"]:
        elements.append(PageElement(bid, left + shift[0], top + shift[1], *rest))
    fresh = int(answer["fresh"])
    for bid, left, top in answer["frames"]:
        handle = await frame.query_selector(f'[bid="{bid}"]')
        inner = await handle.content_frame() if handle else None
        if inner is not None:
            fresh += await _mark_frame(inner, [bid, "", ""], (shift[0] + left, shift[1] + top), elements)
    return fresh


async def tree(context: IsolatedContext, elements: Iterable[PageElement], *, places: bool) -> str:
    """Return the accessibility tree of the active tab, one node per line; call `mark` first."""
    tab = context.tab
    frames = await tab.devtools.send("Page.getFrameTree")
    bids = tab.bids or await _learn(tab)
    nodes = await _nodes(tab, frames["frameTree"])
    by_bid = {element.bid: element for element in elements} if places else {}
    return "\n".join(_lines(nodes[0], {node["nodeId"]: node for node in nodes}, bids, by_bid)) if nodes else ""


async def _learn(tab: Tab) -> dict[int, str]:
    """Return the bids by Chromium's backend node id."""
    snapshot = await tab.devtools.send("DOMSnapshot.captureSnapshot", {"computedStyles": []})
    names: list[str] = snapshot["strings"]
    for document in snapshot["documents"]:
        nodes = document["nodes"]
        for number, attributes in zip(nodes["backendNodeId"], nodes["attributes"], strict=True):
            for name, value in zip(attributes[::2], attributes[1::2], strict=True):
                if names[name] == "bid":
                    tab.bids[number] = names[value] if value >= 0 else ""
    return tab.bids


async def _nodes(tab: Tab, frame: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes of a frame's tree, with the trees of its child frames inserted."""
    number = frame["frame"]["id"]
    answer = await tab.devtools.send("Accessibility.getFullAXTree", {"frameId": number})
    nodes: list[dict[str, Any]] = answer["nodes"]
    for node in nodes:
        node["nodeId"] = f"{number}/{node['nodeId']}"
        node["childIds"] = [f"{number}/{child}" for child in node.get("childIds", ())]
    for child in frame.get("childFrames", ()):
        owner = await tab.devtools.send("DOM.getFrameOwner", {"frameId": child["frame"]["id"]})
        inner = await _nodes(tab, child)
        outer = next((node for node in nodes if node.get("backendDOMNodeId") == owner["backendNodeId"]), None)
        if outer is not None and inner:
            outer["childIds"] = [inner[0]["nodeId"]]
            nodes.extend(inner)
    return nodes


def _lines(
    root: Mapping[str, Any],
    nodes: Mapping[str, Mapping[str, Any]],
    bids: Mapping[int, str],
    places: Mapping[str, PageElement],
) -> Iterator[str]:
    """Yield a line per node below `root`, indented by tabs; replace a node without content by its children."""
    waiting: list[tuple[Mapping[str, Any], int, str]] = [(root, 0, "")]
    while waiting:
        node, depth, above = waiting.pop()
        bid = bids.get(node.get("backendDOMNodeId", -1))
        if bid == "":
            continue
        line = _line(node, bid, above, places.get(bid or ""))
        if line is not None:
            yield "\t" * depth + line
        name = _value(node.get("name")) if line is not None else above
        below = depth + (line is not None)
        for child in reversed(node["childIds"]):
            if child in nodes:
                waiting.append((nodes[child], below, str(name or "")))


def _line(node: Mapping[str, Any], bid: str | None, above: str, place: PageElement | None) -> str | None:
    role, name = str(_value(node.get("role")) or ""), _value(node.get("name"))
    if node.get("ignored") or name is None or role in ("LineBreak", "InlineTextBox", "none"):
        return None
    if role == "StaticText" and str(name).strip() in above:
        return None
    attributes = []
    if place is not None and place.visible and role != "RootWebArea":
        attributes.append(f'at="{place.middle[0]:.0f},{place.middle[1]:.0f}"')
    extra = list(_attributes(node))
    if role == "generic" and not extra:
        return None
    line = role if role == "generic" and not name else f"{role} {str(name).strip()!r}"
    if bid and role not in ("StaticText", "RootWebArea"):
        line = f"[{bid}] {line}"
    value = _value(node.get("value")) or ""
    line += f" value={value!r}" if value or role in ("textbox", "searchbox", "combobox") else ""
    return ", ".join([line, *attributes, *extra])


def _attributes(node: Mapping[str, Any]) -> Iterator[str]:
    for entry in node.get("properties", ()):
        name, value = entry["name"], _value(entry.get("value"))
        if name in PASSED_OVER or value is None or name == "url":
            continue
        if name in ONLY_IF_TRUE:
            if value:
                yield name
        else:
            yield f"{name}={value!r}"


def _value(field: Mapping[str, Any] | None) -> Any:
    return field.get("value") if field is not None else None


async def html(context: IsolatedContext, hidden: str = "", *, places: bool) -> str:
    """Return the active tab's page as short HTML with bids, frames after the page; call `mark` first."""
    return "\n".join([text async for text in _html_of(context.tab.page.main_frame, hidden, places)])


async def _html_of(frame: Frame, hidden: str, places: bool) -> Any:
    yield await frame.evaluate(script("html.js"), [hidden, places])
    for child in frame.child_frames:
        name = await (await child.frame_element()).get_attribute("bid")
        yield f"<!-- frame {json.dumps(name)} -->"
        async for text in _html_of(child, "", places):
            yield text


async def picture(context: IsolatedContext) -> bytes:
    """Return the active tab's window as a PNG."""
    return await context.tab.page.screenshot(animations="disabled", caret="hide", scale="css")


def pixels(png: bytes, marks: Iterable[PageElement] = ()) -> NDArray[np.uint8]:
    """Return a PNG as an array of shape (height, width, 3), with a frame and the bid drawn on each of `marks`."""
    try:
        from PIL import Image, ImageDraw
    except ModuleNotFoundError as error:
        raise MissingExtra("pictures of pages need pillow: pip install 'lmgym[web]'") from error
    image: Image.Image = Image.open(io.BytesIO(png)).convert("RGB")
    draw = ImageDraw.Draw(image)
    for number, element in enumerate(marks):
        colour = COLOURS[number % len(COLOURS)]
        left, top = element.left, element.top
        draw.rectangle((left, top, left + element.width, top + element.height), outline=colour)
        box = draw.textbbox((left, top), element.bid)
        draw.rectangle(box, fill=colour)
        draw.text((left, top), element.bid, fill="white")
    return np.asarray(image, np.uint8)


def worth_marking(elements: Iterable[PageElement]) -> list[PageElement]:
    """Return the elements to mark: interactive, at least half visible, and the innermost at each place."""
    chosen: list[PageElement] = []
    for element in elements:
        acted_on = element.pressed or element.tag in MARKED
        if not acted_on or element.visible < 0.5 or element.width * element.height < SMALLEST:
            continue
        chosen = [other for other in chosen if not _within(element, other) or other.tag in ("button", "a")]
        if not any(_within(element, other) for other in chosen):
            chosen.append(element)
    return chosen


def _within(inner: PageElement, outer: PageElement) -> bool:
    right, bottom = inner.left + inner.width, inner.top + inner.height
    across = outer.left <= inner.left and right <= outer.left + outer.width
    return across and outer.top <= inner.top and bottom <= outer.top + outer.height
