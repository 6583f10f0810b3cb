"""Topics of a corpus, how sure their words are, and how sure the mix of a short document is.

    python examples/topics_of_a_corpus.py [--corpus ap | kos | 20newsgroups] [--topics 20] [--quick]

Prints the words of the topics with 90 % intervals of their probabilities, those topics first that
all chains have found; the perplexity of held-out documents, of all draws and of a single one; and
what the first words of a document say of its topics, and the whole document. With ``--output`` this
is drawn as well, as topics_of_a_corpus.png. "ap" and "kos" are `ap.npz` and `kos.npz` in the folder
that the variable SKBAYES_SG_DATA names; "20newsgroups" is downloaded by scikit-learn.
"""

import sys
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))
from _corpora import load
from _script import Parser, save_figure, some

from skbayes_sg import BayesianLDA
from skbayes_sg.topics import completion_perplexity, split_documents

SHOWN, WORDS = 4, 8


def shortened(document, n_tokens, rng):
    """So many tokens of a document, at random."""
    words = np.repeat(document.indices, document.data.astype(int))
    kept = np.bincount(rng.choice(words, n_tokens, replace=False), minlength=document.shape[1])
    return sparse.csr_array(kept[None].astype(float))


def describe(model, vocabulary):
    """Print the topics that differ least between draws."""
    table = model.top_words(WORDS, with_uncertainty=True, feature_names=vocabulary).to_frame()
    order = np.argsort(model.topic_distances_)
    print(f"{len(order)} topics. Distance of a topic from draw to draw (0: the same, 1: another):")
    print("  ", np.sort(model.topic_distances_).round(2))
    for k in [*order[:SHOWN], order[-1]]:
        distance, share = model.topic_distances_[k], model.topic_share_[k]
        print(f"\ntopic {k}: distance {distance:.2f}, {share:.1%} of all words")
        print(table.iloc[WORDS * k : WORDS * (k + 1)].round(4).to_string())
    return order


def judge(model, test):
    """Print perplexities of the held-out documents."""
    observed, held_out = split_documents(test, random_state=0)
    states = model.predictive_components_.reshape(-1, *model.components_.shape)
    alone = [completion_perplexity(phi, observed, held_out) for phi in states]
    unigram = (model.topic_share_ @ model.components_)[None]
    mean, none = (
        completion_perplexity(phi, observed, held_out) for phi in (model.components_, unigram)
    )
    together = model.perplexity(held_out, observed=observed)
    print(f"\nperplexity of all {len(states)} draws {together:.0f}")
    print(f"of a single one {min(alone):.0f} to {max(alone):.0f}, of their mean topics {mean:.0f}")
    print(f"without topics {none:.0f}")


def draw(model, vocabulary, order, samples, sizes, folder):
    """Words of four topics with intervals; the mix of a document as it gets longer."""
    from matplotlib.figure import Figure

    made = Figure((12, 7), layout="constrained")
    axes = made.subplots(2, max(SHOWN, len(sizes)))
    table = model.top_words(WORDS, with_uncertainty=True, feature_names=vocabulary)
    for axis, k in zip(axes[0], order, strict=False):
        rows = slice(WORDS * k, WORDS * (k + 1))
        mean, low, high = (table[name][rows] for name in ("mean", "5%", "95%"))
        axis.errorbar(mean, np.arange(WORDS), xerr=[mean - low, high - mean], fmt="o", capsize=3)
        axis.set_yticks(range(WORDS), [label.split(": ")[1] for label in table.labels[rows]])
        axis.invert_yaxis()
        axis.set_title(f"topic {k}", fontsize=10)
    axes[0, 0].set_xlabel("probability of a word, 90 % interval", fontsize=9)
    for axis, mixes, size in zip(axes[1], samples, sizes, strict=False):
        low, middle, high = np.quantile(mixes, [0.05, 0.5, 0.95], axis=0)
        bars, style = [middle - low, high - middle], {"fmt": "o", "capsize": 2, "markersize": 4}
        axis.errorbar(np.arange(len(middle)), middle, yerr=bars, color="tab:red", **style)
        axis.set(title=f"{size} words of a document", xlabel="topic", ylim=(-0.03, 1.03))
    axes[1, 0].set_ylabel("share in the document, 90 % interval")
    save_figure(folder, "topics_of_a_corpus", made)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--corpus", default="ap", choices=["ap", "kos", "20newsgroups"])
    parser.add_argument("--topics", type=int, default=20, quick=5)
    options = parser.parse_args()
    X, vocabulary = load(options.corpus)
    (X,), rng = some(300 if options.quick else X.shape[0], X), np.random.default_rng(0)
    rows = rng.permutation(X.shape[0])
    n_test = X.shape[0] // 10
    train, test = X[rows[n_test:]], X[rows[:n_test]]
    model = BayesianLDA(options.topics, random_state=0, n_jobs=-1).fit(train)
    order = describe(model, vocabulary)
    judge(model, test)
    shares = model.transform(test).max(axis=1) * (test.sum(axis=1) > 150)
    document = test[[int(shares.argmax())]].tocsr()  # a long one, most of it of one topic
    sizes = [3, 10, 50, int(document.sum())]
    parts = sparse.vstack([shortened(document, size, rng) for size in sizes])
    samples = model.transform_samples(parts, 400, random_state=0).transpose(1, 0, 2)
    for size, mixes in zip(sizes, samples, strict=True):
        k = mixes.mean(axis=0).argmax()
        low, high = np.quantile(mixes[:, k], [0.05, 0.95])
        print(f"{size:5} words of a document: topic {k} has {low:.2f} to {high:.2f} of it")
    if options.output:
        draw(model, vocabulary, order, samples, sizes, options.output)


if __name__ == "__main__":
    main()
