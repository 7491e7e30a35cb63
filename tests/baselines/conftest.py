from tests.train.conftest import chain, one_thread  # noqa: F401
