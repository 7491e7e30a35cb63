"""Every environment can be pickled before its first reset, as vector environments and process pools ask."""

from __future__ import annotations

import pickle
from contextlib import closing

import pytest

from lmgym.env.registry import build, specs
from lmgym.errors import InstanceError, MissingExtra

TASKS = [name for name in specs() if not name.startswith("lmgym/MiniWoB-") or name.endswith(("MiniWoB-v0", "-AA-v0"))]


@pytest.mark.parametrize("name", TASKS)
def test_an_environment_is_pickled_before_reset(name):
    try:
        env = build(name)
    except (InstanceError, MissingExtra) as error:
        pytest.skip(f"{error}: has no instances")
    with closing(env), closing(pickle.loads(pickle.dumps(env))) as copy:
        assert (copy.spec, copy.unwrapped.split) == (env.spec, env.unwrapped.split)
        if env.unwrapped.task.extras == ("webshop",):
            first, _ = env.reset(seed=0, options={"index": 0})
            assert copy.reset(seed=0, options={"index": 0})[0] == first
