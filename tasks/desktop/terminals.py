"""Goals in a terminal: files, text, archives, and programs."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from lmgym.tasks.desktop.goals import TERMINAL, Builder, DesktopGoal, content, note, numbers, words
from lmgym.tasks.desktop.moves import shell
from lmgym.tasks.desktop.office import Writer, read_archive

Rng = np.random.Generator


def _command(
    text: str,
    files: Mapping[str, str | Writer],
    commands: tuple[str, ...],
    reached: Callable[[Path], bool],
    *changes: str,
) -> DesktopGoal:
    """Return the goal of a terminal that commands reach."""
    return DesktopGoal(
        text=text,
        files=files,
        launches=TERMINAL,
        plan=shell(*commands),
        reached=reached,
        changes=frozenset(changes),
    )


def _answer(text: str, files: Mapping[str, str | Writer], command: str, answer: str) -> DesktopGoal:
    """Return the goal to write an answer, and nothing else, into answer.txt."""
    text += " Write it, and nothing else, into answer.txt in the home folder."

    def reached(home: Path) -> bool:
        return (content(home / "answer.txt") or "").split() == answer.split()

    return _command(text, files, (f"{command} >answer.txt",), reached, "answer.txt")


def make_folders(rng: Rng) -> DesktopGoal:
    """Make nested folders."""
    outer, inner = words(rng, 2)
    text = f"In the terminal, make a folder {outer} in the home folder and in it a folder {inner}."
    inside = f"{outer}/{inner}"
    return _command(text, {}, (f"mkdir -p {inside}",), lambda home: (home / inside).is_dir(), outer, inside)


def count_lines(rng: Rng) -> DesktopGoal:
    """Count the lines of a file."""
    file, count = f"{words(rng, 1)[0]}.log", int(rng.integers(7, 90))
    return _answer(f"How many lines has {file}?", {file: note(rng, count)}, f"wc -l <{file}", str(count))


def largest_file(rng: Rng) -> DesktopGoal:
    """Find the largest of several files."""
    names = [f"{word}.dat" for word in words(rng, 6)]
    sizes = numbers(rng, 6, 20, 400)
    files: dict[str, str | Writer] = {
        f"data/{name}": "x" * (10 * size) for name, size in zip(names, sizes, strict=True)
    }
    largest = names[sizes.index(max(sizes))]
    return _answer("What is the name of the largest file in the folder data?", files, "ls -S data | head -1", largest)


def sum_column(rng: Rng) -> DesktopGoal:
    """Add the numbers of a column."""
    rows = list(zip(words(rng, 8), numbers(rng, 8), strict=True))
    table = "name,amount\n" + "".join(f"{name},{amount}\n" for name, amount in rows)
    total = str(sum(amount for _, amount in rows))
    command = "awk -F, '{s+=$2} END {print s}' sales.csv"
    return _answer("What is the sum of the column amount in sales.csv?", {"sales.csv": table}, command, total)


def find_word(rng: Rng) -> DesktopGoal:
    """Find the files that contain a word."""
    wanted, *names = words(rng, 6)
    hits = sorted(names[:2])
    files: dict[str, str | Writer] = {
        f"notes/{name}.txt": f"this is about {wanted if name in hits else 'nothing'}\n" for name in names
    }
    text = f'Which files in the folder notes contain the word "{wanted}"? Give their names without folder, sorted.'
    answer = " ".join(f"{name}.txt" for name in hits)
    return _answer(text, files, f"(cd notes; grep -l {wanted} *)", answer)


def count_words(rng: Rng) -> DesktopGoal:
    """Count how often a word stands in a text."""
    word, other = words(rng, 2)
    count = int(rng.integers(4, 12))
    order = rng.permutation([word] * count + [other] * 9)
    text = f'How often does the word "{word}" stand in story.txt?'
    return _answer(text, {"story.txt": "\n".join(order) + "\n"}, f"grep -c {word} story.txt", str(count))


def unique_lines(rng: Rng) -> DesktopGoal:
    """Write the different lines of a file, sorted."""
    lines = words(rng, 6)
    doubled = [lines[i] for i in rng.permutation([*range(6), 0, 1, 2])]
    text = "Which different lines has list.txt? Sort them by the alphabet."
    return _answer(text, {"list.txt": "\n".join(doubled) + "\n"}, "sort -u list.txt", " ".join(sorted(lines)))


def move_by_ending(rng: Rng) -> DesktopGoal:
    """Move all files of one kind into a folder."""
    names = words(rng, 7)
    target = names.pop()
    ending = ("log", "csv", "md")[int(rng.integers(3))]
    moved, kept = [f"{name}.{ending}" for name in names[:3]], [f"{name}.txt" for name in names[3:]]

    def reached(home: Path) -> bool:
        return all(content(home / target / name) == f"{name}\n" and not (home / name).exists() for name in moved)

    text = f"Move all files of the home folder that end in .{ending} into the folder {target}, which is there."
    files = {f"{target}/": "", **{name: f"{name}\n" for name in (*moved, *kept)}}
    changes = (*moved, *(f"{target}/{name}" for name in moved))
    return _command(text, files, (f"mv *.{ending} {target}/",), reached, *changes)


def change_endings(rng: Rng) -> DesktopGoal:
    """Give all files of a folder another ending."""
    names = words(rng, 4)

    def reached(home: Path) -> bool:
        return all(content(home / f"drafts/{name}.md") == name for name in names) and not list(
            home.glob("drafts/*.txt")
        )

    changes = [f"drafts/{name}.{ending}" for name in names for ending in ("txt", "md")]
    text = "Rename every .txt file in the folder drafts so that it ends in .md instead."
    commands = ('for f in drafts/*.txt; do mv "$f" "${f%.txt}.md"; done',)
    return _command(text, {f"drafts/{name}.txt": name for name in names}, commands, reached, *changes)


def make_executable(rng: Rng) -> DesktopGoal:
    """Let the owner execute a script."""
    file = f"{words(rng, 1)[0]}.sh"

    def reached(home: Path) -> bool:
        path = home / file
        return path.is_file() and not path.is_symlink() and bool(path.stat().st_mode & stat.S_IXUSR)

    text = f"Make the script {file} in the home folder executable for its owner."
    return _command(text, {file: "#!/bin/sh\necho hello\n"}, (f"chmod u+x {file}",), reached)


def make_private(rng: Rng) -> DesktopGoal:
    """Let nobody but the owner read a folder's files."""
    names = [f"secret/{word}.txt" for word in words(rng, 3)]

    def reached(home: Path) -> bool:
        paths = [home / name for name in names]
        return all(path.is_file() and path.stat().st_mode & 0o777 == 0o600 for path in paths)

    text = "Let only the owner read and write the files in the folder secret, and nobody else (mode 600)."
    return _command(text, dict.fromkeys(names, "x"), ("chmod 600 secret/*",), reached)


