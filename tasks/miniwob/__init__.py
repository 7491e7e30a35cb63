"""MiniWoB++: small web pages with a goal, by accessibility tree, HTML or pixels, in virtual time."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

_TRAIN = """
book-flight book-flight-nodelay buy-ticket choose-date choose-date-easy choose-date-medium choose-date-nodelay
circle-center click-checkboxes click-checkboxes-large click-checkboxes-soft click-checkboxes-transfer
click-collapsible click-collapsible-2 click-collapsible-2-nodelay click-collapsible-nodelay click-dialog
click-dialog-2 click-option click-shades click-test-2 click-test-transfer count-shape daily-calendar drag-box
drag-items drag-shapes drag-shapes-2 drag-single-shape drag-sort-numbers draw-circle draw-line enter-date
enter-password enter-text enter-text-2 enter-text-dynamic enter-time find-midpoint focus-text focus-text-2
form-sequence identify-shape login-user login-user-popup multi-layouts multi-orderings navigate-tree odd-or-even
read-table read-table-2 search-engine text-editor text-transform unicode-test use-autocomplete
use-autocomplete-nodelay use-colorwheel use-colorwheel-2 use-slider use-slider-2 visual-addition
"""
_TEST = """
ascending-numbers bisect-angle choose-list click-button click-button-sequence click-color click-link click-menu
click-menu-2 click-pie click-pie-nodelay click-scroll-list click-shape click-tab click-tab-2 click-tab-2-easy
click-tab-2-hard click-tab-2-medium click-test click-widget copy-paste copy-paste-2 count-sides drag-circle
drag-cube drag-items-grid email-inbox email-inbox-delete email-inbox-forward email-inbox-forward-nl
email-inbox-forward-nl-turk email-inbox-important email-inbox-nl-turk email-inbox-noscroll email-inbox-reply
email-inbox-star-reply find-greatest find-word form-sequence-2 form-sequence-3 generate-number grid-coordinate
guess-number highlight-text highlight-text-2 hot-cold number-checkboxes order-food phone-book resize-textarea
right-angle scroll-text scroll-text-2 sign-agreement simple-algebra simple-arithmetic social-media social-media-all
social-media-some stock-market terminal tic-tac-toe use-spinner
"""
_SOLVED = """
ascending-numbers book-flight book-flight-nodelay button-delay buy-ticket choose-date choose-date-easy
choose-date-medium choose-date-nodelay choose-list click-button click-button-sequence click-checkboxes
click-checkboxes-large click-checkboxes-soft click-checkboxes-transfer click-collapsible click-collapsible-2
click-collapsible-2-nodelay click-collapsible-nodelay click-color click-dialog click-dialog-2 click-link click-menu
click-menu-2 click-option click-pie click-scroll-list click-shades click-shape click-tab click-tab-2
click-tab-2-easy click-tab-2-hard click-tab-2-medium click-test click-test-2 click-test-transfer click-widget
copy-paste copy-paste-2 count-shape count-sides drag-box drag-circle drag-cube drag-items drag-items-grid drag-shapes
drag-shapes-2 drag-single-shape drag-sort-numbers draw-circle draw-line email-inbox email-inbox-delete
email-inbox-forward email-inbox-forward-nl email-inbox-forward-nl-turk email-inbox-important email-inbox-nl-turk
email-inbox-noscroll email-inbox-reply email-inbox-star-reply enter-date enter-password
enter-text enter-text-2 enter-text-dynamic enter-time find-greatest find-word focus-text focus-text-2 form-sequence
form-sequence-2 form-sequence-3 generate-number grid-coordinate guess-number highlight-text highlight-text-2 hot-cold
identify-shape login-user login-user-popup multi-layouts multi-orderings navigate-tree number-checkboxes odd-or-even
order-food phone-book read-table read-table-2 resize-textarea scroll-text scroll-text-2 search-engine sign-agreement
simple-algebra simple-arithmetic social-media social-media-all social-media-some stock-market terminal
text-transform unicode-test use-autocomplete use-autocomplete-nodelay use-colorwheel use-colorwheel-2 use-slider
use-slider-2 use-spinner visual-addition
"""
TRAIN = tuple(_TRAIN.split())  # BrowserGym trains on these 62
TEST = tuple(_TEST.split())  # and tests on these 63: no page of one is like a page of the other
UNLISTED = ("button-delay", "chase-circle", "hover-shape", "moving-items", "simon-says")  # registered nowhere
FLIGHTS = ("flight-AA", "flight-Alaska", "flight-Alaska-auto")  # airline sites, in a frame
PAGES = (*sorted((*TRAIN, *TEST, *UNLISTED)), *FLIGHTS)
SOLVED = tuple(_SOLVED.split())  # pages whose player in oracle.js always wins
TURNS = {  # where a player may need more than the 10 that are the rule
    **dict.fromkeys(("book-flight", "book-flight-nodelay", "choose-date", "choose-date-nodelay"), 20),
    **dict.fromkeys(("click-checkboxes-large", "draw-circle", "social-media-all", "social-media-some"), 15),
    **dict.fromkeys(("click-menu", "guess-number", "use-slider-2"), 15),
    **dict.fromkeys(("number-checkboxes", "stock-market"), 25),
    "generate-number": 40,
}

_ENV = "lmgym.tasks.miniwob.env"
_PUBLIC: dict[str, tuple[str | bool, ...]] = {
    "observe": ("axtree", "html", "none"),
    "pixels": ("none", "screenshot", "som"),
    "places": (True, False),
    "decay": (True, False),
}
SPEC = TaskSpec(
    id="lmgym/MiniWoB-v0",
    entry_point=f"{_ENV}:Solved",
    summary="Reach the goal of a small web page; 62 pages to train on, 63 others to be tested on.",
    max_turns=10,
    splits={"train": 1_000 * len(TRAIN), "test": 5 * len(TEST)},
    score="the page's raw reward, 0 where it is negative; success is a raw reward of 1",
    references={
        "null": 0.0,
        "random": 0.0,
        "oracle": "0.978 (the 315 of test in 10 turns; a few pages have no player that always wins)",
    },
    extras=("web",),
    player="thread",
    source="pages of MiniWoB++ (MIT; Shi et al. 2017, Liu et al. 2018); split and actions as in BrowserGym",
    goldens="outcome",
    partial="raw reward above 0",
    public={"page": ("", *PAGES), **_PUBLIC},
)


def _page(name: str) -> TaskSpec:
    solved = name in SOLVED
    return replace(
        SPEC,
        id=f"lmgym/MiniWoB-{name}-v0",
        entry_point=f"{_ENV}:{'Solved' if solved else 'MiniWoB'}",
        summary=f"Reach the goal of the page {name}.",
        max_turns=TURNS.get(name, 10),
        splits={"train": 1_000, "test": 100},
        references={"null": 0.0, **({"oracle": 1.0} if solved else {})},
        options={"page": name},
        part_of=SPEC.id,
        public=_PUBLIC,
    )


VARIANTS = tuple(_page(name) for name in PAGES)
