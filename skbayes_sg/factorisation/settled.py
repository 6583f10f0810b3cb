"""How long chains of Gibbs sampling run where `n_warmup` and `thin` are "auto".

From their random start chains first fit the ratings too closely: the noise falls within ten passes,
and then rises for some hundred, until factors that no rating needs have shrunk. Passes over few
ratings cost little. So a run whose draws `FactorPosterior.check` does not trust goes on: all passes
so far become its warm-up, and new draws are twice as far apart.
"""

from .chains import run
from .setup import seconds_of

__all__ = ["affordable_rounds", "run_settled"]

MOST_ROUNDS = 4  # most times that draws are made
MOST_SECONDS = 30.0  # predicted seconds up to which a run goes on


def affordable_rounds(request, problem):
    """How many times draws may be made: as often as all passes take `MOST_SECONDS`, or once."""
    n = 1
    while n < MOST_ROUNDS and request.is_open and _seconds(request, problem, n + 1) <= MOST_SECONDS:
        n += 1
    return n


def _seconds(request, problem, n_rounds):
    """Predicted seconds of so many rounds."""
    passes = request.n_warmup + request.thin * request.n_draws * (2**n_rounds - 1)
    return seconds_of(request, problem, passes)


def run_settled(setup, chains, n_rounds, is_settled, watch):
    """Run the warm-up of every chain and its draws, up to `n_rounds` times.

    Parameters
    ----------
    setup : skbayes_sg.factorisation.chains.FactorSetup
        Its `thin` and `n_warmup` become those of the last round.
    chains : list of skbayes_sg.factorisation.chains.FactorChain
    n_rounds : int
        See `affordable_rounds`.
    is_settled : callable
        Whether the draws of these chains can be trusted.
    watch : callable
        ``watch(done, share)`` is called with the number of draws that all chains have in this
        round, and the share of the run that is done: as a round may not be the last one, it ends
        in the middle of what was left. If it returns true, the run stops.

    Returns
    -------
    chains : list of skbayes_sg.factorisation.chains.FactorChain
    done : int
        Number of draws of each chain.
    """
    stopped = False
    for number in range(n_rounds):
        begin, is_last = 1.0 - 0.5**number, number == n_rounds - 1
        part = (1.0 - begin) * (1.0 if is_last else 0.5)

        def seen(done, begin=begin, part=part):
            nonlocal stopped
            stopped = watch(done, begin + part * done / setup.n_draws)
            return stopped

        chains, done = run(setup, chains, seen)
        if stopped or is_last or is_settled(chains):
            break
        _go_on(setup, chains)
    if not stopped:
        watch(done, 1.0)
    return chains, done


def _go_on(setup, chains):
    """Make all passes so far a warm-up, after which draws are twice as far apart."""
    setup.n_warmup, setup.thin = chains[0].passes, 2 * setup.thin
    for chain in chains:
        chain.n_warmup = setup.n_warmup
        chain.kept.forget()
