"""
Your own likelihood
===================

A cup cools, a drug is cleared, a battery fades: the law of nature is known, and it is no
regression. How sure are its parameters? Write the log density of one row in Python, and choose
priors.

The measurements are simulated: a temperature that falls towards that of the room.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skbayes_sg.custom import CustomDensity
from skbayes_sg.plots import PairDisplay

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
minutes = np.sort(rng.uniform(0.0, 30.0, 40))
temperature = 20.0 + 60.0 * np.exp(-0.12 * minutes) + 1.5 * rng.normal(size=40)

# %%
# Units near one make priors easy: temperatures in units of 100 degrees, times in tens of minutes.


def log_density(theta, row):
    room, excess, rate, sigma = theta
    t, y = row
    z = (y - room - excess * np.exp(-rate * t)) / sigma
    return -0.5 * z * z - np.log(sigma)


priors = {"room": "normal", "excess": "normal", "rate": "half_normal", "sigma": "half_normal"}
options = {"n_draws": 200, "n_chains": 2} if QUICK else {}
model = CustomDensity(log_density, priors, random_state=0, **options)
model.fit(minutes[:, None] / 10.0, temperature / 100.0)
posterior = model.posterior_
print(posterior.summary())

# %%
# Parameters that the measurements hardly tell apart lie on a ridge: without late times a slow fall
# to a cold room looks like a fast fall to a warm one.
PairDisplay.from_posterior(posterior, names=["room", "excess", "rate"])

# %%
# Each draw is a curve. When will the temperature reach 25 degrees?
grid = np.linspace(0.0, 45.0, 100)
room, excess, rate = (posterior[name].ravel()[:, None] for name in ("room", "excess", "rate"))
curves = 100.0 * (room + excess * np.exp(-rate * grid / 10.0))
low, high = np.quantile(curves, [0.05, 0.95], axis=0)
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
axis.fill_between(grid, low, high, alpha=0.3, label="90 % interval of the curve")
axis.plot(minutes, temperature, ".", color="C1", label="measured")
axis.axhline(25.0, color="0.6", linewidth=0.8)
axis.set(xlabel="minutes", ylabel="degrees")
axis.legend()
reached = np.log(np.maximum(excess, 1e-9) / np.maximum(0.25 - room, 1e-9)) / rate * 10.0
print(f"25 degrees are reached after {np.quantile(reached, 0.05):.0f} to "
      f"{np.quantile(reached, 0.95):.0f} minutes")  # fmt: skip

# %%
# **Takeaway.** If you can write the log density of a row, you have its posterior, with the same
# checks and displays as for a regression.
