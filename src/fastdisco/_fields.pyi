"""What is read of each kind of object; the tables themselves are for the compiled modules."""

from typing import Final

KIND_NAMES: Final[tuple[str, ...]]
"""All kinds; those before the last are the roles of targets too."""

def kind_number(kind: str) -> int:
    """Position of a kind in `KIND_NAMES`; ValueError for what is none."""
