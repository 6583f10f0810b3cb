"""A module whose trainable parameters are one vector, and their gradients another.

Every parameter is a view of its part of the vector. Thus a step of a sampler is a few operations on
one tensor, however many layers the module has; tied parameters occur once, and parameters that do
not require gradients keep their values.
"""

import copy
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from ..exceptions import InvalidParameterError

__all__ = ["FlatModule", "copy_of", "evaluating", "set_training"]


def set_training(module, training):
    """Put a module into training or evaluation mode for its gradients.

    cuDNN computes gradients of recurrent layers in training mode only: in evaluation mode these
    layers stay in training mode, with their dropout set to zero.
    """
    module.train(training)
    for layer in module.modules():
        if isinstance(layer, nn.RNNBase) and not training:
            layer.dropout = 0.0
            layer.train()


@contextmanager
def evaluating(module):
    """Context in which a module is in evaluation mode; each layer's mode is restored on exit."""
    before = [(layer, layer.training) for layer in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for layer, was_training in before:
            layer.training = was_training


def copy_of(module):
    """Return a deep copy; tensors that layers keep from a forward pass are copied detached."""
    kept = (value for layer in module.modules() for value in vars(layer).values())
    results = [t for t in tree_leaves(list(kept)) if isinstance(t, torch.Tensor) and not t.is_leaf]
    return copy.deepcopy(module, {id(t): t.detach().clone() for t in results})


class FlatModule:
    """A copy of a module on a device, bound to a vector θ.

    Parameters
    ----------
    module : torch.nn.Module
        The module, which is copied.
    device : torch.device
    extra : int, default=0
        Number of further parameters at the end of θ that do not belong to the module.

    Attributes
    ----------
    theta, gradient : tensors of shape (n_parameters,)
        The values of all parameters, and the memory into which `backward` adds gradients.
    slices : dict of str to slice
        Where the parameters of the module are in θ, by name.
    shapes : dict of str to tuple
        The shapes of these parameters.
    still : ndarray of int
        Indices in θ of vectors that embeddings use for padding: they stay as they are.
    """

    def __init__(self, module, device, extra=0):
        self.module = copy_of(module).to(device)
        found = {n: p for n, p in self.module.named_parameters() if p.requires_grad}
        if not found:
            raise InvalidParameterError("The module has no parameter that requires a gradient.")
        dtypes = {p.dtype for p in found.values()}
        if len(dtypes) > 1:
            raise InvalidParameterError(
                f"The parameters of the module have several types, {sorted(map(str, dtypes))}. "
                "Convert it, for example with module.float()."
            )
        self.device, self.parameters = device, found
        self.shapes = {n: tuple(p.shape) for n, p in found.items()}
        self.slices, first = {}, 0
        for name, p in found.items():
            self.slices[name] = slice(first, first + p.numel())
            first += p.numel()
        self.n_own, self.still = first, self._of_padding()
        dtype = dtypes.pop()
        self.theta = torch.zeros(first + extra, dtype=dtype, device=device)
        self.gradient = torch.zeros_like(self.theta)
        self._bind()

    def _of_padding(self):
        names, found = {id(p): n for n, p in self.parameters.items()}, [np.zeros(0, int)]
        for layer in self.module.modules():
            number = getattr(layer, "padding_idx", None)
            if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)) and number is not None:
                name, width = names.get(id(layer.weight)), layer.weight.shape[1]
                if name is not None:
                    start = self.slices[name].start + number * width
                    found.append(np.arange(start, start + width))
        return np.unique(np.concatenate(found))

    def _bind(self):
        for name, p in self.parameters.items():
            part, view = self.slices[name], self.shapes[name]
            self.theta[part] = p.detach().reshape(-1)
            p.data = self.theta[part].view(view)
            p.grad = self.gradient[part].view(view)

    @property
    def n_parameters(self):
        """Length of θ."""
        return len(self.theta)

    def twin(self):
        """Return a copy of the module with a vector of its own, at the same values."""
        other = FlatModule(self.module, self.device, self.n_parameters - self.n_own)
        other.theta.copy_(self.theta)
        return other

    def _others(self):
        """Yield (name, tensor) of what is not in θ: parameters that are held fixed, and buffers."""
        yield from ((n, p) for n, p in self.module.named_parameters() if not p.requires_grad)
        yield from self.module.named_buffers()

    def others(self, before):
        """Return copies on the CPU of tensors not in θ, such as the averages of BatchNorm.

        Parameters
        ----------
        before : dict
            Copies made earlier: what has not changed since then is not copied again.
        """
        found = {}
        for name, value in self._others():
            value, old = value.detach().cpu(), before.get(name)
            found[name] = old if old is not None and torch.equal(old, value) else value.clone()
        return found

    @torch.no_grad()
    def load(self, theta, others):
        """Set the parameters to a vector θ, and the tensors not in θ to those kept with it."""
        self.theta.copy_(torch.from_numpy(np.asarray(theta)))
        own = dict(self._others())
        for name, value in others.items():
            if name in own:
                own[name].copy_(value)
            else:  # a buffer that the first forward pass makes
                path, _, leaf = name.rpartition(".")
                self.module.get_submodule(path)._buffers[leaf] = value.to(self.device).clone()
