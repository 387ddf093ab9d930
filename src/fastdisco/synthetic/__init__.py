"""A seeded synthetic cluster and an API server for it, with faults on demand: for demos, benchmarks and tests."""

from fastdisco.synthetic.cluster import Cluster, Sizes
from fastdisco.synthetic.process import RemoteControl, SyntheticProcess
from fastdisco.synthetic.server import SyntheticServer

__all__ = ["Cluster", "RemoteControl", "Sizes", "SyntheticProcess", "SyntheticServer"]
