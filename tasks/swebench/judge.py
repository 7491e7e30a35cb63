"""The judge: a patch, applied in a fresh container of the instance's image, and its tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from lmgym.backends.coding.patches import apply
from lmgym.backends.sandbox import Box, Sandbox, SandboxLimits, open_sandbox
from lmgym.errors import BackendError
from lmgym.tasks.swebench import log_parsers, repositories
from lmgym.tasks.swebench.grading import Grade, grade
from lmgym.tasks.swebench.instances import Instance
from lmgym.tasks.swebench.repositories import CODE, END, START

ROOT = "/testbed"
CONDA = "/opt/miniconda3"
SEARCHED = f"{CONDA}/envs/testbed/bin:{CONDA}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OFFICIAL = ("swebench/", "xingyaoww/", "jyangballin/")  # images that bring conda
JUDGE_SECONDS = 1_800.0
LONGEST = 1_000_000  # characters of a patch
BUG = "/tmp/bug.patch"
SCRIPT = "/tmp/eval.sh"
LIMITS = SandboxLimits(seconds=60.0, memory=4 << 30, processes=512, disk=1 << 30, files=1_000_000)
ENVIRONMENT = {
    **{"PAGER": "cat", "GIT_PAGER": "cat", "GIT_AUTHOR_NAME": "agent", "GIT_COMMITTER_NAME": "agent"},
    **{"GIT_AUTHOR_EMAIL": "agent@example.org", "GIT_COMMITTER_EMAIL": "agent@example.org"},
    **{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": ROOT},
}
START_SECONDS = 600.0
TRACKED = "/tmp/tracked"
ONE_COMMIT = (
    "git ls-files -z --others -- '*.py[co]' | xargs -0r rm -f && "  # compiled from the good version of the code
    f"git ls-files -z > {TRACKED} && rm -rf .git && git init -q && "
    f"git update-index --add --remove -z --stdin < {TRACKED} && git add -A && git commit -q -m 'Current state' && "
    f"rm -rf .git/logs {TRACKED} && git rev-parse HEAD"
)
EXIT = re.compile(rf"^{re.escape(CODE)} (\d+)$", re.MULTILINE)
NOT_GRADED = Grade(0.0, 0.0)


def box(instance: Instance, *, image: str = "", python: str = "") -> Box:
    """Return the box of an instance; `image` is a template with `{id}`, `python` a Python in it that runs the agent."""
    name = instance.image_name(image)
    official = name.startswith(OFFICIAL)
    return Box(
        image=name,
        folder=ROOT,
        root=True,
        limits=LIMITS,
        python=python or (f"{CONDA}/bin/python3" if official else "python3"),
        environment={**ENVIRONMENT, "PATH": SEARCHED} if official else ENVIRONMENT,
    )


def insert_bug(sandbox: Sandbox, instance: Instance) -> str:
    """Put the bug of a synthetic instance into its good repository; return the one commit that is left."""
    sandbox.write(BUG, instance.patch.encode())
    done = sandbox.run(f"git apply {BUG} && rm {BUG}")
    if done.code:
        raise BackendError(f"the bug of {instance.instance_id} does not apply: {done.text.strip()[-200:]}")
    return one_commit(sandbox, instance)


def one_commit(sandbox: Sandbox, instance: Instance) -> str:
    """Make one commit of the files and return it: no other one, no reflog, no remote and no .pyc holds the solution."""
    done = sandbox.run(ONE_COMMIT, timeout=START_SECONDS)
    if done.code:
        raise BackendError(f"{instance.instance_id}: git does not start in {ROOT}: {done.text.strip()[-200:]}")
    return done.text.strip().splitlines()[-1]


def judge(instance: Instance, patch: str, box: Box) -> Grade:
    """Return the grade of a patch. Raises BackendError if the tests cannot be run."""
    if not patch.strip():
        return replace(NOT_GRADED, reason="empty patch")
    if len(patch) > LONGEST:
        return replace(NOT_GRADED, reason=f"patch of more than {LONGEST} characters")
    limits = replace(box.limits, seconds=JUDGE_SECONDS, output=32 << 20)
    with open_sandbox(replace(box, limits=limits)) as sandbox:
        base = insert_bug(sandbox, instance) if instance.synthetic else instance.base_commit
        if not apply(sandbox, patch):
            return replace(NOT_GRADED, reason="the patch does not apply")
        sandbox.write(SCRIPT, evaluation_script(instance, base=base or "HEAD").encode())
        done = sandbox.run(["bash", SCRIPT])
    if done.timed_out:
        return replace(NOT_GRADED, reason=f"the tests take more than {JUDGE_SECONDS:g} s")
    return graded(instance, done.text)


def evaluation_script(instance: Instance, *, base: str) -> str:
    """Return the script of the instance, or the one that its repository's way to test makes.

    Test files are taken from the commit `base`.
    """
    if instance.eval_script:
        return instance.eval_script
    suite = repositories.suite(instance.repo, instance.version, synthetic=instance.synthetic)
    if instance.synthetic:
        tests = (*instance.fail_to_pass, *instance.pass_to_pass)
        files = sorted({test.partition("::")[0] for test in tests})
        return repositories.script(suite, base=base, test_patch="", tests=files, files=files)
    paths = repositories.TEST_FILE.findall(instance.test_patch)
    return repositories.script(
        suite,
        base=base,
        test_patch=instance.test_patch,
        tests=repositories.directives(instance.repo, instance.test_patch),
        files=[path for path in paths if not _added(path, instance.test_patch)],
    )


def _added(path: str, patch: str) -> bool:
    """Return True if a patch makes a file."""
    return re.search(rf"^diff --git a/.* b/{re.escape(path)}\nnew file mode", patch, re.MULTILINE) is not None


def parser(instance: Instance) -> Callable[[str], Iterator[log_parsers.Line]]:
    """Return the parser of an instance's log. Raises InstanceError if there is none of its name."""
    suite = repositories.suite(instance.repo, instance.version, synthetic=instance.synthetic)
    return log_parsers.parser(instance.log_parser or suite.parser)


def graded(instance: Instance, log: str) -> Grade:
    """Return the grade of a log: what stands between the markers counts, and of a test's statuses the worst."""
    _, start, rest = log.partition(START)
    output, end, tail = rest.rpartition(END)
    if not start or not end:
        return replace(NOT_GRADED, reason="the log has no test output")
    statuses = log_parsers.worst(parser(instance)(output))
    code = EXIT.search(tail)
    if code is not None and code[1] != "0" and not {"FAILED", "ERROR"} & set(statuses.values()):
        return replace(NOT_GRADED, reason=f"the tests end with {code[1]}, and the log names no failure")
    return grade(statuses, instance.fail_to_pass, instance.pass_to_pass, fail_only=instance.fail_only)
