"""The networks of Chen et al. (2019), and their data. Importing this file needs torch."""

import itertools

import numpy as np
import torch
from torch import nn
from torch.nn import functional


def cnn():
    """C32-C32-C64-C32, the first three with max-pooling, without the dropout of the paper."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


class Block(nn.Module):
    """Two convolutions with batch normalisation, and a way around them (He et al. 2016)."""

    def __init__(self, n_in, n_out):
        super().__init__()
        stride = n_out // n_in
        self.one = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.norm_one, self.norm_two = nn.BatchNorm2d(n_out), nn.BatchNorm2d(n_out)
        self.stride, self.more = stride, n_out - n_in

    def forward(self, x):
        y = functional.relu(self.norm_one(self.one(x)))
        y = self.norm_two(self.two(y))
        x = functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))
        return functional.relu(x + y)


def resnet(n_blocks=3):
    """ResNet of 6 n + 2 layers: ResNet-20 for n = 3."""
    widths = [16] + [16] * n_blocks + [32] * n_blocks + [64] * n_blocks
    blocks = [Block(a, b) for a, b in itertools.pairwise(widths)]
    first = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    last = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*first, *blocks, *last)


class Language(nn.Module):
    """LSTM of two layers over words (Zaremba et al. 2014): logits of the next word."""

    def __init__(self, n_words=10_000, width=200):
        super().__init__()
        self.embed = nn.Embedding(n_words, width)
        self.rnn = nn.LSTM(width, width, 2, batch_first=True)
        self.out = nn.Linear(width, n_words)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


def images(data, n):
    """(train, test) of CIFAR-10: pixels standardised by channel, the first n rows of each."""
    X = [data[f"X_{k}"][:n].transpose(0, 3, 1, 2) / np.float32(255.0) for k in ("train", "test")]
    mean, sd = (f(X[0], axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.std))
    X = [torch.from_numpy(np.ascontiguousarray((x - mean) / sd, dtype=np.float32)) for x in X]
    y = [torch.from_numpy(data[f"y_{k}"][:n].astype(np.int64)) for k in ("train", "test")]
    return list(zip(X, y, strict=True))


def windows(text, n, length=35):
    """Words and next words, in windows without overlap: the first n."""
    n = min(n, (len(text) - 1) // length)
    text = torch.from_numpy(text[: n * length + 1].astype(np.int64))
    return text[:-1].view(n, length), text[1:].view(n, length)
