"""
New rows every day
==================

Rows arrive in batches. Is a fit of all rows needed each time? `partial_fit` updates the posterior
with the new rows alone, and says how far it may be off.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skbayes_sg import BayesianLogisticRegression

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
n, batches = (1500, 3) if QUICK else (8000, 12)
X = rng.normal(size=(n, 4))
truth = np.array([1.0, -0.5, 0.0, 0.2])
y = (X @ truth + rng.logistic(size=n) > 1.0).astype(int)

# %%
online = BayesianLogisticRegression(n_draws=500, random_state=0)
seen, mean, sd, error = [], [], [], []
for rows in np.array_split(np.arange(n), batches):
    online.partial_fit(X[rows], y[rows], classes=[0, 1])
    seen.append(online.n_samples_seen_)
    mean.append(online.coef_[0])
    sd.append(online.coef_std_[0])
    error.append(online.update_error_)
together = BayesianLogisticRegression(n_draws=500, random_state=0).fit(X, y)

# %%
# The figure shows the posterior after each batch (lines, with 90 % bands), the coefficients that
# made the data (dotted), and the fit of all rows together (circles).
mean, sd = np.array(mean), np.array(sd)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for j in range(4):
    axis.plot(seen, mean[:, j], color=f"C{j}")
    ends = mean[:, j] - 1.645 * sd[:, j], mean[:, j] + 1.645 * sd[:, j]
    axis.fill_between(seen, *ends, color=f"C{j}", alpha=0.2)
    axis.axhline(truth[j], color=f"C{j}", linestyle=":")
    axis.plot(n, together.coef_[0, j], "o", color=f"C{j}", mfc="white")
axis.set(xlabel="rows seen", ylabel="coefficient")
off = np.abs(mean[-1] - together.coef_[0]) / together.coef_std_[0]
print(f"distance from the fit of all rows: at most {off.max():.2f} posterior sd")
print(f"update_error_, measured on the way: {error[-1]:.2f}")

# %%
# **Takeaway.** Update with the new rows, watch `update_error_`, and fit again from all rows when it
# exceeds 0.6, where there is an `UpdateWarning` as well.
