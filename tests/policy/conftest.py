import pytest

from tests.threads import one_thread


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield
