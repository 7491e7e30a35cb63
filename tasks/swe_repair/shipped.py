"""Write the shipped instances: `python -m lmgym.tasks.swe_repair.shipped`, or `... shipped SPLIT` for one split."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from lmgym.tasks.swe_repair import SPEC, instances, repositories
from lmgym.tasks.swe_repair.instances import PASSING, SHIPPED, Repair

COUNTS = {"train": 26, "test": SPEC.splits["test"], "pypi": 22}  # of training, those that open at once
PATIENCE = 30  # attempts with the family of an index; rare families have few bugs


def main() -> None:
    """Write the lists of passing tests and the instances; those that are in the file stay as they are."""
    splits = sys.argv[1:] or list(COUNTS)
    names = [name for split in splits for name in repositories.names(split)]
    recorded = json.loads(PASSING.read_text(encoding="utf-8")) if PASSING.is_file() else {}
    kept = {name: tests for name, tests in recorded.items() if name not in names}
    PASSING.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")
    fresh = {name: instances.passing(name) for name in names}
    PASSING.write_text(json.dumps({**kept, **fresh}, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    lines = SHIPPED.read_text(encoding="utf-8").splitlines() if SHIPPED.is_file() else []
    present = {(record["split"], record["index"]): record["patch"] for record in map(json.loads, lines)}
    taken = set(present.values())
    for split in splits:
        for index in range(COUNTS[split]):
            if (split, index) in present:
                continue
            repair = instances.made(split, "all", index, taken=frozenset(taken), patience=PATIENCE)
            taken.add(repair.patch)
            lines.append(json.dumps(_line(repair, split, index)))
            SHIPPED.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            sys.stdout.write(f"{split}/{index} {repair.instance_id}\n")
            sys.stdout.flush()


def _line(repair: Repair, split: str, index: int) -> dict[str, object]:
    record = asdict(repair)
    del record["pass_to_pass"]
    return {"split": split, "of_level": "all", "index": index, **record}


if __name__ == "__main__":
    main()
