"""The version of the package, which pyproject.toml and CITATION.cff repeat."""

__all__ = ["__version__"]

__version__ = "0.1.0"