def link_file(rng: Rng) -> DesktopGoal:
    """Make a symbolic link."""
    name, link = words(rng, 2)
    text = f"Make a symbolic link {link} in the home folder that points to Documents/{name}.txt."
    target = f"Documents/{name}.txt"

    def reached(home: Path) -> bool:
        path = home / link
        return path.is_symlink() and os.readlink(path) in (target, f"/home/user/{target}", f"./{target}")

    return _command(text, {target: name}, (f"ln -s {target} {link}",), reached, link)


def pack_folder(rng: Rng) -> DesktopGoal:
    """Pack a folder into an archive."""
    folder, *names = words(rng, 4)

    def reached(home: Path) -> bool:
        inside = {name.removeprefix("./") for name in read_archive(home / f"{folder}.tar.gz")}
        return inside == {f"{folder}/{name}.txt" for name in names}

    text = f"Pack the folder {folder} of the home folder into the archive {folder}.tar.gz, also there."
    files = {f"{folder}/{name}.txt": note(rng, 2) for name in names}
    return _command(text, files, (f"tar czf {folder}.tar.gz {folder}",), reached, f"{folder}.tar.gz")


def unpack_archive(rng: Rng) -> DesktopGoal:
    """Unpack an archive into a folder."""
    target, *names = words(rng, 4)
    texts = {f"{name}.txt": note(rng, 2) for name in names}

    def write(path: Path) -> None:
        with tarfile.open(path, "w") as packed:
            for name, text in texts.items():
                member = tarfile.TarInfo(name)
                member.size = len(text.encode())
                packed.addfile(member, io.BytesIO(text.encode()))

    def reached(home: Path) -> bool:
        return all(content(home / target / name) == text for name, text in texts.items())

    text = f"Unpack backup.tar into a new folder {target} in the home folder."
    commands = (f"mkdir {target}", f"tar xf backup.tar -C {target}")
    return _command(text, {"backup.tar": write}, commands, reached, target, *(f"{target}/{name}" for name in texts))


