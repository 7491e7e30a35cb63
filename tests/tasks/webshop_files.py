"""A small official shop in the official layout, with every oddity that the loader knows; titles and their scores."""

import json


def row(asin, name, **changes):
    return {
        "asin": asin,
        "name": name,
        "category": "garden",
        "query": " Area Rugs ",
        "product_category": "Home & Kitchen › Rugs › Area Rugs",
        "full_description": f"{name}, described.",
        "small_description": ["soft", "washable"],
        "pricing": "$29.99",
        "images": ["https://example.invalid/1.jpg"],
        "customization_options": {"Color": [{"value": " Sky/Blue ", "image": None}, {"value": "RED", "image": None}]},
        "brand": "dropped",
        **changes,
    }


ROWS = [
    row("B000000001", "Rugly Washable Rug"),
    row("nan", "No Number Rug"),
    row("B0000000012", "Too Long A Number Rug"),
    row("B000000001", "Rugly Again Rug"),
    row("B000000002", "Plain Rug", customization_options=None, pricing=None, small_description="one string"),
    row("B000000003", "Three Price Rug", pricing="$1,299.00 - $1,499.50 $2", customization_options={"Size": None}),
    row("B000000004", "Dear Lamp", pricing="$985.00", query="lamps", product_category="Home & Kitchen › Lamps"),
    row(
        "B000000005",
        "Twin Value Rug",
        customization_options={
            "color": [{"value": "red"}, {"value": "teal"}],
            "trim": [{"value": "red"}, {"value": "plum"}],
        },
    ),
    row(
        "B000000006",
        "Odd <b>Rug</b> & Co",
        full_description=" \n ",
        small_description=["  ", "a\nb", ""],
        pricing="call us",
        customization_options={"Pattern": [{"value": "Dots [large]"}, {"value": "café"}]},
    ),
    row("B000000007", "Backward Rug", pricing="$50.00 - $40.00", full_description=None, images=[]),
    row("B000000008", "Standard Mat", customization_options={"size": [{"value": "standard"}, {"value": "xl"}]}),
    row("b00000000x", "Reviews Rug", customization_options={"show": [{"value": "Reviews"}, {"value": "Buy now"}]}),
]
ATTRIBUTES = {
    "B000000001": {
        "attributes": ["machine washable", "non slip"],
        "instruction": "Find me washable area rugs",
        "instruction_attributes": ["machine washable"],
    },
    "B000000002": {"attributes": ["plain"]},
    "B000000003": {"attributes": ["wool"], "instruction": "Find me wool", "instruction_attributes": []},
    "B000000004": {"attributes": ["bright"], "instruction": "Find me lamps", "instruction_attributes": ["bright"]},
    "B000000005": {"attributes": ["trimmed"], "instruction": "Find me trim", "instruction_attributes": ["trimmed"]},
    "B000000006": {"attributes": ["odd"], "instruction": "Find me odd", "instruction_attributes": ["odd"]},
    "B000000008": {"attributes": ["flat"], "instruction": "Find me mats", "instruction_attributes": ["flat"]},
}
HUMANS = {
    "B000000001": [
        {"instruction": "i want a washable rug in red.", "instruction_attributes": ["machine washable"],
         "instruction_options": ["red"]},
        {"instruction": "skipped", "instruction_attributes": [], "instruction_options": []},
    ],
    "B000000004": [
        {"instruction": "a bright lamp...", "instruction_attributes": ["bright"], "instruction_options": []}
    ],
    "B999999999": [{"instruction": "of no product", "instruction_attributes": ["x"], "instruction_options": []}],
}  # fmt: skip

CORD = "BRST AC Power Cord Outlet Socket Cable Plug Lead for Panasonic SC-HT830V DVD/VCR Combo Home Theater System"
BAR = "Saireed UL Listed 2 Prong Power Cord for JBL Bar 3.1 Bar 2.1 Channel 4K Ultra HD Soundbar"
PUBLISHED = [  # bought, wanted, score expected by the original's tests (of two versions), score with our nouns
    (
        "adidas Unisex-Adult D.o.n. Issue 2 Indoor Court Shoe",
        "adidas Unisex-Adult D.o.n. Issue 2 Basketball Shoe",
        (0.85,),
        0.833,
    ),
    (
        "PEAK High Top Mens Basketball Shoes Lou Williams Streetball Master Breathable Non Slip Outdoor Sneakers",
        "Mens D.O.N. Issue 2 Gca Basketball Sneakers Shoes Casual - Off White",
        (0.333,),
        0.571,
    ),
    (CORD, f"{BAR} Home Theater System Subwoofer", (0.31, 0.3), 0.333),
    (CORD, BAR, (0.17, 0.15), 0.182),
    (
        "Minkissy 2pcs Stainless Steel Eyebrow Tweezers Blackhead Acne Remover Portable Makeup Tweezers (Silver)",
        "Rusticware 921ORB Kitchen and Bath Cabinet Knob",
        (0.0,),
        0.0,
    ),
]


def write(folder):
    for name, content in (
        ("items_shuffle", ROWS),
        ("items_ins_v2", ATTRIBUTES),
        ("items_human_ins", HUMANS),
        ("items_shuffle_3", ROWS[:3]),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return folder
