"""The device of a fit or of predictions: which one, its random numbers, and its precision."""

import warnings
from contextlib import contextmanager

import torch

from ..exceptions import InvalidParameterError

__all__ = ["computing_on", "device_of", "full_precision", "seeded"]


def device_of(device):
    """Return the device of this name; "auto" is a GPU of CUDA if there is one, else the CPU."""
    if isinstance(device, str) and device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InvalidParameterError(
            f"device must be 'auto' or a device, got {device!r}."
        ) from error
    if found.type == "cuda" and not torch.cuda.is_available():
        raise InvalidParameterError(f"device={device!r} was asked for, and there is no GPU.")
    return found


@contextmanager
def seeded(seed, device):
    """Context in which global random numbers of torch follow from a seed; restored on exit."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng([device] if on_gpu else []):
        if on_gpu or device.type == "cpu":  # `torch.manual_seed` would seed all devices
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def computing_on(device):
    """Context in which a module runs: full precision, without a warning that has no remedy.

    cuDNN copies the weights of recurrent layers into one block at each call, and warns of it once,
    unless they lie in its own order; here they lie in the order of the parameters.
    """
    if device.type != "cpu":
        warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous")
    with full_precision(device):
        yield


@contextmanager
def full_precision(device):
    """Context in which layers on a GPU do not round single precision to TensorFloat-32.

    By default convolutions round to ten bits. Differences along a direction, by which curvatures
    and motions are measured, would be lost in that, and a GPU would not predict what a CPU does.
    """
    settings = _settings() if device.type == "cuda" else []
    before = [getattr(place, name) for place, name, _ in settings]
    try:
        for place, name, value in settings:
            setattr(place, name, value)
        yield
    finally:
        for (place, name, _), value in zip(settings, before, strict=True):
            setattr(place, name, value)


def _settings():
    """Return (object, attribute, value) of the settings, by whichever names torch has in use.

    Torch refuses to mix its old names with its new ones.
    """
    cudnn, products = torch.backends.cudnn, torch.backends.cuda.matmul
    old = [(cudnn, "allow_tf32", False), (products, "allow_tf32", False)]
    try:
        for place, name, _ in old:
            getattr(place, name)
    except RuntimeError:
        return [(part, "fp32_precision", "ieee") for part in (cudnn.conv, cudnn.rnn, products)]
    return old
