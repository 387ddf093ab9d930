"""What every test run needs: tests of real programs skip where a program is missing, except in CI."""

import os

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
