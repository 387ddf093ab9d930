"""The version, for the package and for what names it to servers."""

__version__ = "0.1.0"
