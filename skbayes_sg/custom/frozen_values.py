"""The values that the functions of users read besides their arguments.

Numba takes the values of global and closure variables for constants: it reads them when it compiles
a function for the first time. Compiled laws are therefore cached not by the function, but by its
code and all the values that it reads, those of its helpers included; and what is compiled is a copy
of the function that has these values for ever, and helpers that are not compiled yet.

Functions and modules of Python itself, and of installed packages, are taken to be constant.
"""

import contextlib
import dis
import hashlib
import itertools
import os
import sysconfig
from functools import lru_cache
from types import CellType, CodeType, FunctionType, ModuleType

import numpy as np
from numba.core.dispatcher import Dispatcher

__all__ = ["Frozen", "frozen"]

_INSTALLED = tuple(
    sysconfig.get_path(kind) + os.sep for kind in ("stdlib", "platstdlib", "purelib", "platlib")
)
_numbers = itertools.count()  # for the names of copies of modules


class Frozen:
    """A copy of a function that keeps the values of all variables that it reads.

    Two of them are equal if their code and these values are. A function that is not to be
    `compiled` is called as it is, and is equal to itself alone.
    """

    def __init__(self, original, compiled=True):
        if compiled and isinstance(original, FunctionType | Dispatcher):
            self._key, self.function = _read_function(original, {})
        else:
            self._key, self.function = _Same(original), original
        self._hash = hash(self._key)

    def __eq__(self, other):
        return isinstance(other, Frozen) and self._key == other._key

    def __hash__(self):
        return self._hash


def frozen(function, compiled=True):
    """Return the `Frozen` of a function with its present values; None and a `Frozen` as they are.

    Equal ones are the same object as long as they are in the cache, so that they share memory.
    """
    if function is None or isinstance(function, Frozen):
        return function
    return _first_equal(Frozen(function, compiled))


@lru_cache(maxsize=64)
def _first_equal(found):
    """Return the first one of the equal `Frozen` with which this was called."""
    return found


class _Same:
    """The key of an object that cannot be compared by value; the object is kept alive."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self):
        return id(self.value)


# -- keys and copies: each function returns both of a value ---------------------------------------


def _read(value, attributes, seen):
    """Return (key, copy) of a value; keys are equal if values are, and the copy does not change.

    `attributes` are the names of all attributes in the code that reads the value, and `seen` has
    the results so far, since functions may refer to each other.
    """
    if isinstance(value, FunctionType | Dispatcher) and not _is_installed(value):
        return _read_function(value, seen)
    if isinstance(value, ModuleType) and not _is_installed(value):
        return _read_module(value, attributes, seen)
    if type(value) is tuple:
        parts = [_read(part, attributes, seen) for part in value]
        return ("tuple", *(key for key, _ in parts)), tuple(copy for _, copy in parts)
    return _read_other(value, seen)


def _read_other(value, seen):
    """Return (key, copy) of an array, a number, or an object, which is its own copy."""
    del seen
    if type(value) is np.ndarray and not value.dtype.hasobject:
        content = hashlib.blake2b(value.tobytes()).digest()
        return ("array", value.shape, value.dtype, content), value.copy(order="K")
    if isinstance(value, float | complex | np.generic):  # -0.0 equals 0.0, and NaN not itself
        return (type(value), repr(value)), value
    try:
        hash(value)
    except TypeError:
        return _Same(value), value
    return (type(value), value), value


def _read_function(function, seen):
    """Return (key, copy) of a plain or compiled function, with all that it reads."""
    if id(function) in seen:
        return seen[id(function)]
    plain = getattr(function, "py_func", function)
    code, cells = plain.__code__, tuple(CellType() for _ in plain.__code__.co_freevars)
    module = {"__name__": plain.__module__}  # Numba looks it up
    own = copy = FunctionType(code, module, plain.__name__, closure=cells or None)
    copy.__qualname__, options = plain.__qualname__, None
    if plain is not function:
        options = function.locals, function.targetoptions
        own = type(function)(copy, *map(dict, options))
    seen[id(function)] = ("again", len(seen)), own
    return (code, repr(options), *_read_variables(plain, copy, seen)), own


def _read_variables(plain, copy, seen):
    """Set all variables of the copy of a function, and return their keys."""
    names, attributes = _names_in(plain.__code__)
    variables = {name: plain.__globals__[name] for name in names if name in plain.__globals__}
    keys = []
    for name, value in variables.items():
        key, copy.__globals__[name] = _read(value, attributes, seen)
        keys.append((name, key))
    for given, own in zip(plain.__closure__ or (), copy.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # of a variable without a value
            key, own.cell_contents = _read(given.cell_contents, attributes, seen)
            keys.append(key)
    defaults, copy.__defaults__ = _read(plain.__defaults__, attributes, seen)
    options = plain.__kwdefaults__ or {}
    named, values = _read(tuple(options.values()), attributes, seen)
    copy.__kwdefaults__ = dict(zip(options, values, strict=True)) or None
    return tuple(keys), defaults, tuple(options), named


def _read_module(module, attributes, seen):
    """Return (key, copy) of a module, a copy that has only those of these attributes that exist."""
    mark = id(module), attributes
    if mark not in seen:
        copy = ModuleType(f"{module.__name__}.{next(_numbers)}")
        seen[mark] = ("again", len(seen)), copy
        keys = []
        for name in sorted(attributes & vars(module).keys()):
            key, value = _read(vars(module)[name], attributes, seen)
            setattr(copy, name, value)
            keys.append((name, key))
        return ("module", module.__name__, tuple(keys)), copy
    return seen[mark]


@lru_cache(maxsize=256)
def _names_in(code):
    """Return the names of the global variables that code reads, sorted, and of all attributes."""
    read = [step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"]
    attributes = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names, more = _names_in(inner)
            read += names
            attributes |= more
    return tuple(sorted(set(read))), frozenset(attributes)


def _is_installed(value):
    """Whether a function or a module is a part of Python or of an installed package."""
    plain = getattr(value, "py_func", value)
    if isinstance(plain, FunctionType):
        return plain.__code__.co_filename.startswith(_INSTALLED)
    places = [getattr(value, "__file__", None) or "", *getattr(value, "__path__", ())]
    return all(place.startswith(_INSTALLED) for place in places if place)
