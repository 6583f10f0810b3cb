"""The copy of an array, as a kernel."""

from .._base.jit import inner

__all__ = ["copy"]


@inner
def copy(source, out):
    """out ← source, contiguous arrays with as many elements.

    For the assignment ``out[:] = source`` Numba compiles the text of its error as well, which takes
    four seconds.
    """
    values, targets = source.reshape(-1), out.reshape(-1)
    for i in range(targets.shape[0]):
        targets[i] = values[i]
