"""How kernels are compiled: one decorator, one cache folder, one list of compiler flags.

Two properties of Numba determine this file. A cached kernel is not recompiled when a function that
it calls changes in *another* file, and with ``cache=True`` the import itself fails if neither the
package nor the home folder is writable. Therefore the cache is in a folder named after a hash of
all sources from which a kernel may be made; if no folder is writable, there is one `CacheWarning`
and no cache.
"""

import functools
import hashlib
import os
import tempfile
import warnings
from pathlib import Path

from ..exceptions import CacheWarning
from .garbage import uncollected
from .interrupts import without_interrupts

with uncollected():
    import numba
    from numba.core import types
    from numba.core.caching import FunctionCache
    from numba.core.registry import cpu_target
    from numba.core.runtime import rtsys
    from numba.extending import overload as _overload
    from numba.extending import typeof_impl

__all__ = ["FASTMATH", "entry", "inlined", "inner", "jit", "overload", "pointee", "pointer"]
__all__ += ["typed_once", "uncached"]

# Reassociation lets LLVM vectorise sums (1.7 times faster at 50 columns). Never use `True`: it
# includes `nnan` and `ninf`, which remove every `isfinite`. The environment variable is for a test
# that compares compiled kernels with their Python source bit by bit.
FASTMATH: set[str] = (
    set() if os.environ.get("SKBAYES_SG_STRICT_MATH") else {"reassoc", "contract", "nsz", "arcp"}
)

# Before it loads a kernel, Numba imports everything that it might need to compile one, which takes
# 0.3 s of the first fit of a process. Loading needs only the memory manager; a compilation still
# imports the rest. As this uses private parts of Numba, untested versions load in Numba's own way.
_LOADS_ALONE = numba.version_info.short == (0, 68)

_PACKAGE = Path(__file__).parents[1]
# Folders and files whose sources determine no cached kernel: editing them recompiles nothing.
_WITHOUT_KERNELS = {"demo", "estimators", "geometry", "posterior", "recipe", "shards"}
_WITHOUT_KERNELS |= {"__init__", "__main__", "datasets", "exceptions", "metrics", "plots"}
_WITHOUT_KERNELS |= {"shrinkage", "torch"}
_WITHOUT_KERNELS |= {"custom"}  # its kernels call functions of users, and are never cached
# Folders whose kernels are called from their own folder only: editing them recompiles no others.
_ALONE = {"densities", "factorisation", "groups", "inspection", "model_selection", "multilevel"}
_ALONE |= {"networks", "topics"}
_warned = False


def _warn_once(reason):
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"skbayes_sg cannot keep its compiled kernels on disk ({reason}); they are compiled "
            "again in every process (a few seconds). Set NUMBA_CACHE_DIR to a writable folder.",
            CacheWarning,
            stacklevel=3,
        )


@functools.cache
def _unit(path):
    """Return the name of the folder or file, directly in the package, to which `path` belongs.

    The result is "" for paths outside of the package.
    """
    path = Path(path)
    if not path.is_relative_to(_PACKAGE):
        return ""
    return path.relative_to(_PACKAGE).parts[0].removesuffix(".py")


def _source_hash(unit):
    """Return a hash of all files from which the kernels of the folder `unit` may be made."""
    digest = hashlib.sha256(repr(sorted(FASTMATH)).encode())
    apart = (_WITHOUT_KERNELS | _ALONE) - {unit}
    for path in sorted(_PACKAGE.rglob("*.py")):
        if _unit(path) not in apart:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@functools.cache
