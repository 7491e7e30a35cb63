"""MkDocs hooks: pages made from the code and from files outside docs/, and links between them."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click

from lmgym.cli import app

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(!?)\[([^]\n]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
CARDS = {
    f"tasks/{card.parent.name}/README.md": f"reference/tasks/{card.parent.name}.md"
    for card in sorted((ROOT / "tasks").glob("*/README.md"))
}
INCLUDED = {  # files of the repository that are pages or pictures of the site
    "baselines/README.md": "reference/baselines.md",
    "baselines/curves/README.md": "reference/curves.md",
    "baselines/recipes/README.md": "reference/recipes.md",
    "baselines/curves/curves.png": "reference/curves.png",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    **CARDS,
}
SOURCES = {page: source for source, page in INCLUDED.items()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the task cards to the navigation."""
    (reference,) = (
        entry["Reference"] for entry in config.nav or [] if isinstance(entry, dict) and "Reference" in entry
    )
    reference.append({"Task cards": list(CARDS.values())})
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the command-line reference and the included files."""
    files.append(File.generated(config, "reference/cli.md", content=command_line()))
    for source, page in INCLUDED.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at pages of the site; a link to any other file of the repository becomes its path in code type."""
    place = PurePosixPath(SOURCES.get(page.file.src_uri, f"docs/{page.file.src_uri}"))

    def link(match: re.Match[str]) -> str:
        picture, text, target, anchor = match.groups()
        path = normpath(str(place.parent / target))
        site_path = INCLUDED.get(path) or path.removeprefix("docs/")
        if path in INCLUDED or path.startswith("docs/"):
            return f"{picture}[{text}]({relpath(site_path, PurePosixPath(page.file.src_uri).parent)}{anchor or ''})"
        if not (ROOT / path).exists():
            return match[0]  # MkDocs reports it
        return f"{text} (`{path}`)"

    return LINK.sub(link, markdown)


def command_line() -> str:
    """Return the reference of all `lmgym` commands, from their signatures and help texts."""
    command: Any = typer.main.get_command(app)
    with command.make_context("lmgym", ["--help"], resilient_parsing=True) as context:
        text = get_docs_for_click(obj=command, ctx=context, name="lmgym")
    return text.replace("# `lmgym`", "# Command line", 1)
