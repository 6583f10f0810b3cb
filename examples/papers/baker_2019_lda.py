"""Control variates for LDA (Baker et al. 2019): figure 9, perplexity against passes.

    python examples/papers/baker_2019_lda.py [--sizes 500 2000 8000] [--quick]

Topics as φ = softmax(x) sampled by SGLD and SGLD-CV with batches of 50 documents, a vocabulary of
1000 words, and growing numbers of documents, as in section 6.3; perplexity is that of the held-out
half of each of 200 other documents, of the mean of the topics over the draws so far. The documents
of the paper were taken from Wikipedia and are not at hand: these are made, of 20 topics, 60 words
long, and below them those of the corpora ap and kos, with their 1000 most frequent words.

Documents are counted as often as they are looked at: SGLD-CV spends passes on finding its centre
and one on the sum there, and looks at every document of a batch twice. SAGA remembers the topics of
all tokens. Beside them "cir", the exact step, with and without this memory.

The paper finds SGLD-CV ahead of SGLD, by more the more documents there are. Here it is ahead at all
sizes, at once after its centre is found, but by less the more documents there are: a pass over them
then has more steps, and SGLD catches up.
"""

import sys
from pathlib import Path

import numpy as np
from _papers import Parser, figure, plain_ticks, save_figure

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from _corpora import load, made_documents, made_topics

from skbayes_sg._base import streams
from skbayes_sg.schedules import Constant
from skbayes_sg.topics import completion_perplexity, split_documents
from skbayes_sg.topics.collapsed_gibbs import DirichletPrior
from skbayes_sg.topics.corpus import as_corpus, as_tokens
from skbayes_sg.topics.stochastic_chains import (
    CENTRE_EPOCHS,
    StochasticChain,
    TopicPieces,
    find_centre,
    new_state,
)

K, V, LENGTH, BATCH, BETA, JUDGED = 20, 1000, 60, 50, 0.1, 200
FORMS = [
    ("SGLD", "sgld", "minibatch"),
    ("SGLD-CV", "sgld", "control_variate"),
    ("SAGA", "sgld", "saga"),
    ("exact step", "cir", "minibatch"),
    ("exact step, saga", "cir", "saga"),
]


def start(sampler, gradient, tokens, seed):
    """A chain at topics that are drawn at random."""
    rng = np.random.default_rng(seed)
    mean = rng.dirichlet(np.full(V, 1.0), K).T * len(tokens.words) / K
    z = np.full(len(tokens.words), -1, np.int16) if gradient == "saga" else np.zeros(0, np.int16)
    return StochasticChain(0, new_state(mean, BETA, sampler), *streams.of_chain(seed, 0), z)


def path(sampler, gradient, tokens, n_documents, judged, n_passes, seed=0):
    """(documents looked at, perplexity of the mean topics so far), after each pass."""
    prior, share = DirichletPrior(np.full(K, 0.1), BETA), BATCH / n_documents
    heaviest = 0.05 * len(tokens.words) / K  # tokens of a frequent word in a topic
    h = {"sgld": 1.0 / heaviest, "cir": (5.0 if gradient == "saga" else 0.3) * share}[sampler]
    pieces = TopicPieces(sampler, gradient, BATCH, Constant(h))
    chain, seen, looks = start(sampler, gradient, tokens, seed), 0, 1
    if gradient == "control_variate":
        # Its passes without noise shrink like those of online variational inference.
        warm = TopicPieces(sampler, gradient, BATCH, lambda t: np.maximum((1.0 + t) ** -0.7, share))
        chain = find_centre(chain, tokens, prior, warm)
        seen, looks = (CENTRE_EPOCHS + 1) * n_documents, 2
    total, found = 0.0, []
    while seen < n_passes * n_documents:
        for _ in range(n_documents // BATCH):
            documents = chain._batch(n_documents, pieces)
            chain.step(tokens, documents, prior, pieces, n_documents)
        seen += looks * n_documents
        chain.keep(tokens, prior, pieces)
        topics = chain.draws.topics[-1]
        if seen > n_passes * n_documents / 2:  # the first half of a run is not averaged
            total = total + topics
            topics = total
        found.append((seen, completion_perplexity(topics, *judged)))
    return np.array(found)


def corpora(sizes, real):
    """(title, documents to learn from, held-out halves, perplexity of the true topics or None)."""
    rng = np.random.default_rng(0)
    topics = made_topics(K, V, rng)
    judged = split_documents(made_documents(topics, JUDGED, LENGTH, rng), random_state=0)
    truth = completion_perplexity(topics, *judged)
    for D in sizes:
        yield f"{D} made documents", made_documents(topics, D, LENGTH, rng), judged, truth
    for name, share in real:
        counts = load(name)[0].tocsc()
        frequent = np.sort(np.argsort(-counts.sum(axis=0))[:V])
        counts = counts[:, frequent].tocsr()
        counts = counts[counts.sum(axis=1) >= 10]
        order = np.random.default_rng(1).permutation(counts.shape[0])
        own = counts[order[JUDGED:][: int(share * (len(order) - JUDGED))]]
        judged = split_documents(counts[order[:JUDGED]], random_state=0)
        yield f"{own.shape[0]} of {name}", own, judged, None


def compare(title, documents, judged, truth, n_passes, runs, axis):
    tokens, D = as_tokens(as_corpus(documents)), documents.shape[0]
    known = "" if truth is None else f"; perplexity of the true topics {truth:.0f}"
    print(f"{title}, {len(tokens.words)} words{known}")
    for label, sampler, gradient in FORMS:
        task = sampler, gradient, tokens, D, judged, n_passes
        levels = np.array([path(*task, seed) for seed in range(runs)])
        passes, level = levels[0, :, 0] / D, levels[:, :, 1].mean(axis=0)
        middle = level[np.searchsorted(passes, n_passes / 2)]
        found = f"{middle:.0f} after {n_passes // 2} passes, {level[-1]:.0f} after {n_passes}"
        print(f"    {label:18} {found}", flush=True)
        axis.plot(passes, level, ".-", label=label, linewidth=1, markersize=3)
    if truth is not None:
        axis.axhline(truth, color="grey", linestyle=":")
    axis.set(title=title, yscale="log")
    plain_ticks(axis, (300, 400, 600, 800), "y")


def main():
    parser = Parser(__doc__)
    parser.add_argument("--sizes", nargs="+", type=int, default=[500, 2000, 8000], quick=[100])
    parser.add_argument("--passes", type=int, default=20, quick=8)
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    real = [("ap", 1.0), ("kos", 0.2), ("kos", 1.0)]
    every = list(corpora(options.sizes, [] if options.quick else real))
    made, axes = figure(-(-len(every) // 3), 3)
    for axis, task in zip(axes.ravel(), every, strict=False):
        compare(*task, options.passes, options.runs, axis)
    for axis in axes[-1]:
        axis.set_xlabel("passes over the documents")
    for row in axes:
        row[0].set_ylabel("perplexity of held-out words")
    marks = axes[0, 0].get_legend_handles_labels()
    made.legend(*marks, fontsize=8, loc="outside lower center", ncols=len(FORMS))
    if options.output:
        save_figure(options.output, "baker_2019_lda", made)


if __name__ == "__main__":
    main()
