"""Steps on a GPU that are recorded once and replayed as one call: CUDA graphs.

A step of a small network is a hundred short kernels, and Python takes several times as long to
start them as the GPU to run them. A recording starts all of them at once, with the same memory
for what goes in and out. What Python itself does in a module is not part of a recording. A module
is therefore replayed only if checks find nothing of that kind: no number that Python waits for, no
random numbers of Python or NumPy, no hooks, no attribute that changes, and a replay that gives
what the module gives for the same random numbers. All others run as they do on a CPU.
"""

import contextlib
import functools
import random
import threading

import numpy as np
import torch

from .._base.filters import without_warnings

__all__ = ["Replay", "agrees", "is_replayable"]

CALLS = 10  # the call that starts a recording, which takes about as long as so many calls
# Largest relative difference of a replayed gradient; a GPU may add numbers in another order.
CLOSE = 1e-3
ONE_AT_A_TIME = threading.Lock()  # recordings of fits in threads share a stream
PLAIN = (bool, int, float, str, type(None))  # types of attributes that are compared


class Replay:
    """Calls a function, and replays it after it has been called often under the same key.

    Parameters
    ----------
    device : torch.device
        On a CPU the function is always called.
    generator : torch.Generator, optional
        The generator of the device from which the function takes random numbers, if it does.
    may_record : callable, optional
        ``may_record(function)`` says whether a recording would contain all that the function does.
    is_right : callable, optional
        ``is_right(function, replay)`` says whether a replay gives the same as the function.
    """

    def __init__(self, device, generator=None, may_record=None, is_right=None):
        self.device, self.generator, self.is_open = device, generator, device.type == "cuda"
        self.may_record, self.is_right = may_record, is_right
        self.key, self.n_calls, self.recorded = None, 0, None

    def __call__(self, function, key=None):
        """Return ``function()``; with the same key it must read and write the same memory."""
        if not self.is_open:
            return function()
        if key != self.key:
            self.key, self.n_calls, self.recorded = key, 0, None
        self.n_calls += 1
        if self.n_calls == CALLS:
            self.recorded = self._record(function)
            self.is_open = self.recorded is not None
        return function() if self.recorded is None else self.recorded()

    def forget(self):
        """Give back the memory of the GPU that a recording keeps for intermediate results."""
        self.n_calls, self.recorded = 0, None

    def _record(self, function):
        """Return a function that replays `function`; None if a replay would not do the same."""
        if self.may_record is not None and not self.may_record(function):
            return None
        try:
            replay = recording(function, self.device, self.generator)
        except RuntimeError:  # an operation that cannot be recorded
            return None
        return replay if self.is_right is None or self.is_right(function, replay) else None


def recording(function, device, generator=None):
    """Return a function that replays what `function` starts on a GPU, into the same tensors."""
    graph = torch.cuda.CUDAGraph()
    if generator is not None:
        graph.register_generator_state(generator)
    with ONE_AT_A_TIME, torch.cuda.device(device):
        side = _side_stream(torch.cuda.current_device())
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                found = function()
            finally:
                graph.capture_end()
        torch.cuda.current_stream().wait_stream(side)

    def replay():
        graph.replay()
        return found

    return replay


@functools.cache
def _side_stream(number):
    """Return one stream of a device for all recordings: each stream takes memory for products."""
    return torch.cuda.Stream(number)


# -- whether a module may be replayed ------------------------------------------------------------


def is_replayable(module, function):
    """Whether a function that calls a module does nothing in Python that a replay would leave out.

    Parameters
    ----------
    module : torch.nn.Module
    function : callable
        The function, which is called once.
    """
    if any(_hooks(layer) for layer in module.modules()):
        return False
    before = _of_python(module)
    try:
        with _no_waiting():
            function()
    except RuntimeError:  # Python waits for a number, perhaps to decide by it
        return False
    return _of_python(module) == before


def _hooks(layer):
    return [*layer._forward_hooks, *layer._forward_pre_hooks, *layer._backward_hooks]


def _of_python(module):
    """Return what a module might change in Python: states of random numbers, and attributes.

    A tensor that is an attribute, such as a buffer, may change in place, but not become another.
    """
    held = [
        (name, id(value) if isinstance(value, torch.Tensor) else value)
        for layer in module.modules()
        for name, value in (vars(layer) | layer._buffers).items()
        if isinstance(value, (*PLAIN, torch.Tensor))
    ]
    return random.getstate(), repr(np.random.get_state(legacy=False)), held  # noqa: NPY002


@contextlib.contextmanager
def _no_waiting():
    """Context in which torch raises RuntimeError where Python would wait for the GPU."""
    before = torch.cuda.get_sync_debug_mode()
    with without_warnings(UserWarning, "Synchronization debug mode is a prototype"):
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def agrees(flat, function, replay):
    """Whether a replay gives the gradient that a function gives, for the same random numbers."""
    found = []
    with _as_before(flat):
        state = torch.cuda.get_rng_state(flat.device)
        for call in (function, replay):
            torch.cuda.set_rng_state(state, flat.device)
            call()
            found.append(flat.gradient.clone())
    return bool((found[1] - found[0]).norm() <= CLOSE * found[0].norm())


@contextlib.contextmanager
def _as_before(flat):
    """Context that restores random numbers of the GPU, and buffers of the module, on exit."""
    buffers = [(b, b.clone()) for b in flat.module.buffers()]
    state = torch.cuda.get_rng_state(flat.device)
    try:
        yield
    finally:
        torch.cuda.set_rng_state(state, flat.device)
        for buffer, value in buffers:
            buffer.copy_(value)
