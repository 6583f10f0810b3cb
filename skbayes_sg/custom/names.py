"""Names that users give to the parameters of their likelihood."""

import inspect
import re
from functools import lru_cache

from ..exceptions import InvalidParameterError

__all__ = ["check_names"]

OF_UPDATES = {"n_samples_seen_", "update_error_"}  # attributes that `partial_fit` sets


@lru_cache(maxsize=64)
def _fitted_attributes(kind):
    """Return the names of the attributes that fits of a class set: its docstring lists them all."""
    found = set(OF_UPDATES)
    for base in kind.__mro__:
        text = inspect.cleandoc(base.__doc__ or "")
        section = re.search(r"^Attributes\n-+\n(.*?)(^\w+\n-+\n|\Z)", text, re.M | re.S)
        for names in re.findall(r"^(\w+(?:, \w+)*) :", section[1] if section else "", re.M):
            found |= set(names.split(", "))
    return found


def check_names(estimator, argument, names, *, are_attributes):
    """Raise `InvalidParameterError` for a name that is no identifier, or that belongs to a result.

    `argument` is the constructor's parameter that has the names. If they `are_attributes`, the
    value of a parameter "sigma" becomes the fitted attribute ``sigma_``, which must be no other.
    """
    kind = type(estimator)
    said = f"The {argument!r} parameter of {kind.__name__} has the name"
    for name in names:
        if not (isinstance(name, str) and name.isidentifier()):
            raise InvalidParameterError(
                f"{said} {name!r}: names must be identifiers of Python, such as 'sigma'."
            )
        if are_attributes and (hasattr(kind, f"{name}_") or f"{name}_" in _fitted_attributes(kind)):
            raise InvalidParameterError(
                f"{said} {name!r}, and {name}_ is another attribute of a fitted {kind.__name__}. "
                "Choose another name."
            )
