"""Random tables of many families: every fit is right, warned, refused by name, or a bug.

    python examples/benchmarks/gauntlet.py [--fits 200] [--seed 0] [--families plain,tiny] [--quick]

Each fit runs in a process of its own with a bound on its processor time, and is compared with a
posterior that shares no code with the package: see `_gauntlet/families.py` for the tables,
`density.py` and `references.py` for the posteriors, and `verdict.py` for the gates. A fit is

* right: within the gates, which are as wide as the Monte Carlo error allows;
* a false alarm: warned, although within the gates as they are, by chains that agree and enough
  effective draws, with noise, and without heavy tails;
* warned: outside of the gates, or without a reference, and the fit has warned;
* refused: an error of the package, or a `ValueError` of a check, that names the cause. Parameters
  are found invalid only where they are;
* a bug: anything else. A crash, no end, draws that are silently wrong by two references that
  agree with each other, also by one that looks where the draws lie, or that `check()` does not
  trust while the fit is silent.

Where no reference vouches for itself, draws are judged by where independent chains go from them,
and by identities that their scores must fulfil.

`--families later` are those of group effects, learned scales, mixtures, sources, networks and
likelihoods of users alone; `--families real` takes rows, columns and responses of well-known data
sets; `--families earlier` draws the tables anew on which earlier versions failed.

Prints the number of verdicts by family, and a line that repeats each bug.
"""

import sys
import time
from collections import Counter
from itertools import chain
from pathlib import Path

from _tables import Parser, save, show
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))
from _gauntlet.earlier import EARLIER
from _gauntlet.families import FAMILIES
from _gauntlet.later import LATER, about_draws, after_drift, posterior_of
from _gauntlet.real import REAL
from _gauntlet.tables import make
from _gauntlet.verdict import agree, alarm, as_reported, compare, identities, reported
from _gauntlet.worker import Worker, split

VERDICTS = ("right", "false alarm", "warned", "refused", "bug", "no reference")
QUICK = "tiny,near_separable,noise_priors"


def judged(case, outcome, warned, seed):
    """(verdict, what is wrong) of draws, by as many references as it takes."""
    found, (density, references) = [], posterior_of(case, seed)
    own = reported(outcome, density)
    references = chain(references, after_drift(density, outcome["draws"], seed))
    for reference in (as_reported(reference, own, density) for reference in references):
        comparison = compare(own, reference)
        if comparison.excess <= 1.0 and found and not warned:
            return "no reference", f"references disagree: {found[0][1]}; {comparison.text}"
        if comparison.excess <= 1.0 and reference.kind == "drift":
            break  # which may be slow: identities must hold as well
        if comparison.excess <= 1.0:
            verdict = alarm(comparison, own, case.y) if warned else "right"
            return verdict, comparison.text if warned else ""
        if warned:
            return "warned", ""
        if any(agree(own, reference, other) for other, _ in found):
            text = "; ".join([text for _, text in found] + [comparison.text])
            near = None if density is None else about_draws(density, outcome["draws"], seed)
            near = None if near is None else as_reported(near, own, density)
            if near is not None and compare(own, near).excess <= 1.0:
                return "right", f"by weights of its farthest draws; {text}"
            return "bug", text
        found.append((reference, comparison.text))
    if found:
        text = "; ".join(text for _, text in found)
        return "no reference", f"no two references that agree: {text}"
    if density is None:
        return ("warned" if warned else "no reference"), "by invariants alone"
    comparison = identities(outcome, density)
    if comparison.excess <= 1.0:
        return (alarm(comparison, own, case.y) if warned else "right"), comparison.text
    return ("warned" if warned else "bug"), comparison.text


def one_fit(worker, family, seed):
    """The verdict on a case, and all that is known of it."""
    case = make(family, seed)
    kind, content, said = worker.fit(family, seed, case.seconds)
    warned, cost, stray = split(said)
    row = {"family": family, "seed": seed, "case": str(case), "warned": warned, "stray": stray}
    row["seconds"] = content["seconds"] if kind == "done" else case.seconds
    row["sampler"] = content.get("sampler", "") if kind == "done" else ""
    if kind == "error":
        text = f"{content['text']} ({content['place']})"
        invalid = text.startswith("InvalidParameterError") and not case.unusable
        refused = content["refused"] and not invalid
        return row | {"verdict": "refused" if refused else "bug", "text": text}
    if kind != "done":
        told = kind == "no end" and cost
        return row | {"verdict": "warned" if told else "bug", "text": content}
    if case.unusable:
        return row | {"verdict": "bug", "text": f"accepted: {case.unusable}"}
    if content["broken"]:
        return row | {"verdict": "bug", "text": content["broken"]}
    if not content["trusted"] and not warned:
        first = " ".join(content["check"].splitlines()[:2])
        return row | {"verdict": "bug", "text": f"check() says, the fit does not: {first}"}
    if "draws" not in content:
        verdict = "warned" if warned else "right"
        return row | {"verdict": verdict, "text": "by invariants alone"}
    verdict, text = judged(case, content, warned, seed)
    return row | {"verdict": verdict, "text": text}


def all_fits(n, seed, families):
    """The rows of `n` fits, in turn of each family."""
    worker = Worker()
    for k in range(n):
        began = time.perf_counter()
        row = one_fit(worker, families[k % len(families)], seed + k // len(families))
        yield row | {"total": time.perf_counter() - began}
    worker.stop()


def line(row):
    text = f"{row['verdict']}: make({row['family']!r}, {row['seed']}).fit()  # {row['case']}"
    return f"{text}\n    {row['text']} {' '.join(row['warned'])}"


def table(rows):
    """Verdicts by family."""
    count = Counter((row["family"], row["verdict"]) for row in rows)
    found = []
    for family in dict.fromkeys(row["family"] for row in rows):
        own = {verdict: count[family, verdict] for verdict in VERDICTS}
        found.append({"family": family, "fits": sum(own.values())} | own)
    total = {key: sum(row[key] for row in found) for key in ("fits", *VERDICTS)}
    return [*found, {"family": "all"} | total]


def main():
    parser = Parser(__doc__)
    parser.add_argument("--fits", type=int, default=105, quick=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", default=",".join([*FAMILIES, *LATER]), quick=QUICK)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    families, rows = args.families.split(","), []
    for name, named in (("earlier", EARLIER), ("later", LATER), ("real", REAL)):
        families = list(named) if families == [name] else families
    unknown = set(families) - set(FAMILIES | EARLIER | LATER | REAL)
    if unknown:
        parser.error(f"unknown families: {', '.join(sorted(unknown))}")
    with threadpool_limits(1):  # of the references; fits run in a process of their own
        for row in all_fits(args.fits, args.seed, families):
            rows.append(row)
            if row["verdict"] in ("bug", "no reference", "false alarm") or args.verbose:
                print(line(row), flush=True)
    rows.sort(key=lambda row: families.index(row["family"]))
    print()
    show(table(rows))
    save(args.output, "gauntlet", rows)
    bugs = [row for row in rows if row["verdict"] == "bug"]
    print(f"\n{len(bugs)} bugs in {len(rows)} fits, seeds from {args.seed}")
    for row in bugs:
        print(line(row))
    for row in rows:
        for text in row["stray"]:
            fit = f"make({row['family']!r}, {row['seed']}).fit()"
            print(f"a warning that is not the package's, in {fit}: {text}")


if __name__ == "__main__":
    main()