def clean_logs(rng: Rng) -> DesktopGoal:
    """Delete the empty files of a tree."""
    names = words(rng, 6)
    paths = [f"logs/{name}/{name}.log" for name in names]
    empty, full = paths[:3], paths[3:]
    files = {**dict.fromkeys(empty, ""), **dict.fromkeys(full, "entry\n")}

    def reached(home: Path) -> bool:
        return not any((home / path).exists() for path in empty)

    text = "Delete all empty files anywhere below the folder logs, and keep all folders."
    return _command(text, files, ("find logs -type f -empty -delete",), reached, *empty)


def define_alias(rng: Rng) -> DesktopGoal:
    """Define an alias for later shells."""
    alias, *_ = words(rng, 1)

    def reached(home: Path) -> bool:
        lines = (content(home / ".bashrc") or "").splitlines()
        return any(line.strip() in (f"alias {alias}='ls -la'", f'alias {alias}="ls -la"') for line in lines)

    text = f"Add an alias {alias} for the command ls -la to .bashrc, so that new shells have it."
    return _command(text, {}, (f"echo \"alias {alias}='ls -la'\" >>.bashrc",), reached)


def sort_into_folders(rng: Rng) -> DesktopGoal:
    """Sort files into folders by their endings, one command at a time."""
    names = iter(words(rng, 12))
    endings = ("csv", "log", "md", "txt")
    placed = {ending: [f"{next(names)}.{ending}" for _ in range(2)] for ending in endings}
    commands = [command for ending in endings for command in (f"mkdir {ending}", f"mv *.{ending} {ending}/")]
    commands += ["ls", "ls csv log", "ls md txt"]
    wanted = {f"{ending}/{name}": name for ending in endings for name in placed[ending]}

    def reached(home: Path) -> bool:
        return all(content(home / path) == name and not (home / name).exists() for path, name in wanted.items())

    text = "Sort the files of the home folder into new folders csv, log, md and txt there, by their endings."
    return _command(
        text, {name: name for name in wanted.values()}, tuple(commands), reached, *endings, *wanted, *wanted.values()
    )


def set_up_project(rng: Rng) -> DesktopGoal:
    """Set up the folders and files of a small project."""
    name, word = words(rng, 2)
    script = f'#!/bin/sh\necho "{word}"\n'
    files = {f"{name}/README.md": f"# {name}\n", f"{name}/src/run.sh": script, f"{name}/out/result.txt": f"{word}\n"}

    def reached(home: Path) -> bool:
        right = all(content(home / path) == text for path, text in files.items())
        return right and bool((home / name / "src/run.sh").stat().st_mode & stat.S_IXUSR)

    commands = [f"mkdir {name}", f"cd {name}", "mkdir src out", f"echo '# {name}' >README.md", "cd src"]
    commands += ["echo '#!/bin/sh' >run.sh", f"echo 'echo \"{word}\"' >>run.sh", "cat run.sh", "chmod u+x run.sh"]
    commands += ["./run.sh >../out/result.txt", "cat ../out/result.txt"]
    text = (
        f"Make a project {name} in the home folder: README.md with the line '# {name}'; src/run.sh, an executable "
        f"script of the two lines '#!/bin/sh' and 'echo \"{word}\"'; and out/result.txt with the script's output."
    )
    folders = (name, f"{name}/src", f"{name}/out")
    return _command(text, {}, tuple(commands), reached, *folders, *files)


FAMILIES: dict[Builder, int] = {
    **dict.fromkeys((make_folders, count_lines, largest_file, sum_column, find_word, count_words, unique_lines), 1),
    **dict.fromkeys((move_by_ending, change_endings, make_executable, make_private, link_file, pack_folder), 1),
    **dict.fromkeys((unpack_archive, clean_logs, define_alias), 1),
    **dict.fromkeys((sort_into_folders, set_up_project), 3),
}