def _cache_folder(unit):
    """Return the cache folder for the kernels of `unit`, or None if no place is writable.

    It is created in the first writable one of ``NUMBA_CACHE_DIR``, ``XDG_CACHE_HOME`` and
    ``~/.cache``, and only the user may read it.
    """
    name = f"skbayes_sg-{_source_hash(unit)}"
    roots = [os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")]
    for root in [Path(r) for r in roots if r] + [Path("~/.cache").expanduser()]:
        folder = root / name
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
        except OSError:
            continue
    return None


class _TolerantCache(FunctionCache):
    """Numba's cache, in which a full disk or a damaged file causes a compilation, not an error."""

    def load_overload(self, sig, target_context):
        with without_interrupts():
            found = self._loaded(sig, target_context)
            if found is None:
                _load_compiler()
            return found

    def _loaded(self, sig, target_context):
        try:
            if _LOADS_ALONE:
                rtsys.initialize(target_context)
                return self._load_overload(sig, target_context)
            return super().load_overload(sig, target_context)
        except Exception as error:
            try:
                self.flush()  # otherwise every save would fail at a damaged index
            except OSError:
                _warn_once(error)
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except Exception as error:
            self.disable()
            _warn_once(error)


@functools.cache
def _load_compiler():
    """Import and register all that compilations need, which an interrupted one would leave in part.

    The compilation of a kernel may be interrupted, and begins anew with the next call.
    """
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def _attach_cache(dispatcher):
    unit = _unit(dispatcher.py_func.__code__.co_filename)
    folder = _cache_folder(unit if unit in _ALONE else "")
    if folder is None:
        _warn_once("no folder is writable")
        return
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, folder
    try:
        dispatcher._cache = _TolerantCache(dispatcher.py_func)
    except (OSError, RuntimeError) as error:
        _warn_once(error)
    finally:
        numba.config.CACHE_DIR = before


def jit(function):
    """Compile a kernel: no Python objects, no GIL, no parallel loops, cached on disk.

    With ``NUMBA_DISABLE_JIT=1`` the function itself is returned: the Python source of every
    kernel is its own reference implementation.
    """
    if numba.config.DISABLE_JIT:
        return function
    return _compiled(function)


def _compiled(function, **options):
    options |= {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
    dispatcher = numba.njit(**options)(function)
    if options.get("inline") != "always":  # otherwise it is compiled as a part of its callers
        _attach_cache(dispatcher)
    return dispatcher


def uncached(function, *, nogil=True):
    """Compile a function that a user has given, or that calls one; without flags and cache."""
    if numba.config.DISABLE_JIT:
        return function
    return numba.njit(nogil=nogil, error_model="numpy")(function)


def inner(function):
    """Compile as `jit` does, without any wrapper, a kernel that only other kernels call, by name.

    The wrappers that unpack arguments from Python objects and from C take long to compile, most of
    all for named tuples of arrays.
    """
    return _without(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def entry(function):
    """Compile as `jit` does, without the wrapper that a `pointer` needs, for calls from Python."""
    return _without(function, no_cfunc_wrapper=True)


def pointee(function):
    """Compile as `jit` does, without the wrapper for Python, for calls through a `pointer` only."""
    return _without(function, no_cpython_wrapper=True)


def inlined(function):
    """Compile as `inner` does, inlined into its callers: this is faster if there is only one."""
    return _without(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, inline="always")


def _without(function, **wrappers):
    return function if numba.config.DISABLE_JIT else _compiled(function, **wrappers)


def overload(function, **options):
    """Return the decorator `numba.extending.overload` with the compiler flags of `jit`."""
    flags = {"fastmath": FASTMATH, "error_model": "numpy"}
    return _overload(function, jit_options=flags, **options)


class _Pointer(types.WrapperAddressProtocol):
    """The address of a kernel compiled for one signature; Numba types it by that signature."""

    def __init__(self, dispatcher, function_type):
        self.type = function_type
        self._signature = function_type.signature
        result = dispatcher.get_compile_result(self._signature)
        self._address = result.library.get_pointer_to_function(
            result.fndesc.llvm_cfunc_wrapper_name
        )
        self._result = result  # a reference that keeps the machine code alive

    def __wrapper_address__(self):
        return self._address

    def signature(self):
        return self._signature


@typeof_impl.register(_Pointer)
def _typeof_pointer(value, context):
    return value.type  # Numba would rebuild the type at every call, in 30 µs for each argument


def typed_once(kind):
    """Decorate a class of named tuples of pointers and whole numbers, to keep their Numba types.

    Without this, Numba builds the type of each argument of that class at every call, in 0.1 ms.
    """
    known: dict = {}

    def typed(value, context):
        key = tuple(id(x.type) if isinstance(x, _Pointer) else type(x) for x in value)
        if key not in known:
            own = [x.type if isinstance(x, _Pointer) else types.intp for x in value]
            known[key] = types.NamedTuple(own, kind)
        return known[key]

    typeof_impl.register(kind)(typed)
    return kind


_pointers: dict = {}


def pointer(dispatcher, function_type):
    """Return a first-class function, which loops can call without being compiled for it.

    Numba compiles `dispatcher` (or loads it from the cache) for the signature of
    `function_type` once per process.
    """
    if numba.config.DISABLE_JIT:
        return dispatcher
    key = (dispatcher, function_type)
    if key not in _pointers:
        _pointers[key] = _Pointer(dispatcher, function_type)
    return _pointers[key]
