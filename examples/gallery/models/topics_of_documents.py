"""
Topics, and how sure they are
=============================

What are scikit-learn's own docstrings about? A topic model finds groups of words. Which of these
groups are in the data, and which depend on where the sampler has begun? And how sure is the mix of
topics of a short text?
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.discovery import all_estimators, all_functions

from skbayes_sg import BayesianLDA

QUICK = "--quick" in sys.argv
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of experimental estimators
    named = [*all_estimators(), *all_functions()]
texts = {name: what.__doc__ or "" for name, what in named}
texts = {name: text for name, text in texts.items() if len(text) > 500}
words = CountVectorizer(
    token_pattern=r"[a-z]{4,}", min_df=5, max_df=0.2, stop_words="english", lowercase=True
)
X = words.fit_transform(texts.values()).astype(float)
print(f"{X.shape[0]} docstrings, {X.shape[1]} words")

# %%
# `topic_distances_` is the distance of a topic from draw to draw, over all chains: 0 if every draw
# has the same topic, near 1 if each has another one.
n_topics = 5 if QUICK else 10
short_run = {"n_draws": 5, "n_warmup": 20} if QUICK else {"n_draws": 40}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # chains find different topics, which is shown below
    lda = BayesianLDA(n_topics, random_state=0, **short_run).fit(X)
order = np.argsort(lda.topic_distances_)
vocabulary = words.get_feature_names_out()
top = lda.top_words(8, feature_names=vocabulary)
for k in order:
    print(f"{lda.topic_distances_[k]:.2f}  {' '.join(top[k])}")

# %%
# The figure shows the words of the most and the least certain topic, with 90 % intervals of their
# probabilities.
table = lda.top_words(8, with_uncertainty=True, feature_names=vocabulary)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharex=True)
for k, axis in zip((order[0], order[-1]), axes, strict=True):
    rows = slice(8 * k, 8 * (k + 1))
    mean, low, high = (np.asarray(table[name][rows]) for name in ("mean", "5%", "95%"))
    bars = [np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0)]
    axis.errorbar(mean, np.arange(8), xerr=bars, fmt="o", capsize=3)
    axis.set_yticks(range(8), [label.split(": ")[1] for label in table.labels[rows]])
    axis.invert_yaxis()
    axis.set_title(f"distance {lda.topic_distances_[k]:.2f}", loc="left", fontsize="small")
axes[0].set_xlabel("probability of the word")

# %%
# The mix of a document gets more certain with its length. We compare the first words of a docstring
# with all of it.
name = "LogisticRegression"
document = X[[list(texts).index(name)]].tocsr()
tokens = np.repeat(document.indices, document.data.astype(int))
rng = np.random.default_rng(0)
sizes = [5, 30, len(tokens)]
parts = [
    np.bincount(rng.choice(tokens, size, replace=False), minlength=X.shape[1]) for size in sizes
]
mixes = lda.transform_samples(sparse.csr_array(np.array(parts, float)), 200, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(9.5, 3), layout="constrained", sharey=True)
for axis, mix, size in zip(axes, mixes.transpose(1, 0, 2), sizes, strict=True):
    low, middle, high = np.quantile(mix, [0.05, 0.5, 0.95], axis=0)
    axis.errorbar(
        np.arange(n_topics), middle, yerr=[middle - low, high - middle], fmt="o", capsize=2
    )
    axis.set_title(f"{size} words of {name}", loc="left", fontsize="small")
    axis.set_xlabel("topic")
axes[0].set_ylabel("share, 90 % interval")

# %%
# **Takeaway.** Look at `topic_distances_` before you name a topic, and at the intervals of a mix
# before you sort a short document by it.
