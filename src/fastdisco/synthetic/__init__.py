"""A seeded synthetic cluster and an API server for it, with faults on demand: for demos, benchmarks and tests."""

from fastdisco.synthetic.cluster import Cluster, Sizes
from fastdisco.synthetic.process import SyntheticProcess
from fastdisco.synthetic.server import SyntheticServer

__all__ = ["Cluster", "Sizes", "SyntheticProcess", "SyntheticServer"]
