"""Constructors that pass parameters on to that of a base, where these are written once."""

import functools
import inspect
from collections.abc import Callable

__all__ = ["with_parameters_of"]


def with_parameters_of(base: type, before: str = "sampler") -> Callable:
    """A decorator of constructors whose signature then has the parameters passed on to `base`.

    scikit-learn, `help` and notebooks read the parameters of an estimator from this signature. The
    constructor's own parameters come ahead of the parameter `before`, but one that the base has too
    stays at its place.
    """
    shared = list(inspect.signature(base).parameters.values())

    def shown(init):
        given = [
            p for p in inspect.signature(init).parameters.values() if p.kind is not p.VAR_KEYWORD
        ]
        own = {p.name: p for p in given if p.kind is p.KEYWORD_ONLY}
        positional = [p for p in given if p.name not in own]
        passed = [own.pop(p.name, p) for p in shared]
        place = [p.name for p in passed].index(before)
        parameters = [*positional, *passed[:place], *own.values(), *passed[place:]]
        names = {p.name for p in parameters}

        @functools.wraps(init)
        def checked(self, *args, **given):
            for name in given.keys() - names:  # else the error would name the class `base`
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}"
                )
            init(self, *args, **given)

        checked.__signature__ = inspect.Signature(parameters)
        return checked

    return shown
