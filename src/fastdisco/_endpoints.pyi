"""Targets of endpoints and slices: an object of a store becomes label sets, as docs/labels.md says."""

from typing_extensions import disjoint_base

from ._targets import TargetWriter

@disjoint_base
class EndpointsWriter(TargetWriter):
    """Writes the targets of any one object; `_render.Renderer` decides which."""
