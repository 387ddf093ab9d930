"""What every test run needs: tests of real programs skip where a program is missing, except in CI."""

import logging
import os
from collections.abc import Iterator

import pytest

from tests.peers.programs import find


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("peers"):
        missing = [name for name in marker.args if find(name) is None]
        if missing:
            reason = f"not found: {', '.join(missing)} (run `make peers`)"
            if os.environ.get("CI") == "true":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """A command that runs inside a test sets levels and handlers, as for a process of its own."""
    root, own = logging.getLogger(), logging.getLogger("fastdisco")
    handlers, level = list(root.handlers), own.level
    yield
    own.setLevel(level)
    for handler in [one for one in root.handlers if one not in handlers]:
        root.removeHandler(handler)
