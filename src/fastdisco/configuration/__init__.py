"""Configuration files of Prometheus and vmagent: read, checked as a whole, and compared with what runs."""

from .comparison import ConfigurationChange, compare
from .loading import Configuration, ConfigurationError, changed, load_configuration
from .unmade_labels import unmade_labels

__all__ = ["Configuration", "ConfigurationChange", "ConfigurationError", "changed", "compare", "load_configuration", "unmade_labels"]
