"""Long runs of NumPyro's NUTS under the regularised horseshoe: references for the tests.

    python examples/benchmarks/horseshoe_references.py [--draws 10000] [--quick]

Needs NumPyro, which the package does not. Prints the numbers of tests/shrinkage/horseshoe_nuts.py:
mean, standard deviation and effective sample size of each parameter of a linear and of a logistic
regression, whose columns and response have mean zero and standard deviation one. The slab is a
factor exp(-β²/2c²) without a normalising constant, as in `skbayes_sg.priors.Horseshoe`.
"""

import numpy as np
from _tables import Parser

N, COLUMNS, RELEVANT, SLAB = {"linear": 80, "logistic": 150}, 12, 2, 2.0
NOISE = {"linear": 1.0, "logistic": 2.0}
N_CHAINS = 4


def made(kind):
    """Standardised columns, and a response."""
    rng = np.random.default_rng(24)
    X = rng.normal(size=(N[kind], COLUMNS))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    eta = X[:, 0] - 0.8 * X[:, 1] + 0.2 * X[:, 2]
    if kind == "logistic":
        return X, (rng.logistic(size=len(X)) < eta).astype(float)
    y = eta + 0.7 * rng.normal(size=len(X))
    return X, (y - y.mean()) / y.std()


def model(kind, X, y):
    """β = z √v, 1/v = 1/(τλ)² + 1/c², with the factor √v/(τλ) that is left of the slab."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    tau_0 = RELEVANT / (COLUMNS - RELEVANT) * NOISE[kind] / np.sqrt(len(y))
    tau = numpyro.sample("tau", dist.HalfCauchy(tau_0))
    lam = numpyro.sample("lam", dist.HalfCauchy(jnp.ones(COLUMNS)))
    z = numpyro.sample("z", dist.Normal(jnp.zeros(COLUMNS), 1.0))
    v = 1.0 / (1.0 / jnp.square(tau * lam) + 1.0 / SLAB**2)
    numpyro.factor("slab", (0.5 * jnp.log(v) - jnp.log(tau * lam)).sum())
    beta = numpyro.deterministic("beta", z * jnp.sqrt(v))
    b = numpyro.sample("b", dist.Normal(0.0, 2.0))
    numpyro.deterministic("log_tau", jnp.log(tau))
    if kind == "logistic":
        numpyro.sample("y", dist.Bernoulli(logits=b + X @ beta), obs=y)
    else:
        sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(b + X @ beta, sigma), obs=y)


def reference(kind, n_draws):
    """Rows (mean, sd, ESS) of the coefficients, the intercept, log τ and, if there is one, σ."""
    import jax
    import numpyro
    from numpyro import infer
    from numpyro.diagnostics import effective_sample_size

    numpyro.enable_x64()
    kernel = infer.NUTS(model, target_accept_prob=0.99)
    options = {"num_warmup": 1000, "num_samples": n_draws, "num_chains": N_CHAINS}
    run = infer.MCMC(kernel, chain_method="sequential", progress_bar=False, **options)
    run.run(jax.random.PRNGKey(0), kind, *made(kind), extra_fields=("diverging",))
    found = run.get_samples(group_by_chain=True)
    print(f"# {kind}: {int(run.get_extra_fields()['diverging'].sum())} divergences")
    names = ["b", "log_tau"] + ["sigma"] * (kind == "linear")
    draws = np.concatenate([found["beta"], *(found[name][..., None] for name in names)], axis=2)
    flat = draws.reshape(-1, draws.shape[2])
    return np.stack([flat.mean(axis=0), flat.std(axis=0), effective_sample_size(draws)], axis=1)


def main():
    parser = Parser(__doc__)
    parser.add_argument("--draws", type=int, default=10_000, quick=200)
    options = parser.parse_args()
    try:
        import numpyro  # noqa: F401
    except ImportError:
        print("NumPyro is not installed")
        return
    for kind in N:
        print(f'    "{kind}": [')
        for mean, sd, ess in reference(kind, options.draws):
            print(f"        ({mean:.5f}, {sd:.5f}, {ess:.0f}),")
        print("    ],", flush=True)


if __name__ == "__main__":
    main()
