"""Drawings of generated products: a shape by department, the first colour option, the brand's name."""

from __future__ import annotations

from html import escape

from lmgym.tasks.webshop.products import Product
from lmgym.tasks.webshop.reward import colour

SHAPES = {
    "garden": '<rect x="18" y="30" width="60" height="40" rx="4"/><rect x="24" y="70" width="6" height="14"/>'
    '<rect x="66" y="70" width="6" height="14"/>',
    "electronics": '<rect x="16" y="24" width="64" height="44" rx="5"/><rect x="34" y="72" width="28" height="6"/>',
    "fashion": '<path d="M30 20h36l14 16-10 8-4-4v40H30V40l-4 4-10-8z"/>',
    "beauty": '<rect x="34" y="36" width="28" height="46" rx="6"/><rect x="42" y="18" width="12" height="16"/>',
    "grocery": '<path d="M28 30h40l6 54H22z"/><path d="M36 30a12 12 0 0 1 24 0" fill="none" stroke="#444"/>',
    "sports": '<circle cx="48" cy="50" r="30"/><path d="M18 50h60M48 20v60" stroke="#fff"/>',
    "pets": '<circle cx="48" cy="58" r="18"/><circle cx="26" cy="38" r="8"/><circle cx="42" cy="26" r="8"/>'
    '<circle cx="60" cy="28" r="8"/><circle cx="72" cy="42" r="8"/>',
    "office": '<path d="M24 16h36l14 14v52H24z"/><path d="M34 44h30M34 56h30M34 68h20" stroke="#fff"/>',
}
FILLS = {  # of colours that are no names in CSS
    **{"charcoal": "#444", "mustard": "#d4a017", "burgundy": "#800020", "copper": "#b87333", "mint": "#98ffb4"},
    **{"espresso": "#4b3621", "walnut": "#5d432c", "natural": "#d8c3a0", "nude": "#e3bc9a", "bronze": "#a57c2b"},
    **{"mauve": "#b784a7", "peach": "#ffcba4"},
}
PLAIN = "#8899aa"


def svg(product: Product) -> str:
    """Return the drawing of a product, 96 pixels square."""
    shape = SHAPES.get(product.category, SHAPES["office"])
    named = str(colour(next(iter(product.options.get("color", ())), "")))
    fill = FILLS.get(named, named if named.isalpha() else PLAIN)
    maker = escape(product.title.partition(" ")[0])
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96" width="96" height="96">'
        f'<rect width="96" height="96" fill="#f4f4f0"/><g fill="{escape(fill)}" stroke-width="2">{shape}</g>'
        f'<text x="48" y="94" font-size="9" text-anchor="middle" fill="#333">{maker}</text></svg>'
    )
