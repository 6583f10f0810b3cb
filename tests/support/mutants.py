"""Planted bugs, each of which a named test must find: ``python mutants.py [NAME ...]`` here.

Every mutant is a copy of the package with one piece of source replaced. Its test runs there on the
Python source of the kernels (nothing is compiled), and must fail; that it passes on the package as
it is, is checked first. The last line says "mutants killed k/k".
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PASSED, FAILED = 0, 1  # exit codes of pytest; all others mean that nothing was tested


@dataclass(frozen=True)
class Mutant:
    """`old`, which occurs once in `file`, becomes `new`; `test` is the cheapest that sees it."""

    name: str
    file: str
    old: str
    new: str
    test: str


LOO = "test_loo.py"
BATCHES = "test_partial_fit.py"
LAW_OF_SGLD = "test_stationary_laws.py::test_law_is_that_of_the_formula[0.5-None-sgld]"
LAW_OF_BAOAB = "test_stationary_laws.py::test_law_is_that_of_the_formula[0.5-None-baoab]"
COMBINE = "test_combine.py"
SHARDS = "test_sample.py::test_shards_together_are_the_posterior[logistic-normal]"
MEMORY = "test_memory_gradients.py"
THERMOSTATS = "test_thermostats.py"
UNBIASED = "test_gradient_estimators.py::test_chances_add_up_and_weighted_sums_are_unbiased"
PRIOR = "test_gradient_estimators.py::test_the_prior_is_never_rescaled[normal-minibatch-logistic]"
FULL = "test_gradient_estimators.py::test_all_rows_make_the_full_gradient"
ROWS = "test_index_samplers.py::test_every_position_has_the_law_of_a_row"
PAIRS = "test_index_samplers.py::test_all_pairs_of_rows_are_equally_likely_without_replacement"
IMPORTANCE = "test_importance.py"
OF_DRAWS = "test_warps_of_draws.py"
HEAVY = "test_row_space.py::test_a_column_that_exceeds_all_others_leaves_the_others"
TUNING = "test_tuning.py"
STOCHASTIC = "test_stochastic.py"
MEASURE = "test_measure.py"
CHOOSE = "test_choose.py"
CONFIRMATION = "test_confirmation.py"
COLLAPSE = "test_collapse.py"
SWEEPS = "test_horseshoe.py::test_sweeps_have_the_law_of_a_grid"
LEVELS = "test_multilevel_paths.py::test_coarse_paths_are_fine_paths_of_the_level_below"
SWEEP = "test_topics.py::test_a_gibbs_sweep_leaves_the_law_of_the_assignments"

ADD_PRIOR = "    prior_gradient(problem.prior, theta, g)\n"
SCALE_PRIOR = ADD_PRIOR + "    for j in range(g.shape[0]):\n        g[j] *= {}\n"
LAST_OF_ONE_PASS = "        rows_out[k] = order[k]\n"

EXACT_GROUPS = "test_linear_exact.py::test_the_law_of_the_scales_is_that_of_the_regression"
COLLAPSED = "test_collapsed.py"
MARGINAL = "test_marginal.py"
EFFECTS = f"{MARGINAL}::test_effects_are_drawn_from_their_law_given_the_parameters"

MUTANTS = [
    # -- anchors of some rows
    Mutant(
        "the noise of an anchor counted once", "gradients/_base.py",
        "return level * (1.0 + 2.0 * float(", "return level * (1.0 + 0.0 * float(",
        "test_tuning.py::test_noise_that_steps_share_by_the_variance_of_an_autoregression[5.0]",
    ),
    Mutant(
        "densities without the noise of the anchor", "densities/fit.py",
        "shares = own, gradient.shared_noise(N, n)", "shares = own, 0.0",
        "test_row_densities.py::test_noise_of_an_anchor_of_some_rows_counts_as_often_as_steps_share_it",
    ),
    Mutant(
        "networks without the noise of the anchor", "networks/minibatches.py",
        "(1.0 / self.batch_size + memory.shared)", "(1.0 / self.batch_size)",
        "test_network_laws.py::test_steps_and_inflation_count_the_rows_of_an_anchor",
    ),
    # -- moments of draws that are not kept
    Mutant(
        "halves of the planned batches", "posterior/moments.py",
        "np.flatnonzero(self._reached)", "np.arange(len(self.mass))",
        "test_keep.py::test_moments_of_a_run_that_was_ended_early[400]",
    ),
    # -- group effects
    Mutant(
        "the determinant of the effects forgotten", "groups/linear_exact.py",
        "[1] - 0.5 * log_det", "[1]", f"{EXACT_GROUPS}_on_one_hot_columns[flat intercept]",
    ),
    Mutant(
        "effects of scale one", "groups/marginal_kernels.py",
        "values_out[j, level] = log_tau - ", "values_out[j, level] = -",
        f"{MARGINAL}::test_the_potential_is_that_of_integrals[0.02-Poisson]",
    ),
    Mutant(
        "nodes of any width", "groups/marginal_kernels.py",
        "log_tau - math.log(width[level]) - _log_sum(own)", "log_tau - _log_sum(own)",
        f"{MARGINAL}::test_the_potential_is_that_of_integrals[0.02-Poisson]",
    ),
    Mutant(
        "effects anywhere in a cell", "groups/marginal_kernels.py",
        "math.exp(bound[cell] - _cubic(heights, cell, share))", "1.0",
        f"{EFFECTS}[wide_effects]",
    ),
    Mutant(
        "rules that end anywhere", "groups/marginal_kernels.py",
        "min(heights[0], heights[n - 1]) - lowest", "max(heights[0], heights[n - 1]) - lowest",
        f"{MARGINAL}::test_rules_that_end_too_early_or_are_too_coarse_are_seen",
    ),
    Mutant(
        "levels that all need the same rule", "groups/marginal.py",
        "for k in range(len(RULES)):", "for k in range(1):",
        f"{MARGINAL}::test_the_potential_is_that_of_integrals[5.0-Logistic]",
    ),
    Mutant(
        "fresh draws without their density", "importance/growing.py",
        "certified(-_values(potential, phi) - log_q)", "certified(-_values(potential, phi))",
        "test_growing.py::test_a_bent_ridge[right]",
    ),
    Mutant(
        "components that all have the same share", "importance/growing.py",
        "logsumexp(self.log_parts(b) + log_pi, axis=0)", "logsumexp(self.log_parts(b), axis=0)",
        "test_growing.py::test_a_bent_ridge[right]",
    ),
    Mutant(
        "mixtures of any number of parameters", "recipe/independent.py",
        "target.n_parameters <= MOST_GROWN", "True",
        "test_independent.py::"
        "test_mixtures_of_few_parameters_grow_before_chains[2-0.2-auto-False]",
    ),
    Mutant(
        "rules that reach no other peak", "groups/marginal.py",
        "needed += np.abs(t - S @ reference.theta[:n]) / np.sqrt(P)", "pass",
        f"{MARGINAL}::test_rules_reach_zero_where_all_rows_of_a_level_are_far_from_it",
    ),
    Mutant(
        "peaks that are compared with themselves", "groups/marginal.py",
        "rules = [(2 * n, 0.5 * h, a)", "rules = [(n, h, a)",
        f"{MARGINAL}::test_peaks_that_no_rule_resolves_are_refused",
    ),
    Mutant(
        "products of rows of different weights", "models/robust.py",
        " and weight == facts[last, FACT_WEIGHT]:", ":",
        f"{MARGINAL}::test_losses_at_shifts_are_those_of_the_model[usual-uneven-Robust]",
    ),
    Mutant(
        "noise that contains the effects at the start", "groups/start.py",
        "if noise > 0.0 and variance > noise**2:", "if False:",
        "test_start.py::test_noise_is_told_from_effects_that_are_much_larger[0.7]",
    ),
    Mutant(
        "impossible rows that are no number", "custom/law.py",
        "np.inf if np.isnan(loss) else loss", "loss",
        f"{MARGINAL}::test_losses_at_shifts_of_a_likelihood_of_ones_own",
    ),
    Mutant(
        "rows of any weight in a product", "models/logistic.py",
        "if uneven > 0.0 or top", "if top",
        f"{MARGINAL}::test_losses_at_shifts_are_those_of_the_model[usual-uneven-Logistic]",
    ),
    Mutant(
        "products without a bound", "models/logistic.py",
        "int(LARGEST_LOG / (TOGETHER", "int(1e9 / (TOGETHER",
        f"{MARGINAL}::test_products_of_many_large_factors_do_not_overflow",
    ),
    Mutant(
        "proposals whose width depends on the scale for nothing", "groups/independent.py",
        " + self.log_density[cell] - log_r.sum(axis=1)", " + self.log_density[cell]",
        f"{MARGINAL}::test_draws_are_those_of_quadrature[1.5-12-Poisson]",
    ),
    Mutant(
        "weights that leave out the law of the scale", "groups/independent.py",
        "log_q + self.log_density[cell] - ", "log_q - ",
        f"{MARGINAL}::test_draws_are_those_of_quadrature[1.5-12-Poisson]",
    ),
    Mutant(
        "effects that were proposed for other draws", "groups/independent.py",
        "out[own] = some[:, at]", "out[own] = some[:, np.sort(at, axis=None).reshape(at.shape)]",
        f"{MARGINAL}::test_effects_are_those_of_the_draws_they_were_proposed_with",
    ),
    Mutant(
        "effects not shrunk", "groups/linear_exact.py",
        "u += (1.0 - 1.0 / growth) * residual", "u += residual",
        "test_linear_exact.py::test_coefficients_and_effects_given_the_scales_are_those_of_one_hot_columns"
        "[flat intercept]",
    ),
    Mutant(
        "effects as wide as their scale", "groups/linear_exact.py",
        "* (tau / np.sqrt(growth))", "* (tau + 0.0 * growth)",
        "test_linear_exact.py::test_coefficients_and_effects_given_the_scales_are_those_of_one_hot_columns"
        "[flat intercept]",
    ),
    Mutant(
        "the volume of collapsed coordinates forgotten", "groups/algebra.py",
        "    return 0.5 * total\n", "    return 0.0 * total\n",
        f"{COLLAPSED}::test_the_potential_is_that_of_the_joint_law_and_of_the_volume"
        "[first-Logistic]",
    ),
    Mutant(
        "the scale moves no effect", "groups/algebra.py",
        " - b * (2.0 * m[level, 0])", " - b * m[level, 0]",
        f"{COLLAPSED}::test_the_gradient_is_that_of_differences[first-Logistic]",
    ),
    Mutant(
        "the whole diagonal of a triangle that is half of it", "groups/algebra.py",
        "X[i, i] = 0.5 - 0.5 * zeta[level, i] * a[i]", "X[i, i] = 0.5 - zeta[level, i] * a[i]",
        f"{COLLAPSED}::test_the_gradient_is_that_of_differences[a slope-Logistic]",
    ),
    Mutant(
        "partial correlations that leave later ones alone", "groups/covariance.py",
        "                change -= T[i, k] * C[i, k] * z\n", "                change -= 0.0\n",
        f"{COLLAPSED}::test_the_gradient_is_that_of_differences[two slopes-Logistic]",
    ),
    Mutant(
        "correlations without their law", "groups/covariance.py",
        "prior_value(scales, psi[:q]) + correlation_potential(psi, q)",
        "prior_value(scales, psi[:q])",
        f"{COLLAPSED}::test_the_gradient_is_that_of_differences[two slopes-Logistic]",
    ),
    Mutant(
        "a first kick twice as long", "groups/split_hmc.py",
        "        _kick(coordinates, 0.5 * epsilon, phi, at.g, free, p)\n        if not",
        "        _kick(coordinates, epsilon, phi, at.g, free, p)\n        if not",
        f"{COLLAPSED}::test_trajectories_are_reversible_and_keep_the_energy",
    ),
    Mutant(
        "kicks of effects by the whole gradient", "groups/split_hmc.py",
        "p[i] -= half * (pulled[i] - phi[i])", "p[i] -= half * pulled[i]",
        f"{COLLAPSED}::test_trajectories_are_reversible_and_keep_the_energy",
    ),
    Mutant(
        "effects that pull where they were before the visit", "groups/split_hmc.py",
        "        at.G[:] = 0.0\n        add_by_level(rows.codes, rows.Z, residuals_out, at.G)\n",
        "",
        "test_group_chains.py::test_sweeps_that_are_made_at_once_are_those_made_one_by_one",
    ),
    Mutant(
        "effects of the other columns forgotten", "groups/kernels.py",
        "eta[k, 0] = line[k] + others[k] + _effect", "eta[k, 0] = line[k] + _effect",
        f"{COLLAPSED}::test_the_potential_is_that_of_the_joint_law_and_of_the_volume"
        "[first-Logistic]",
    ),
    Mutant(
        "proposals of effects without their density", "groups/algebra.py",
        "        gain -= _log_density(R, omega, off, log_R, log_C, share, wider, broad)\n",
        "        gain = 0.0\n", "test_group_chains.py::test_one_step_of_effects_leaves_their_law",
    ),
    Mutant(
        "crossed effects drawn with the scale of their prior", "groups/linear_crossed.py",
        "u = math.exp(log_tau) / np.sqrt(growth) * rng", "u = math.exp(log_tau) * rng",
        "test_group_chains.py::test_gibbs_sampling_of_crossed_factors_has_the_law_of_other_chains"
        "[noise unknown]",
    ),
    Mutant(
        "shifts of one factor that the other does not make up for", "groups/translations.py",
        "u[f][:, e] += sign * delta[own]", "u[f][:, e] += delta[own]",
        "test_translations.py::test_rows_do_not_see_them_and_priors_are_their_law",
    ),
    Mutant(
        "scales that walk with their shifts at their means", "groups/translation_kernels.py",
        "pull_out[c] / P - math.log(P)", "pull_out[c] / P",
        "test_translations.py::test_scales_walk_in_the_law_with_all_shifts_integrated_out",
    ),
    Mutant(
        "effects that are not judged", "groups/chains.py",
        "    if ess < ESS_SHARE * total and not told:", "    if ess < 0.0:",
        "test_translations.py::test_effects_are_judged_like_parameters[0.97-True]",
    ),
    Mutant(
        "a prior that pulls at what is added to the last coefficients", "groups/linear_crossed.py",
        "rows.drift - rows.precision @ self.b", "rows.drift",
        "test_crossed_kernels.py::test_draws_do_not_depend_on_the_last_coefficients",
    ),
    Mutant(
        "the noise without its normalising constant", "groups/crossed_kernels.py",
        "-sums.total * log_sigma - 0.5", "-0.5",
        "test_crossed_kernels.py::test_coefficients_and_effects_are_integrated_out",
    ),
    Mutant(
        "slopes whose rows lose none of their information", "groups/slope_kernels.py",
        "M[i, j] += B[k, i] * B[k, j]", "M[i, j] += sums.S[level, k, i] * sums.S[level, k, j]",
        "test_linear_slopes.py::test_the_law_is_that_of_dense_rows",
    ),
    Mutant(
        "effects of slopes without those of the coefficients", "groups/slope_kernels.py",
        "residual -= sums.S[level, i, j] * beta[j]", "residual -= 0.0 * beta[j]",
        "test_linear_slopes.py::test_coefficients_and_effects_are_those_of_dense_rows[theta0]",
    ),
    Mutant(
        "rows that leave nothing within their level", "groups/slope_kernels.py",
        "within_out[i, j] += rows[n, i] * rows[n, j]", "within_out[i, j] += 0.0 * rows[n, j]",
        "test_linear_slopes.py::test_the_law_is_that_of_dense_rows",
    ),
    Mutant(
        "components of a mixture without their shares", "groups/student_mixtures.py",
        "return np.log(self.share)[:, None] + log_t, square", "return log_t, square",
        "test_student_mixtures.py::test_the_density_is_that_of_its_laws",
    ),
    Mutant(
        "centres of Student's laws that far draws pull at in full", "groups/student_mixtures.py",
        "rho * (DF + n) / (DF + square)", "rho * 1.0",
        "test_student_mixtures.py::test_a_mixture_that_is_the_law_stays_where_it_is",
    ),
    Mutant(
        "independent proposals with their own weights forgotten", "groups/linear_slopes.py",
        "log_w[k] - log_w[now]", "0.0",
        "test_linear_slopes.py::test_draws_have_the_law",
    ),
    Mutant(
        "unknown effects without variance", "groups/rows.py",
        "eta = eta + root[:, :, None] * x", "eta = eta + 0.0 * root[:, :, None] * x",
        "test_group_effects.py::test_unknown_levels_of_linear_regression_add_the_square_of_their_scale",
    ),
    # -- steps
    Mutant(
        "noise sqrt(2h)", "dynamics/sgld.py",
        "math.sqrt(h) * noise[j]", "math.sqrt(2.0 * h) * noise[j]", LAW_OF_SGLD,
    ),
    Mutant(
        "noise h", "dynamics/sgld.py", "math.sqrt(h) * noise[j]", "h * noise[j]", LAW_OF_SGLD
    ),
    Mutant(
        "drift h", "dynamics/sgld.py",
        "-0.5 * h * gradient[j]", "-h * gradient[j]", LAW_OF_SGLD,
    ),
    Mutant(
        "noise of the Ornstein-Uhlenbeck step", "dynamics/baoab.py",
        "math.sqrt(1.0 - c * c)", "(1.0 - c)", LAW_OF_BAOAB,
    ),
    Mutant(
        "friction without the time step", "dynamics/baoab.py",
        "math.exp(-parameters[0] * delta)", "math.exp(-parameters[0])",
        "test_stationary_laws.py::test_relaxation_steps[1.0-baoab]",
    ),
    Mutant(
        "noise of the last step forgotten", "dynamics/leimkuhler_matthews.py",
        "        last[j] = noise[j]\n", "",
        "test_stationary_laws.py::test_law_is_that_of_the_formula[0.5-None-leimkuhler_matthews]",
    ),
    Mutant(
        "injected noise without the estimate", "dynamics/sghmc.py",
        "math.sqrt(2.0 * (C - B) * epsilon)", "math.sqrt(2.0 * C * epsilon)",
        f"{THERMOSTATS}::test_noise_estimate_takes_off_isotropic_noise_exactly[1.0]",
    ),
    Mutant(
        "friction of a whole unit of time", "dynamics/sghmc.py",
        "1.0 - epsilon * C, epsilon", "1.0 - C, epsilon",
        "test_stationary_laws.py::test_relaxation_steps[1.0-sghmc-1]",
    ),
    Mutant(
        "momentum refreshed with variance 1", "dynamics/sghmc.py",
        "math.sqrt(max(0.0, 1.0 / q - 0.5 * epsilon * B / (q * q)))", "1.0",
        f"{THERMOSTATS}::test_refreshing_leaves_the_law[1.0-1.0-0.0]",
    ),
    Mutant(
        "momentum refreshed and kicked whole", "dynamics/sghmc.py",
        "keep, kick = 0.0, 0.5 * epsilon / q", "keep = 0.0",
        f"{THERMOSTATS}::test_refreshing_leaves_the_law[1.0-1.0-0.0]",
    ),
    Mutant(
        "momentum refreshed once", "dynamics/sghmc.py",
        "            state_out[2, 0] = 0.0\n", "            state_out[2, 0] = -1e300\n",
        f"{THERMOSTATS}::test_momentum_is_refreshed_every_third_step",
    ),
    Mutant(
        "sign of the thermostat", "dynamics/sgnht.py",
        "xi[j] += time *", "xi[j] -= time *",
        f"{THERMOSTATS}::test_law_of_the_thermostat_to_third_order_of_a_step[1.0-1.0-1.0]",
    ),
    Mutant(
        "thermostat that moves a whole step", "dynamics/sgnht.py",
        "        _thermostat(v, xi, 0.5 * delta * rate, mean)\n"
        "        _ornstein", "        _thermostat(v, xi, delta * rate, mean)\n        _ornstein",
        f"{THERMOSTATS}::test_mean_square_velocity_is_what_has_moved_the_thermostat[0.7-scalar]",
    ),
    Mutant(
        "noise balanced to the friction of the thermostat", "dynamics/sgnht.py",
        "2.0 * gamma * delta * share", "2.0 * xi[j] * delta * share",
        f"{THERMOSTATS}::test_isotropic_noise_is_absorbed[1.0-1.0]",
    ),
    Mutant(
        "sum of squares for their mean", "dynamics/sgnht.py",
        "v[j] * v[j] / v.shape[0]", "v[j] * v[j]",
        f"{THERMOSTATS}::test_mean_square_velocity_is_what_has_moved_the_thermostat[0.7-scalar]",
    ),
    # -- estimates
    Mutant(
        "no N/n", "subsampling/uniform.py",
        "coefficients_out[k] = N / n", "coefficients_out[k] = 1.0", f"{UNBIASED}[uniform-2]",
    ),
    Mutant(
        "N/(n+1)", "subsampling/uniform.py",
        "coefficients_out[k] = N / n", "coefficients_out[k] = N / (n + 1)",
        f"{UNBIASED}[uniform-2]",
    ),
    Mutant(
        "prior times N/n", "kernels/gradient.py",
        ADD_PRIOR, SCALE_PRIOR.format("problem.data.facts.shape[0] / n"), PRIOR,
    ),
    Mutant("prior dropped", "kernels/gradient.py", ADD_PRIOR, "", PRIOR),
    Mutant("prior over n", "kernels/gradient.py", ADD_PRIOR, SCALE_PRIOR.format("1.0 / n"), PRIOR),
    Mutant(
        "interpolation leaves its rows out", "gradients/taylor.py",
        "share * terms[k, c] + (1.0 - share) * extra[k, c]", "terms[k, c]",
        "test_taylor_share.py::test_a_batch_of_many_blocks",
    ),
    Mutant(
        "Taylor's curvature at the wrong point", "gradients/taylor.py",
        "            eta[k, c] = centre\n", "", f"{FULL}[near-hessian-taylor-logistic]",
    ),
    Mutant(
        "control variate of the wrong row", "gradients/control_variate.py",
        "facts[rows[start + k]", "facts[rows[start]",
        f"{FULL}[near-hessian-control_variate-logistic]",
    ),
    Mutant(
        "accumulation in float32", "kernels/rows.py",
        "s0 += x0[j] * part[j]",
        "s0 = float(__import__('numpy').float32(s0 + x0[j] * part[j]))",
        "test_models.py::test_storage_makes_no_difference[True-float64-logistic]",
    ),
    # -- gradients that remember
    Mutant(
        "table written before it is used", "gradients/saga.py",
        "                memory.batch[k, c] = terms[k - start, c]\n",
        "                memory.batch[k, c] = memory.table[i, c] = terms[k - start, c]\n",
        f"{MEMORY}::test_a_table_that_is_written_before_it_is_used_is_biased[2-logistic]",
    ),
    Mutant(
        "row counted at every draw", "gradients/saga.py",
        "            if not known:\n                memory.counts[SEEN] += 1\n",
        "            memory.counts[SEEN] += 1\n",
        f"{MEMORY}::test_a_row_that_is_drawn_twice_changes_once",
    ),
    Mutant(
        "anchor never refreshed", "gradients/svrg.py",
        "    memory.counts[LEFT] = memory.counts[PERIOD]\n",
        "    memory.counts[LEFT] = 1 << 60\n",
        f"{MEMORY}::test_the_anchor_is_refreshed_every_so_many_steps[4-4]",
    ),
    Mutant(
        "anchor of some rows with coefficient 1", "kernels/layout.py",
        "np.full(n_anchor, N / n_anchor) if n_anchor", "np.ones(n_anchor) if n_anchor",
        f"{MEMORY}::test_anchors_of_some_rows[uniform-2-1-logistic]",
    ),
    Mutant(
        "anchors of twins repeated", "engine/run.py",
        "._replace(rng=streams.child(memory.rng))", "",
        f"{MEMORY}::test_twins_of_coupled_chains_go_on_with_other_anchors[vrsg]",
    ),
    # -- rows
    Mutant(
        "adaptive batches with the coefficient of the batch size", "subsampling/adaptive.py",
        "        coefficients_out[k] = N / n\n",
        "        coefficients_out[k] = N / subsample.batch_size\n",
        "test_adaptive.py::test_unbiased_at_every_position[2-adaptive]",
    ),
    Mutant(
        "adaptive chances with the coefficient of the batch size", "subsampling/adaptive.py",
        "share * subsample.chances", "subsample.chances",
        "test_adaptive.py::test_unbiased_at_every_position[2-adaptive_preferential]",
    ),
    Mutant(
        "last row never sampled", "subsampling/uniform.py",
        "int(rng.random() * N)", "int(rng.random() * (N - 1))", f"{ROWS}[1-6-uniform]",
    ),
    Mutant(
        "with for without replacement", "subsampling/uniform_without_replacement.py",
        LAST_OF_ONE_PASS, "        rows_out[k] = int(rng.random() * N)\n", PAIRS,
    ),
    Mutant(
        "fixed contiguous batches", "subsampling/uniform_without_replacement.py",
        LAST_OF_ONE_PASS, "        rows_out[k] = order[0] // n * n + k\n", PAIRS,
    ),
    Mutant(
        "threshold of the alias table", "subsampling/preferential.py",
        "u - i >= subsample.chances", "u - i <= subsample.chances", f"{ROWS}[1-6-preferential]",
    ),
    # -- chains
    Mutant(
        "random numbers reused across chains", "_base/streams.py",
        "spawn_key=(number,)", "spawn_key=(0,)",
        "test_degeneracy.py::test_streams_of_random_numbers_are_all_different",
    ),
    Mutant(
        "first draw of each thinning kept", "engine/chain.py",
        "(done + t + 1) % thin == 0", "(done + t + thin) % thin == 0",
        "test_degeneracy.py::test_thinned_draws_are_every_third_draw[sgld]",
    ),
    Mutant(
        "coarse chains on other noise", "engine/run.py",
        '"rng_noise": copy.deepcopy(chain.rng_noise)',
        '"rng_noise": streams.child(chain.rng_noise)',
        "test_stationary_laws.py::test_coupled_chains_share_their_noise[baoab]",
    ),
    Mutant(
        "acceptance without kinetic energy", "engine/metropolis.py",
        "record[ENERGY] - (proposed + kinetic_energy(state[MOMENTUM]))",
        "record[POTENTIAL] - proposed",
        "test_stationary_laws.py::test_mala_is_one_leapfrog_step[none]",
    ),
    Mutant(
        "intercepts that do not pull on their coefficients", "kernels/gradient.py",
        "g[c * d + j] -= slopes[c, j] * g[K * d + c]", "g[c * d + j] -= 0.0",
        "test_sheared.py::test_kernels_use_the_same_map[logistic-float64]",
    ),
    # -- regression
    Mutant(
        "log σ left out of the likelihood", "models/linear.py",
        "terms_out[k - start, 1] = 1.0 - z * z", "terms_out[k - start, 1] = -z * z",
        "test_models.py::test_row_kernels_against_formulas[linear]",
    ),
    Mutant(
        "prior of σ without its Jacobian", "priors/half_normal.py",
        "total + (0.5 * z * z - s)", "total + 0.5 * z * z",
        "test_positive_priors.py::test_law_with_its_jacobian[half_normal]",
    ),
    Mutant(
        "noise of the coefficients in other axes", "recipe/closed_form.py",
        "noise @ self.V / np.sqrt(p)", "noise @ self.V / p",
        "test_closed_form.py::test_draws_have_these_laws",
    ),
    Mutant(
        "evidence without its determinant", "recipe/closed_form.py",
        "log_det = np.log(p).sum(axis=-1)", "log_det = 0.0 * np.log(p).sum(axis=-1)",
        "test_closed_form.py::test_coefficients_given_the_noise[0.5-normal]",
    ),
    Mutant(
        "rows that flat coefficients fit counted as noise", "recipe/scale_mixture.py",
        "target.total_weight - m", "target.total_weight - self.rows.Q.shape[1]",
        "test_scale_mixture.py::test_given_variances_the_law_is_that_of_normal_priors[intercept0]",
    ),
    Mutant(
        "flat coefficients without their noise", "recipe/scale_mixture.py",
        "drift[..., None]) + noise[..., None]", "drift[..., None])",
        "test_scale_mixture.py::test_coefficients_given_variances_and_noise",
    ),
    Mutant(
        "variances of half a degree of freedom less", "priors/scale_mixtures.py",
        "0.5 * (nu + 1.0) * weight", "0.5 * nu * weight",
        "test_scale_mixture.py::test_variances_given_coefficients[0.05-student_t]",
    ),
    Mutant(
        "rows of half their precision", "priors/scale_mixtures.py",
        "2.0 / (nu + squares)", "1.0 / (nu + squares)",
        "test_scale_mixture.py::test_precisions_given_residuals",
    ),
    Mutant(
        "outliers no farther than so", "recipe/scale_mixture.py",
        "LEAST_OF_ROWS = 1e-100", "LEAST_OF_ROWS = 1e-8",
        "test_scale_mixture.py::test_precisions_given_residuals",
    ),
    Mutant(
        "flat coefficients in the marginal law", "kernels/scale_mixture.py",
        "b[i] -= along * U[k, i]", "b[i] -= 0.0 * U[k, i]",
        "test_scale_mixture.py::test_given_variances_the_law_is_that_of_normal_priors[intercept0]",
    ),
    Mutant(
        "degrees of freedom that move precisions without their volume", "recipe/scale_mixture.py",
        "- gammaln(k) + np.log(s)", "- gammaln(k)",
        "test_scale_mixture.py::test_degrees_of_freedom_move_with_the_precisions_of_rows",
    ),
    Mutant(
        "degrees of freedom without their prior", "kernels/scale_mixture.py",
        "return total - prior_value(prior, log_nu)", "return total",
        "test_scale_mixture.py::test_degrees_of_freedom_given_residuals",
    ),
    Mutant(
        "Gibbs sampling for other likelihoods", "recipe/scale_mixture.py",
        "isinstance(target.model, Linear) and ", "",
        "test_scale_mixture.py::test_where_there_are_few_rows",
    ),
    Mutant(
        "predictive standard deviation without the noise", "models/predictive.py",
        "return np.stack([epistemic, weighting.mean(aleatoric, weights, axis=1)])",
        "return np.stack([epistemic, 0.0 * weighting.mean(aleatoric, weights, axis=1)])",
        "test_regressors.py::test_predictions_by_hand[poisson]",
    ),
    Mutant(
        "class probabilities of the last block of draws alone", "models/probabilities.py",
        "out[i, k] += _product", "out[i, k] = _product",
        "test_probabilities.py::test_several_classes[1.0-3]",
    ),
    Mutant(
        "nodes without the skewness of their cell", "kernels/mixture_nodes.py",
        "half = 0.5 * third /", "half = 0.0 * third /",
        "test_mixture_quantiles.py::test_nodes_have_the_moments_of_the_draws[skew-1.0]",
    ),
    Mutant(
        "cells that are not emptied for the next row", "kernels/mixture_nodes.py",
        "            cells[c, p] = 0.0\n", "            pass\n",
        "test_mixture_quantiles.py::test_nodes_have_the_moments_of_the_draws[skew-1.0]",
    ),
    Mutant(
        "one table of the noise for all draws", "models/mixture_quantiles.py",
        "return group.ravel()", "return 0 * group.ravel()",
        "test_mixture_quantiles.py::test_noise_that_depends_on_the_mode[3.0]",
    ),
    Mutant(
        "quantiles without weights", "models/mixture_quantiles.py",
        "own = weights[order] / weights.sum()", "own = np.full(len(order), 1.0 / len(order))",
        "test_mixture_quantiles.py::test_draws_without_weight_do_not_count",
    ),
    Mutant(
        "a count whose exposure is one", "models/poisson.py",
        "total, exposure = 0.0, facts.shape[1] - 1", "total, exposure = 0.0, FACT_WEIGHT",
        "test_counts.py::test_exposures_are_weights_of_rates_in_the_likelihood",
    ),
    Mutant(
        "counts that bend away together as the dispersion falls", "importance/fit.py",
        "found.correct_along(section.axis, section.places, section.values, section.slopes)", "pass",
        "test_negative_binomial.py::test_few_of_many_counts_are_exact_in_the_weights[20]",
    ),
    Mutant(
        "a dispersion without its tail towards zero", "importance/fit.py",
        "if model.has_edge and size > SURE", "if False",
        "test_negative_binomial.py::test_intercept_and_dispersion_with_exposures[auto-few events]",
    ),
    Mutant(
        "large counts without Stirling's remainder", "models/negative_binomial.py",
        "(_rest(x) - _rest(phi))", "0.0",
        "test_negative_binomial.py::test_kernels_against_sums[200.0--5.0]",
    ),
    Mutant(
        "a count's dispersion left out of its quantiles", "models/mixture_quantiles.py",
        "total += masses[m] * cdf(k, nodes[m], dispersions[g])",
        "total += masses[m] * cdf(k, nodes[m], 0.5 * dispersions[g])",
        "test_mixture_quantiles.py::test_stated_error_for_overdispersed_counts[0.5-0.2-0.05-50.0]",
    ),
    Mutant(
        "identities of scores at an edge", "posterior/posterior.py",
        "if self._edges and", "if False and",
        "test_scores.py::test_a_density_may_be_positive_at_an_edge",
    ),
    Mutant(
        "a p-value of half the tail", "metrics/predictive_check.py",
        "share = (above + 0.5) / (len(replicated) + 1)", "share = 0.5 * above / len(replicated)",
        "test_predictive_check.py::test_p_values_by_hand",
    ),
    Mutant(
        "predictions for one unit of exposure", "groups/rows.py",
        "eta += self.log_exposure[rows, None, None]", "eta += 0.0",
        "test_counts.py::test_predictions_are_of_counts_with_their_exposures[BayesianPoissonRegressor]",
    ),
    Mutant(
        "a count's distribution function to first order", "models/poisson.py",
        "(c_0 + c_1 / a)", "c_0",
        "test_mixture_quantiles.py::test_distribution_function_of_counts[31]",
    ),
    Mutant(
        "quantiles of counts one too high", "models/mixture_quantiles.py",
        "COUNT_STEP * high), 1.0) < high:", "COUNT_STEP * high), 1.0) < high - 1.0:",
        "test_mixture_quantiles.py::test_single_counts_are_exact",
    ),
    # -- weights
    Mutant(
        "weights ignored in the mean", "_base/weights.py",
        "np.average(x, axis=axis, weights=weights)", "x.mean(axis=axis)",
        "test_weights.py::test_moments_are_those_of_the_formulas",
    ),
    Mutant(
        "weights ignored by predictions", "estimators/_at_all_draws.py",
        "return self.posterior_.pooled_weights", "return None",
        "test_weights.py::test_predictions_are_weighted[2]",
    ),
    Mutant(
        "weights of the steps after a draw", "schedules.py",
        "np.arange(-thin, 0)", "np.arange(0, thin)",
        "test_weights.py::test_weighted_second_moment_has_the_law_of_the_recursion",
    ),
    Mutant(
        "weights of the draws that were thinned away", "recipe/final_run.py",
        "[ends[1::2], later]", "[ends[::2], later]",
        "test_weights.py::test_thinning_again_keeps_the_weights_of_what_is_kept[40]",
    ),
    # -- subposteriors
    Mutant(
        "full prior on every shard", "shards/sample.py",
        "powered(target.prior, 1.0 / self.n_shards)", "target.prior", SHARDS,
    ),
    Mutant(
        "powers that forget the priors of positive parameters", "priors/_base.py",
        "rows[:, POWER] *= power", "pass",
        "test_sample.py::test_a_power_of_a_prior_is_that[student_t]",
    ),
    Mutant(
        "random numbers reused across shards", "_base/streams.py",
        "spawn_key=(SHARD, shard)", "spawn_key=(SHARD,)",
        "test_sample.py::test_every_shard_has_random_numbers_of_its_own",
    ),
    Mutant(
        "rows on a cut in one shard only", "shards/sample.py",
        "np.minimum(ends[own], high) - np.maximum(starts[own], low)", "weight[own]", SHARDS,
    ),
    Mutant(
        "equal rows in one shard", "shards/sample.py",
        "np.searchsorted(ends, edges) % n_shards", "np.searchsorted(ends, edges)",
        "test_sample.py::test_every_shard_has_its_share_of_repeated_rows[four levels-4]",
    ),
    Mutant(
        "unweighted average of shards", "combine/consensus.py",
        "    return inverses(moments(shards)[1])\n",
        "    return np.stack([np.eye(shards[0].shape[1])] * len(shards))\n",
        f"{COMBINE}::test_consensus_is_exact_for_gaussian_shards[False]",
    ),
    Mutant(
        "kernels of the product as wide as those of a shard", "combine/kde_product.py",
        "P = S / (h * h) + mixture", "P = 1.0 / (h * h) + mixture",
        f"{COMBINE}::test_density_of_all_64_components_is_the_product[False-0.3]",
    ),
    Mutant(
        "weights of the semiparametric product without its shards", "combine/kde_product.py",
        "total = mixture.own[old] - mixture.own[new]", "total = 0.0",
        f"{COMBINE}::test_a_sweep_leaves_the_weights[True]",
    ),
    Mutant(
        "Gaussian product without the kernels' variance", "combine/kde_product.py",
        "** 2 * P / (1.0 + P * variance)", "** 2 * P",
        f"{COMBINE}::test_a_sweep_leaves_the_weights[True]",
    ),
    Mutant(
        "pairs kept by half the distance", "combine/weierstrass.py",
        "np.exp(-0.5 * distances(pair, t1, t2) / h**2)",
        "np.exp(-0.25 * distances(pair, t1, t2) / h**2)",
        f"{COMBINE}::test_the_sampler_keeps_pairs_with_their_probability",
    ),
    # -- topics
    Mutant(
        "token counted in its own document", "topics/collapsed_gibbs.py",
        "(n_dk[old] - 1.0 + alpha[old])", "(n_dk[old] + alpha[old])", f"{SWEEP}[whole]",
    ),
    Mutant(
        "prior of the words in the wrong denominator", "topics/collapsed_gibbs.py",
        "mass, q_sum = n_k.shape[0], counts.shape[0] * beta, q.sum()",
        "mass, q_sum = n_k.shape[0], beta, q.sum()", f"{SWEEP}[whole]",
    ),
    Mutant(
        "document keeps a token that moved", "topics/collapsed_gibbs.py",
        "            n_dk[old] -= 1.0\n", "",
        "test_topics.py::test_documents_are_resampled_as_their_tokens_one_by_one",
    ),
    Mutant(
        "smooth counts with the token's own topic", "topics/smoothing.py",
        "            p[own] = alone\n", "",
        "test_topics.py::test_smooth_counts_are_the_enumerated_expectations",
    ),
    Mutant(
        "weight of a token left out", "topics/weighted_gibbs.py",
        "+ _log_rising(counts[k] + beta, weight)", "+ _log_rising(counts[k] + beta, 1.0)",
        f"{SWEEP}[weighted]",
    ),
    Mutant(
        "left to right without new topics for earlier tokens", "topics/fold_in.py",
        "                for i in range(n):\n", "                for i in range(0):\n",
        "test_topics.py::test_left_to_right_forgets_where_it_began",
    ),
    Mutant(
        "perplexity of the mean of logarithms", "topics/held_out.py",
        "    return p / len(states)\n", "    return p\n",
        "test_topics.py::test_perplexity_is_its_formula",
    ),
    Mutant(
        "exact step without its noise", "topics/cir.py",
        "share * rng.standard_gamma(a + jumps)", "share * (a + jumps)",
        "test_topics.py::test_moments_of_the_exact_step",
    ),
    Mutant(
        "minibatch of topics not scaled", "topics/stochastic_chains.py",
        "        return scale * change\n", "        return change\n",
        "test_topics.py::test_minibatches_stand_for_all_documents",
    ),
    Mutant(
        "words that wait do not move", "topics/stochastic_chains.py",
        "times, a = state.clock - state.touched[words], beta",
        "times, a = 0.0 * state.touched[words], beta",
        "test_topics.py::test_waiting_words_are_where_a_dense_recursion_has_them",
    ),
    Mutant(
        "topics of batches drawn without the masses of the topics", "topics/expectation.py",
        "odds[k] /= own[k]", "odds[k] /= 1.0",
        "test_topics.py::test_renewal_leaves_the_law_of_the_assignments",
    ),
    Mutant(
        "prior of the topics forgotten by batches", "topics/stochastic_chains.py",
        ", beta + state.base[words]\n", ", state.base[words] + 1e-9\n",
        "test_topics.py::test_saga_with_exact_steps_has_the_law_of_the_assignments",
    ),
    Mutant(
        "gradient of the softmax without its mean", "topics/sgld.py",
        "drift = a[w, k] - mass[k] * phi[w, k]", "drift = a[w, k]",
        "test_topics.py::test_the_gradient_is_that_of_the_enumerated_posterior",
    ),
    Mutant(
        "spread between draws left out", "topics/outcome.py",
        "np.sqrt(within + conditional.var(axis=(0, 1)))", "np.sqrt(within)",
        "test_lda.py::test_components_are_what_they_say",
    ),
    Mutant(
        "topics whose chains are not compared", "topics/agreement.py",
        "(between - within / S)", "(between / S - within / S)",
        "test_agreement.py::test_rhat_of_topics_is_that_of_draws_summed_over_words",
    ),
    Mutant(
        "many parameters judged by errors of their own", "diagnostics/score_moments.py",
        "np.maximum(errors, np.median(errors))", "errors",
        "test_verdict.py::test_correct_draws_of_many_parameters_raise_no_alarm",
    ),
    # -- networks
    Mutant(
        "deltas that forget the activation", "networks/predictor_map.py",
        "            damp(lower, below, network.activation)\n", "",
        "test_network_gradients.py::"
        "test_gradients_are_those_of_complex_steps[mean and log sd-tanh]",
    ),
    Mutant(
        "weights of rows that count twice", "networks/gradient.py",
        "factor = c * (weight if power == 1.0 else weight**power)",
        "factor = c * weight * weight",
        "test_network_gradients.py::test_gradients_are_those_of_complex_steps[known sd-tanh]",
    ),
    Mutant(
        "noise that is free from the start", "networks/chain.py",
        "    if len(held):\n", "    if False:\n",
        "test_chain_starts.py::test_weights_of_log_sd_are_held_until_they_are_released[None]",
    ),
    Mutant(
        "weights that are held for ever", "networks/guard.py",
        "        release(problem, chain)\n", "",
        "test_chain_starts.py::test_no_weights_are_held_when_draws_begin[False]",
    ),
    Mutant(
        "momentum that is refreshed too much", "networks/baoab.py",
        "    s = math.sqrt(1.0 - c * c)\n", "    s = 1.0 - c * c\n",
        "test_network_laws.py::test_the_law_on_all_rows_is_the_posterior[0.1]",
    ),
    Mutant(
        "batches of a network that are not scaled up", "networks/stochastic.py",
        "first, first + n, c, False, scratch, g, own)\n        for j",
        "first, first + n, 1.0, False, scratch, g, own)\n        for j",
        "test_network_laws.py::test_gradients_of_batches_have_mean_and_covariance_of_the_enumeration",
    ),
    Mutant(
        "gradient noise that is not taken out", "networks/stochastic.py",
        "own = moves.friction if is_last else 0.0", "own = 0.0",
        "test_network_laws.py::test_steps_with_friction_are_those_of_the_formula[0]",
    ),
    Mutant(
        "friction at each step of a cycle", "networks/stochastic.py",
        "own = moves.friction if is_last else 0.0", "own = friction",
        "test_network_laws.py::test_steps_with_friction_are_those_of_the_formula[0]",
    ),
    Mutant(
        "drifts of half a step", "networks/stochastic.py",
        "phi[j] += delta * v[j]", "phi[j] += 0.5 * delta * v[j]",
        "test_network_laws.py::test_steps_with_friction_are_those_of_the_formula[0]",
    ),
    Mutant(
        "friction that ignores the size of kicks", "networks/stochastic.py",
        "(1.0 + math.sqrt(1.0 - CYCLE * kick))", "2.0",
        "test_network_laws.py::test_friction_balances_the_noise_of_all_steps_of_a_cycle",
    ),
    Mutant(
        "kicks of rows, and not of batches", "networks/curvature.py",
        "alone + (n - 1) / (m - 1) * (all_pairs - alone), lengths", "alone, lengths",
        "test_network_laws.py::test_the_size_of_kicks_is_that_of_the_enumeration[3]",
    ),
    Mutant(
        "steps that are blind to the size of kicks", "networks/minibatches.py",
        "INFLATION * few, small, LARGEST_STEP)", "INFLATION * few, LARGEST_STEP)",
        "test_mlp.py::test_kicks_of_rare_levels_shorten_steps_and_are_told",
    ),
    Mutant(
        "warm-ups at the edge of stability", "networks/baoab.py",
        "ERROR = 1e-3", "ERROR = 0.1",
        "test_network_laws.py::test_steps_are_adapted_to_a_small_error_of_energy",
    ),
    Mutant(
        "steps at the noisiest measurement of kicks", "networks/minibatches.py",
        "memory.h = self._step_for(memory)", "memory.h = min(memory.h, self._step_for(memory))",
        "test_network_laws.py::test_steps_follow_all_measurements_of_kicks",
    ),
    Mutant(
        "prices of networks that nobody hears", "networks/run.py",
        "if chain.number == 0:", "if chain.number < 0:",
        "test_mlp.py::test_long_runs_are_told_once_before_they_begin",
    ),
    Mutant(
        "rates that forget the layer below", "networks/predictor_map.py",
        "            _add(rates[start : start + n * n_out], passed)\n", "",
        "test_network_gradients.py::test_rates_are_those_of_complex_steps[known sd-tanh]",
    ),
    Mutant(
        "scales of the prior that run away", "networks/prior_scales.py",
        "np.where(found < np.inf, np.maximum(found, least), least)",
        "gammainccinv(shape, above)",
        "test_network_laws.py::test_scales_of_the_prior_have_their_truncated_law",
    ),
    Mutant(
        "columns whose scale is counted twice", "networks/prior_scales.py",
        "squares / tau**2, rng)", "squares, rng)",
        "test_network_laws.py::test_scales_of_columns_have_their_truncated_law",
    ),
    # -- factorisation
    Mutant(
        "rows that forget the biases of others", "factorisation/gibbs_updates.py",
        "s * (y[start + k] - rest)", "s * y[start + k]",
        "test_factorisation.py::test_rows_given_all_others_have_the_law_of_the_density[sizes1]",
    ),
    Mutant(
        "weights of the noise that count ratings twice", "factorisation/noise.py",
        "nu + 0.5 * counts", "nu + counts",
        "test_factorisation.py::test_noise_given_residuals[sizes1]",
    ),
    Mutant(
        "mean of the rows without its own prior", "factorisation/hyperpriors.py",
        "cholesky((beta + n) * precision)", "cholesky(n * precision)",
        "test_factorisation.py::test_normal_wishart_is_conjugate",
    ),
    Mutant(
        "product of two new rows without its variance", "factorisation/prediction_kernels.py",
        "total += sigma[s, c, i, j] * sigma[s, other, j, i]", "total += 0.0",
        "test_factorisation.py::"
        "test_predictions_of_new_categories_are_integrals_over_their_prior[sizes3-new3]",
    ),
    Mutant(
        "steps that are judged without any sweep", "factorisation/chains.py",
        "for _ in range(SWEEPS):", "for _ in range(0):",
        "test_step_check.py::test_biases_are_those_against_exact_draws[sgld-3.5]",
    ),
    Mutant(
        "a run that goes on without its warm-up", "factorisation/settled.py",
        "setup.thin = chains[0].passes,", "setup.thin = setup.n_warmup,",
        "test_settled.py::test_draws_are_made_again_until_they_are_settled[2]",
    ),
    Mutant(
        "moments of draws that are not settled", "factorisation/settled.py",
        "chain.kept.forget()", "pass",
        "test_settled.py::test_later_draws_are_those_of_a_longer_warm_up[predictive]",
    ),
    Mutant(
        "passes that were asked for and not obeyed", "factorisation/request.py",
        "self.is_open = self.thin is None and self.n_warmup is None and", "self.is_open =",
        "test_settled.py::test_runs_go_on_where_that_costs_little[options1-1]",
    ),
    Mutant(
        "batches of ratings that are not scaled up", "factorisation/sparse.py",
        "* step * N / B", "* step",
        "test_sparse.py::test_steps_are_unbiased_and_touch_no_other_rows[1-sizes1]",
    ),
    Mutant(
        "remembered gradients that act before the end of the step", "factorisation/sparse.py",
        "        if remembers:  # move rows to the end of the step by the gradients it began with",
        "        if False:",
        "test_sparse.py::test_saga_follows_a_naive_statement[sizes1]",
    ),
    Mutant(
        "noise of a lazy row", "factorisation/lazy.py",
        "(1.0 - c * c) / lam[j]", "(1.0 - c) / lam[j]",
        "test_sparse.py::test_a_row_left_alone_moves_by_its_prior_exactly[0.7]",
    ),
    Mutant(
        "a user that stands for itself alone", "factorisation/user_block.py",
        "gain = 0.5 * step * U / H[a]", "gain = 0.5 * step / H[a]",
        "test_sparse.py::test_step_of_a_user",
    ),
    # -- estimators
    Mutant(
        "intercept shrunk by the prior of the coefficients", "estimators/_parameters.py",
        "resolve(of_intercepts, name), (n_intercepts,)",
        "resolve(self.prior, name), (n_intercepts,)",
        "test_degeneracy.py::test_the_prior_of_the_coefficients_does_not_touch_the_intercept",
    ),
    Mutant(
        "a default prior of the intercept that is not looked at", "estimators/_centring.py",
        "    if moved[k] > HELD_BACK:\n", "    if False:\n",
        "test_centring.py::test_a_default_prior_that_still_holds_back_is_told",
    ),
    # -- evidence
    Mutant(
        "trace of the Stein kernel without its second part", "diagnostics/stein.py",
        "    along -= second\n", "",
        "test_stein.py::test_matrix_is_the_formula_entry_by_entry",
    ),
    Mutant(
        "blocks off the diagonal counted once", "diagnostics/stein.py",
        "1.0 if a == b else 2.0", "1.0",
        "test_stein.py::test_blocks_are_the_dense_computation",
    ),
    Mutant(
        "draws scaled, their scores not", "diagnostics/stein.py",
        "return x / S, s * S", "return x / S, s",
        "test_stein.py::test_few_draws_are_seen_to_be_wrong",
    ),
    Mutant(
        "squares with the wrong constant", "postprocess/zero_variance.py",
        "products[:, ~off] += 1.0", "products[:, ~off] += 2.0",
        "test_zero_variance.py::test_quadratic_gives_second_moments_of_a_gaussian_from_any_points",
    ),
    Mutant(
        "scores assumed to be centred", "postprocess/zero_variance.py",
        "mu = mean - centre @ a", "mu = mean",
        "test_zero_variance.py::test_linear_gives_means_of_a_gaussian_from_any_points",
    ),
    Mutant(
        "shift of means to the wrong side", "diagnostics/score_moments.py",
        "shift = -w[:, None]", "shift = w[:, None]",
        "test_verdict.py::test_moments_of_a_gaussian_are_those_of_the_draws",
    ),
    Mutant(
        "draws that are too narrow are fine", "diagnostics/verdict.py",
        "errors = np.abs(errors)", "errors = np.asarray(errors)",
        "test_verdict.py::test_spread_is_looked_at_on_both_sides",
    ),
    Mutant(
        "half a step for a whole bias", "diagnostics/step_bias.py",
        "2.0**order / (2.0**order - 1.0)", "1.0",
        "test_verdict.py::test_step_bias_is_the_difference_extrapolated[1-2.0]",
    ),
    Mutant(
        "gradients of U for scores", "geometry/frame.py",
        "return -shear_back(-self.slopes, g)", "return shear_back(-self.slopes, g)",
        "test_scores.py::test_scores_are_in_the_parameters[hessian]",
    ),
    Mutant(
        "scores of the draw before", "engine/run.py",
        "chain.slopes[1 : n_draws + 1]", "chain.slopes[:n_draws]",
        "test_scores.py::test_slopes_are_the_gradients_at_the_draws[sgld]",
    ),
    Mutant(
        "scores of log σ for those of σ", "models/extras.py",
        "(scores[..., -n_extra:] - 1.0)", "scores[..., -n_extra:]",
        "test_scores.py::test_scores_of_a_positive_parameter",
    ),
    Mutant(
        "squares of the kept draws only", "posterior/moments.py",
        "w[mine], off * off", "w[mine], off",
        "test_keep.py::test_moments_are_those_of_all_draws[False]",
    ),
    Mutant(
        "neighbours among all draws, itself included", "diagnostics/divergence.py",
        "[n_neighbours + 1]", "[n_neighbours]",
        "test_divergence.py::test_nearest_neighbours_are_the_formula[2-3]",
    ),
    # -- independent draws
    Mutant(
        "searches that begin in the middle of the prior", "geometry/first_place.py",
        "places[np.argmin(np.where(np.isfinite(values), values, np.inf))]", "places[0]",
        "test_survival_times.py::test_searches_begin_at_the_lowest_of_several_places",
    ),
    Mutant(
        "chains on all rows before those in lockstep", "recipe/independent.py",
        "    return _of_chains(modes, proposals", "    return None and _of_chains(modes, proposals",
        "test_independent.py::test_few_effective_draws_give_way_to_bearable_chains"
        "[0.2-9.0-auto-lockstep]",
    ),
    Mutant(
        "scores of far draws by expansions", "importance/scores.py",
        "g[far] = proposal.exact.gradients(phi[far])", "pass",
        "test_scores_far_out.py::test_the_farthest_draws_are_exact_and_the_others_nearly",
    ),
    Mutant(
        "thinned draws that are the first of all", "importance/lockstep.py",
        "np.arange(k - 1, n, k)", "np.arange(n // k)",
        "test_importance.py::test_the_price_of_chains_in_lockstep_is_told_when_it_is_about_known",
    ),
    Mutant(
        "intercepts whose mean moves with the scale", "shrinkage/alternating.py",
        "rays[1, :, own] -= theta[:, own].mean(axis=1, keepdims=True)", "pass",
        "test_alternating.py::test_coefficients_over_their_scale_stay_where_they_are",
    ),
    Mutant(
        "weights with the Jacobian upside down", "importance/sample.py",
        "np.square(psi).sum(axis=1) - log_det", "np.square(psi).sum(axis=1) + log_det",
        f"{IMPORTANCE}::test_a_wrong_warp_costs_efficiency_and_not_correctness",
    ),
    Mutant(
        "weights of one over the density", "importance/sample.py",
        "log_weights = -potential.values(phi) - log_q",
        "log_weights = potential.values(phi) + log_q",
        f"{IMPORTANCE}::test_a_wrong_warp_costs_efficiency_and_not_correctness",
    ),
    Mutant(
        "quadratic without its half", "importance/potential.py",
        "found += 0.5 * np.einsum", "found += np.einsum",
        f"{IMPORTANCE}::test_rows_that_are_not_exact_are_quadratic[LinearKnownNoise]",
    ),
    Mutant(
        "exact rows counted in the quadratic as well", "importance/potential.py",
        "        H -= part.likelihood_hessian(frame.centre.theta)\n", "",
        f"{IMPORTANCE}::test_rows_that_are_not_exact_are_quadratic[Logistic]",
    ),
    Mutant(
        "potential without the prior", "importance/potential.py",
        "losses + self._prior(steps) - self", "losses - self",
        f"{IMPORTANCE}::test_all_rows_exact_is_the_posterior[normal-Logistic]",
    ),
    Mutant(
        "normals not matched", "importance/proposal.py",
        "        half = linalg.solve_triangular(root, half.T, lower=True).T\n", "",
        f"{IMPORTANCE}::test_moments_are_those_of_the_normal_law[400]",
    ),
    Mutant(
        "resampling with a fixed offset", "importance/certificate.py",
        "np.arange(n) + rng.random()", "np.arange(n) + 0.5",
        f"{IMPORTANCE}::test_resampling_is_unbiased_and_equal_weights_stay_as_they_are",
    ),
    Mutant(
        "certificate without Pareto k", "importance/sample.py",
        "self.certificate.pareto_k < LARGEST_K and ", "",
        f"{IMPORTANCE}::test_draws_whose_certificate_does_not_hold_are_not_believed",
    ),
    Mutant(
        "a prior of intercepts that never gives way", "estimators/_parameters.py",
        "if is_default and K and isinstance(b, Normal):", "if False:",
        "test_centring.py::test_shards_batches_and_several_classes_have_the_same_prior",
    ),
    Mutant(
        "tails by k alone, however few draws are effective", "importance/certificate.py",
        "SUSPECT_K if share <= UNEVEN else LIGHT", "LIGHT",
        "test_independent.py::test_tails_are_looked_at_where_weights_are_not_light",
    ),
    Mutant(
        "modes that are responsible for everything", "importance/mixture.py",
        "    return log_t - logsumexp(log_t, axis=0)", "    return np.zeros_like(log_t)",
        "test_mixture.py::test_the_same_mode_twice_is_counted_once",
    ),
    Mutant(
        "draws of a mode not divided by their number", "importance/mixture.py",
        "[part.log_weights - np.log(len(part.theta)) for", "[part.log_weights for",
        "test_mixture.py::test_two_modes_against_quadrature[0]",
    ),
    Mutant(
        "warps alone, which end at the barriers", "importance/mixture.py",
        "every = [warps, unwarped(D)] if len(warps) else [warps]", "every = [warps]",
        "test_mixture.py::test_warps_that_reach_too_little_cost_efficiency_only[0]",
    ),
    Mutant(
        "grid of a warp that has no centre", "importance/warps.py",
        "places = CORE * np.sinh(np.linspace(*ends, PLACES))",
        "places = np.linspace(low, high, PLACES)",
        "test_mixture.py::test_a_local_warp_of_a_tail_that_hardly_falls[1.0]",
    ),
    Mutant(
        "rows that are quadratic in heavy tails", "importance/fit.py",
        "left = 0.0 if local and few else TAIL", "left = TAIL",
        "test_mixture.py::test_heavy_tails_are_drawn_efficiently",
    ),
    Mutant(
        "few effective draws kept although chains are bearable", "recipe/independent.py",
        "POOR = 0.25", "POOR = 0.0",
        "test_independent.py::test_few_effective_draws_give_way_to_bearable_chains[0.2-9.0-auto-lockstep]",
    ),
    Mutant(
        "chains in lockstep judged in coordinates alone", "recipe/independent.py",
        "ess=float(np.fmin(found.ess, ess))", "ess=found.ess",
        "test_independent.py::test_chains_in_lockstep_are_judged_by_their_parameters[0.98-auto-hmc]",
    ),
    Mutant(
        "the price of chains in lockstep told from a minute on", "recipe/price.py",
        "other chains follow. {remedy}\", TOLD_SECONDS)",
        "other chains follow. {remedy}\")",
        "test_independent.py::test_chains_in_lockstep_are_told_with_those_that_may_follow",
    ),
    Mutant(
        "weights without a variance kept although chains are bearable", "recipe/independent.py",
        "FINITE = 0.5", "FINITE = 0.7",
        "test_independent.py::test_tails_that_no_proposal_reaches_are_left_to_chains"
        "[0.55-9.0-lockstep]",
    ),
    Mutant(
        "a density without a maximum, taken for one", "densities/modes.py",
        "if not is_unbounded(target, best, theta)", "if True",
        "test_unbounded.py::test_a_scale_that_becomes_zero_has_no_maximum",
    ),
    Mutant(
        "searches without an end that are called narrow modes", "densities/around.py",
        "RISING = 0.5", "RISING = 1e9",
        "test_unbounded.py::test_a_scale_that_becomes_zero_has_no_maximum",
    ),
    Mutant(
        "degrees of freedom that coefficients take are not counted", "geometry/noise_collapse.py",
        "self.target.total_weight - determined", "self.target.total_weight",
        "test_noise_collapse.py::test_steps_of_the_weighted_centre_by_hand",
    ),
    Mutant(
        "noise that collapses", "geometry/mode.py",
        "if dense and may_collapse(target)", "if False",
        "test_noise_collapse.py::test_a_collapsing_search_is_left_for_where_the_mass_is[0]",
    ),
    Mutant(
        "coefficients that are not integrated out", "geometry/noise_collapse.py",
        "- np.log(np.diag(root[0])).sum()", "",
        "test_noise_collapse.py::test_the_log_mass_is_the_law_with_coefficients_integrated_out",
    ),
    Mutant(
        "shards as wide at the product as at their means", "combine/agreement.py",
        "spread += -u @ third_cumulants(z, E)", "spread += 0.0 * u @ third_cumulants(z, E)",
        "test_combine.py::test_predicted_error_of_the_variance_is_that_of_consensus[1.0]",
    ),
    Mutant(
        "variances of shards that are wrong, untold", "shards/sample.py",
        "if abs(spread) > max(SPREAD_SHIFT + error, 4.0 * error):", "if False:",
        "test_sample.py::test_variances_that_are_wrong_on_average_are_told[0.13-0.02-"
        "too large by about 13% on average]",
    ),
    Mutant(
        "shifts of shards that nothing judges", "diagnostics/verdict.py",
        'shift = evidence.get("shards_shift", np.nan)', "shift = np.nan",
        "test_verdict.py::test_a_shift_of_shards_that_may_be_chance_is_a_note[0.21-True]",
    ),
    Mutant(
        "flat tails that are not looked for", "recipe/independent.py",
        "None if named else _reach_of_tails(proposals, request)", "None",
        "test_flat_tails.py::test_plateaus_are_left_to_chains_and_bowls_are_not",
    ),
    Mutant(
        "low plateaus that are not looked for far away", "importance/flat_tails.py",
        "reach = np.maximum(reach, _far(proposal))", "pass",
        "test_flat_tails.py::test_wide_plateaus_that_are_low_are_in_the_draws[0.02-100.0]",
    ),
    Mutant(
        "mixtures that do not begin at far places", "importance/growing.py",
        "if reach is not None:", "if False:",
        "test_flat_tails.py::test_wide_plateaus_that_are_low_are_in_the_draws[0.02-100.0]",
    ),
    Mutant(
        "draws that their scores contradict are kept", "recipe/independent.py",
        "if is_cheap and not named and _is_contradicted(outcome):", "if False:",
        "test_independent.py::"
        "test_a_contradiction_is_obeyed_where_chains_are_cheap[auto-0.9-hmc]",
    ),
    Mutant(
        "predictors are not judged", "recipe/independent.py",
        "FEW_ROWS_EACH = 4 ", "FEW_ROWS_EACH = 0 ",
        "test_independent.py::test_predictors_are_judged_by_scores[0.15-True]",
    ),
    Mutant(
        "chains in the span of the rows are judged there", "recipe/row_space.py",
        "names=(), start=start, parameters=parameters)", "names=(), start=start)",
        "test_row_space.py::test_the_request_in_the_span_has_the_parameters_that_are_reported",
    ),
    Mutant(
        "chance in the sizes of independent draws", "diagnostics/verdict.py",
        "    if by_chance:\n        sizes", "    if False:\n        sizes",
        "test_verdict.py::test_sizes_of_independent_draws_are_those_of_their_weights[0.11-True]",
    ),
    Mutant(
        "chains begin where no step is small enough", "recipe/full_data.py",
        "TOO_HIGH = 100.0", "TOO_HIGH = 1e300",
        f"{CHOOSE}::test_chains_begin_where_there_is_a_step",
    ),
    Mutant(
        "bounces that keep the momentum of the step", "engine/metropolis.py",
        "copy(state[LAST:], state[PROPOSAL : MOMENTUM + 1])",
        "copy(state[LAST:-1], state[PROPOSAL:MOMENTUM])",
        "test_walls.py::test_chains_follow_a_naive_statement",
    ),
    Mutant(
        "steps between walls of any size", "engine/metropolis.py",
        "BOUNCED = 0.4", "BOUNCED = 0.0",
        "test_walls.py::test_laws_agree_with_quadrature[a_shift-0]",
    ),
    Mutant(
        "overflow is a wall", "recipe/walls.py", "RISE = 1e6", "RISE = np.inf",
        "test_walls.py::test_walls_are_told_from_smooth_functions_that_overflow",
    ),
    Mutant(
        "draws between walls are judged by scores", "recipe/walls.py",
        "outcome, scores=None, diagnostics", "outcome, diagnostics",
        "test_walls.py::test_laws_agree_with_quadrature[an_order-0]",
    ),
    Mutant(
        "steps are not halved where trajectories diverge", "recipe/full_data.py",
        "not is_short and divergences.are_many(chains)", "False",
        "test_divergences.py::test_steps_are_halved_as_long_as_trajectories_diverge",
    ),
    Mutant(
        "divergences are not counted", "engine/metropolis.py",
        "if not change >= -DIVERGED:", "if not change >= -DIVERGED and change >= 0.0:",
        "test_divergences.py::test_trajectories_diverge_that_lose_twenty_nats",
    ),
    Mutant(
        "the price of thinned draws is not told again", "recipe/gibbs.py",
        "        tell(thin)\n", "",
        "test_gibbs.py::test_draws_are_thinned_until_enough_of_them_are_effective",
    ),
    Mutant(
        "tails weighed as if they were normal", "importance/proposal.py",
        "np.logaddexp(log_normal, log_t)", "log_normal + 0.0 * log_t",
        "test_mixture.py::test_the_law_of_psi_is_a_density",
    ),
    Mutant(
        "lines are not turned from a mode", "geometry/modes.py",
        "return turned(self.target, mode.theta) if self.left else []", "return []",
        "test_modes.py::test_the_other_answer_of_a_rare_flag_is_found[2-0]",
    ),
    Mutant(
        "all chains begin at one mode", "geometry/modes.py",
        "preconditioning.solve(self.frame.F, shift)[own] if", "0.0 if",
        "test_modes.py::test_chains_begin_in_proportion_to_the_evidence[evidence0-expected0]",
    ),
    Mutant(
        "missed modes do not matter", "recipe/crossing.py",
        ".sum() > MATTERS", ".sum() > 2.0",
        "test_crossing.py::test_missed_modes_matter_together",
    ),
    Mutant(
        "searches for modes that end after the first points", "densities/modes.py",
        "n < most and found.wants_more", "False and found.wants_more",
        "test_density_modes.py::test_a_frequency_that_few_searches_find",
    ),
    Mutant(
        "a search that is complete wherever it ends", "densities/modes.py",
        "complete = further is None or found.is_complete", "complete = True",
        "test_density_modes.py::test_a_search_that_ends_too_early_is_told",
    ),
    Mutant(
        "modes that hardly matter asked for twice", "densities/modes.py",
        "(once & matters).sum()", "once.sum()",
        "test_density_modes.py::test_searches_end_where_modes_have_been_found_twice",
    ),
    Mutant(
        "weights of several modes without a variance", "densities/independent.py",
        "k <= FINITE", "k <= 0.7",
        "test_density_modes.py::test_a_part_of_the_posterior_that_is_far_from_all_modes",
    ),
    Mutant(
        "modes of densities are left to chains", "densities/fit.py",
        "(independent or len(modes) > 1)", "independent",
        "test_custom_density.py::test_small_modes_far_away_are_weighed[2-y0]",
    ),
    Mutant(
        "far modes without draws do not matter", "recipe/crossing.py",
        "spread > RATIO or not cross", "not cross",
        "test_crossing.py::test_far_modes_matter_more",
    ),
    Mutant(
        "gradient without the bend of a warp", "importance/warps.py",
        " - self.bend / self.slope", "",
        f"{IMPORTANCE}::test_jacobian_and_pull_back_are_derivatives",
    ),
    Mutant(
        "remainder with twice the curvature", "importance/remainders.py",
        "0.5 * all_places * bend", "all_places * bend",
        f"{IMPORTANCE}::test_scores_are_root_mean_squares_by_quadrature",
    ),
    Mutant(
        "all rows nearly quadratic", "importance/remainders.py",
        "~(scores <= SLIGHT)", "scores < 0.0",
        f"{IMPORTANCE}::test_scores_are_root_mean_squares_by_quadrature",
    ),
    Mutant(
        "products that occur once", "importance/fourth_order.py",
        "self.pairs[1], 1.0, 2.0)", "self.pairs[1], 1.0, 1.0)",
        "test_fourth_order.py::test_sums_over_products_are_sums_over_rows[logistic]",
    ),
    Mutant(
        "polynomials believed far away", "importance/potential.py",
        "        found[is_far] = self.far.values(phi[is_far])\n", "",
        "test_fourth_order.py::test_far_draws_are_exact",
    ),
    Mutant(
        "polynomials that nobody looks at far away", "importance/sample.py",
        " and potential.error_far(phi) <= LEFT_FAR", "",
        "test_fourth_order.py::test_polynomials_that_are_wrong_are_not_used",
    ),
    Mutant(
        "drifts by points that are too near", "engine/sigma_points.py",
        "root = np.sqrt(K) * np", "root = np",
        f"{IMPORTANCE}::"
        "test_drifts_are_what_the_average_gradient_is_beyond_that_at_the_centre[Softmax]",
    ),
    Mutant(
        "what the rows see added instead of replaced", "recipe/row_space.py",
        "(a - self.seen(z)) @ self.V.T", "a @ self.V.T",
        "test_row_space.py::test_draws_are_the_formula[with V-dense]",
    ),
    Mutant(
        "a column that exceeds all others hides them", "recipe/row_space.py",
        "RANK = 1e-13", "RANK = 1e-6",
        f"{HEAVY}[with V-dense]",
    ),
    Mutant(
        "moments of means that no pass renews", "factorisation/draws.py",
        "chain.means if with_means else chain.means[:0]", "chain.means",
        "test_pmf.py::test_running_moments_are_those_of_the_draws[sghmc]",
    ),
    Mutant(
        "squares hide what a column exceeds", "recipe/row_space.py",
        "UNEQUAL = 1e4", "UNEQUAL = 1e14", f"{HEAVY}[without V-dense]",
    ),
    Mutant(
        "draws along V keep the rounding of U", "recipe/row_space.py",
        "PASSES = 3", "PASSES = 1", f"{HEAVY}[without V-sparse]",
    ),
    Mutant(
        "evidence of the intercept for all coefficients", "recipe/row_space.py",
        "of_span.max())", "value.max())",
        "test_row_space.py::test_evidence_of_coefficients_is_the_worst_in_the_span_and_others_have"
        "_their_own",
    ),
    Mutant(
        "a closed form at any price", "recipe/closed_form.py",
        "seconds_of_closed_form(target) <= MOST_SECONDS", "True",
        "test_closed_form.py::test_with_many_parameters_it_has_to_be_affordable",
    ),
    Mutant(
        "few draws are not noted", "diagnostics/verdict.py",
        "error = 1.0 / np.sqrt(sizes)", "error = 0.0 / np.sqrt(sizes)",
        "test_verdict.py::test_few_draws_are_noted[True]",
    ),
    Mutant(
        "the search goes on after the collapse", "geometry/mode.py",
        "known=lambda at, _: has_collapsed(at, other)", "known=None",
        "test_noise_collapse.py::test_the_search_ends_as_soon_as_the_noise_has_collapsed",
    ),
    Mutant(
        "drifts left out", "importance/fit.py",
        "self.drift - own)", "0.0)",
        f"{IMPORTANCE}::test_with_drifts_the_quadratic_rows_leave_less",
    ),
    Mutant(
        "oblique axes with duals as of orthonormal ones", "importance/warps.py",
        "return Warps(axes, splines, linalg.pinv(axes))", "return Warps(axes, splines)",
        f"{OF_DRAWS}::test_projections_on_oblique_axes_are_moved_each_by_its_own_table",
    ),
    Mutant(
        "gradients pulled back along the axes", "importance/warps.py",
        "(g @ self.duals)", "(g @ self.axes.T)",
        f"{IMPORTANCE}::test_jacobian_and_pull_back_are_derivatives",
    ),
    Mutant(
        "chains on marginals on the surrogate", "importance/sample.py",
        "        potential = proposal.exact\n", "",
        f"{OF_DRAWS}::test_the_better_chains_are_kept",
    ),
    Mutant(
        "chains that disagree kept for their sample size", "importance/sample.py",
        "return found.rhat < RHAT and found.certificate.pareto_k < LARGEST_K, found.ess",
        "return found.ess",
        f"{OF_DRAWS}::test_the_better_chains_are_kept",
    ),
    Mutant(
        "no chains on marginals", "importance/sample.py",
        "if found.ess < SLOW * n_draws or not found.rhat < RHAT:", "if False:",
        f"{OF_DRAWS}::test_chains_that_mix_slowly_or_disagree_run_on_marginals",
    ),
    Mutant(
        "short chains of few parameters kept", "recipe/independent.py",
        "elif found.chains and not named:", "elif False:",
        "test_independent.py::test_a_mixture_that_may_grow_is_better_than_short_chains",
    ),
    Mutant(
        "no search where rows are fitted exactly", "geometry/robust_modes.py",
        "for own in _exact(y, residuals, A.shape[1]):", "for own in []:",
        "test_modes.py::test_a_fifth_of_equal_responses_may_have_a_mode_without_noise",
    ),
    Mutant(
        "no cut above the modes that are left out", "geometry/modes.py",
        "        own = _cut_off(own)", "        pass",
        "test_modes.py::test_a_fifth_of_equal_responses_may_have_a_mode_without_noise",
    ),
    Mutant(
        "a line without noise left out as ties", "geometry/modes.py",
        "(degenerate[0] and not _fits_ties(frame))", "False",
        "test_modes.py::test_a_search_that_begins_without_noise_leaves_ties_but_not_a_line",
    ),
    Mutant(
        "rows of weight zero tell the step", "estimators/robust.py",
        "target.data.facts[target.weight > 0.0, FACT_Y]", "target.data.facts[:, FACT_Y]",
        "test_regressors.py::test_rows_of_weight_zero_do_not_tell_the_step",
    ),
    Mutant(
        "integers taken as exact numbers", "estimators/robust.py",
        "max(units.floor, UNRESOLVED * step)", "units.floor",
        "test_regressors.py::test_the_noise_of_integers_is_cut_off_at_their_rounding",
    ),
    Mutant(
        "axes that are not orthogonal", "importance/directions.py",
        "axis = axis - (axis @ other) * other", "pass",
        f"{IMPORTANCE}::test_clusters_are_the_levels",
    ),
    Mutant(
        "kicks by the whole gradient", "importance/lockstep.py",
        "self.potential.gradients(place.phi)) - psi", "self.potential.gradients(place.phi))",
        f"{IMPORTANCE}::test_chains_in_lockstep_have_the_law_of_the_potential",
    ),
    Mutant(
        "one acceptance for the steps of all chains", "importance/lockstep.py",
        "(rates - TARGET)", "(rates.mean() - TARGET)",
        f"{IMPORTANCE}::test_chains_that_begin_where_the_potential_is_steep_move_as_well",
    ),
    Mutant(
        "a chain that never moves, believed", "importance/sample.py",
        "if chains.has_stuck:", "if False:",
        f"{IMPORTANCE}::test_chains_with_one_that_never_moves_are_not_believed",
    ),
    Mutant(
        "chains that may take as long whatever their steps", "importance/lockstep.py",
        "max(n_steps / USUAL_STEPS, 1.0)", "1.0",
        f"{IMPORTANCE}::test_chains_may_take_longer_where_others_would_as_well",
    ),
    Mutant(
        "weights that cannot be trusted, silently", "recipe/independent.py",
        "        warn_of_weights(found)\n", "",
        f"{IMPORTANCE}::test_by_name_weights_that_cannot_be_trusted_are_told",
    ),
    Mutant(
        "proposals of any number of parameters", "recipe/independent.py",
        "return D <= most and all", "return all",
        "test_choose.py::test_independent_draws_need_whitened_coordinates_and_few_parameters",
    ),
    # -- the recipe of stochastic gradients
    Mutant(
        "weights of preferential rows ignored", "recipe/tuning.py",
        'named.get(getattr(self.scheme, "weights", None), posterior)', "posterior",
        f"{TUNING}::test_chances_follow_the_weights_that_were_asked_for[Preferential-gradient]",
    ),
    Mutant(
        "reach at the median", "recipe/tuning.py",
        "np.quantile(squares, 0.95)", "np.quantile(squares, 0.5)",
        f"{TUNING}::test_reach_is_the_95_percent_quantile",
    ),
    Mutant(
        "adaptive batches as noisy as those of their size", "recipe/tuning.py",
        "return self._reach[0] / self._reach[1]", "return 1.0",
        f"{TUNING}::test_noise_of_adaptive_batches",
    ),
    Mutant(
        "anchor of some rows without noise", "gradients/svrg.py",
        "return self.refresh * self._anchor_noise(n_rows)", "return 0.0",
        f"{TUNING}::test_noise_of_an_anchor_of_some_rows",
    ),
    Mutant(
        "anchor of some rows left out of the measured noise", "gradients/svrg.py",
        "            found.append((Minibatch(), n_rows * self._anchor_noise(n_rows)))\n",
        "            pass\n",
        f"{TUNING}::test_noise_of_an_anchor_of_some_rows",
    ),
    Mutant(
        "table that is hardly noisy", "gradients/saga.py",
        "[(ControlVariate(), 2.0)]", "[(ControlVariate(), 0.01)]",
        f"{TUNING}::test_noise_of_a_memory_is_that_of_an_independent_position[SAGA()]",
    ),
    Mutant(
        "online table settled at once", "gradients/saga.py",
        "10 * n_rows // batch_size if", "0 if",
        f"{TUNING}::test_an_online_table_has_seen_nearly_all_rows_when_it_settles[29-5]",
    ),
    Mutant(
        "pieces that were asked for replaced with few rows", "recipe/tuning.py",
        "return few and not request.names_few_rows", "return few",
        "test_requests.py::test_all_rows_of_few_unless_other_steps_are_asked_for",
    ),
    Mutant(
        "few rows where each step multiplies a large matrix", "recipe/tuning.py",
        "most <= CHEAP * least", "most < least",
        "test_requests.py::test_all_rows_where_coordinates_are_dearer",
    ),
    Mutant(
        "twice the step that curvature allows", "recipe/tuning.py",
        "h = min(1.0 / flat, CURVATURE / max", "h = min(1.0 / flat, 2.0 * CURVATURE / max",
        f"{TUNING}::test_step_of_an_exact_dynamics_is_limited_by_the_growth_of_the_curvature",
    ),
    Mutant(
        "bias of SGLD at the centre only", "recipe/tuning.py",
        "step_for_bias(INFLATION, flat + self.growth)", "step_for_bias(INFLATION, flat)",
        f"{TUNING}::test_step_of_sgld_is_limited_by_its_bias",
    ),
    Mutant(
        "rows for half of the noise", "recipe/tuning.py",
        "wanted = self.noise / max(room, 1e-300)", "wanted = 0.5 * self.noise / max(room, 1e-300)",
        f"{TUNING}::test_rows_of_many",
    ),
    Mutant(
        "one pilot is enough", "recipe/tuning.py",
        "if len(made) > 1 and 0.25", "if len(made) > 0 and 0.0",
        f"{TUNING}::test_one_pilot_is_never_enough",
    ),
    Mutant(
        "any number of rows accepted", "recipe/tuning.py",
        "not self.full and self.request.is_open:", "False:",
        f"{TUNING}::test_too_many_rows_are_refused_where_the_choice_is_open",
    ),
    Mutant(
        "excursions are no reason to repeat a run", "recipe/stochastic.py",
        "and strayed <= EXCURSION:", "and strayed <= np.inf:",
        "test_stochastic.py::test_two_failures_call_for_all_rows",
    ),
    Mutant(
        "heavy tails are excursions", "recipe/excursions.py",
        "height /= _heaviness(frame.target)", "height /= 1.0",
        "test_excursions.py::test_a_power_law_counts_by_its_power",
    ),
    Mutant(
        "the nearest draw for the farthest", "recipe/excursions.py",
        "order[len(near) :][-MOST:]", "order[len(near) :][:1]",
        "test_excursions.py::test_a_draw_far_out_counts_by_its_potential",
    ),
    Mutant(
        "bulk for the smallest of four sizes", "diagnostics/convergence.py",
        "np.fmin.reduce(sizes)", "sizes[0]",
        "test_final_run.py::test_excursions_count_though_ranks_hide_them",
    ),
    Mutant(
        "draws of any number of effective ones", "recipe/final_run.py",
        "return worst[0] < self.ess_share *", "return worst[0] < 0.0 * self.ess_share *",
        "test_final_run.py::test_chains_are_thinned_until_they_carry_half_of_the_draws",
    ),
    Mutant(
        "chains that disagree are not thinned further", "recipe/final_run.py",
        "MOST_DOUBLINGS = 6", "MOST_DOUBLINGS = DOUBLINGS",
        "test_final_run.py::test_chains_that_disagree_are_thinned_further",
    ),
    Mutant(
        "chains that are stuck are thinned further", "recipe/final_run.py",
        "and rhat < STUCK and", "and",
        "test_final_run.py::test_chains_that_are_stuck_are_not_thinned_further",
    ),
    Mutant(
        "R-hat that is not judged", "diagnostics/verdict.py",
        "return rhat > RHAT or ess <", "return ess <",
        "test_final_run.py::test_limits_of_the_judgement",
    ),
    Mutant(
        "no second look at the noise", "recipe/stochastic.py",
        "if distance <= DISTANCE and _added(tuner) <= BIASED and", "if distance <= DISTANCE and",
        f"{STOCHASTIC}::test_two_failures_call_for_all_rows",
    ),
    Mutant(
        "coupled chains that may be anywhere", "recipe/stochastic.py",
        "if distance <= DISTANCE and _added", "if _added",
        f"{STOCHASTIC}::test_two_failures_call_for_all_rows",
    ),
    Mutant(
        "warm-up before the table has settled", "recipe/final_run.py",
        "LONGEST_WARMUP)) + settling", "LONGEST_WARMUP))",
        f"{STOCHASTIC}::test_warm_up_and_thinning",
    ),
    Mutant(
        "noise of two estimates for that of one", "recipe/stochastic.py",
        "(again - slopes[chosen]) / np.sqrt(2.0)", "(again - slopes[chosen])",
        f"{STOCHASTIC}::test_share_of_the_noise",
    ),
    Mutant(
        "twice the rows of a batch that was asked for", "recipe/tuning.py",
        "        if self.request.batch_size is None:\n            self.n = min(2 * self.n",
        "        if True:\n            self.n = min(2 * self.n",
        f"{STOCHASTIC}::test_a_batch_that_was_asked_for_is_kept",
    ),
    Mutant(
        "noise without the chances of the rows", "recipe/measure.py",
        "scale = self.target.design(rows), stands_for / p[rows]",
        "scale = self.target.design(rows), stands_for * len(p)",
        f"{MEASURE}::test_noise_of_one_row[minibatch-hessian-logistic]",
    ),
    Mutant(
        "curvature instead of its growth", "recipe/measure.py",
        "W = part.weights_at(theta) - centre", "W = part.weights_at(theta)",
        f"{MEASURE}::test_no_growth_of_a_gaussian",
    ),
    Mutant(
        "sampled rows that stand for one", "recipe/measure.py",
        "return rows, 1.0 / (n * p[rows])", "return rows, np.ones(n)",
        f"{MEASURE}::test_sampled_rows_stand_for_all",
    ),
    Mutant(
        "all rows at any price", "recipe/choose.py",
        "request.is_open and seconds_of_chains(target, request) <= BEARABLE_SECONDS",
        "request.is_open",
        f"{CHOOSE}::test_order",
    ),
    Mutant(
        "rows of blocks as they came", "recipe/choose.py",
        "order = rng.permutation(target.n_rows)", "order = slice(None)",
        f"{CHOOSE}::test_only_blocks_have_rows_in_random_order",
    ),
    Mutant(
        "cost of rows without their predictors", "recipe/price.py",
        "n_predictors * (20 * cost +", "cost * (20 +",
        "test_price.py::test_every_predictor_has_its_price",
    ),
    Mutant(
        "sparse rows at the price of dense ones", "recipe/price.py",
        "if sparse.issparse(target.X):", "if False:",
        "test_price.py::test_sparse_rows_cost_what_they_store_and_diagonal_coordinates_next_to_nothing",
    ),
    Mutant(
        "equal draws taken for a cluster", "diagnostics/stein.py",
        "x[first], s[first], np.bincount(which.ravel(), w.ravel())", "x, s, w.ravel()",
        "test_scores.py::test_equal_draws_count_once_in_the_discrepancy",
    ),
    Mutant(
        "growth that a prior outweighs is refused", "custom/growth.py",
        "[-prior_value(target.prior, theta) for theta in thetas]", "[0.0 for theta in thetas]",
        "test_growth.py::test_a_prior_may_outweigh_what_rises",
    ),
    Mutant(
        "growth that other rows outweigh is refused", "custom/growth.py",
        "if some is not target and not _grows", "if False and not _grows",
        "test_growth.py::test_rows_that_were_not_looked_at_may_outweigh_those_that_were",
    ),
    Mutant(
        "few rows that have a posterior are refused", "estimators/_few_rows.py",
        "float(weight.sum()) - rank", "float(weight.sum()) - rank + 1.0",
        "test_regressors.py::test_few_rows_that_have_a_posterior_have_it",
    ),
    Mutant(
        "scales of a user's parameters without a unit", "custom/regressor.py",
        "        return Units(units.response)\n", "        return Units()\n",
        "test_custom_regressor.py::test_scales_that_are_auto_follow_the_unit_of_the_response",
    ),
    Mutant(
        "coordinates from the first draws", "recipe/full_data.py",
        "S = (m * np.cov(pooled.T, ddof=0).reshape(d, d) + (d + 5) * np.eye(d)) / (m + d + 5)",
        "S = np.cov(pooled.T, ddof=0).reshape(d, d)",
        f"{CHOOSE}::test_warm_up_refines_the_coordinates_once",
    ),
    Mutant(
        "pieces without effect, silently", "recipe/request.py",
        "            self._warn_unused(n_rows)\n", "            pass\n",
        "test_requests.py::test_pieces_that_all_rows_leave_without_effect_are_named",
    ),
    Mutant(
        "an error that matters passes with its Monte Carlo error", "diagnostics/verdict.py",
        "np.maximum(matters, SIGMAS * mcse)", "matters + SIGMAS * mcse",
        "test_verdict.py::test_a_variance_that_is_off_is_never_in_order",
    ),
    # -- leave-one-out
    Mutant(
        "the row is taken twice", "model_selection/pareto_smoothing.py",
        "log_v[s] - removed[s]", "log_v[s] + removed[s]",
        f"{LOO}::test_exact_leave_one_out_of_a_conjugate_model",
    ),
    Mutant(
        "rows of weight zero that join a level", "groups/rows.py",
        "(codes >= 0) & (weight > 0.0)", "(codes >= 0)",
        "test_alone.py::test_rows_that_others_join_are_as_drawn",
    ),
    Mutant(
        "one rule where there may be two peaks", "groups/alone.py",
        "            if self.one_peak:\n", "            if True:\n",
        "test_alone.py::test_integrals_with_a_peak_at_the_response_and_one_at_the_prior[4.0-0.1-6-1.0]",
    ),
    Mutant(
        "no rule between the prior and a far response", "groups/alone.py",
        "np.fmax(heights[0], heights[1]) + 1.0", "np.inf",
        "test_alone.py::test_densities_of_new_levels_are_those_of_the_closed_form[0.1]",
    ),
    Mutant(
        "rules that count all of the integrand", "groups/alone.py",
        "    return 1.0 / total\n", "    return 1.0\n",
        "test_alone.py::test_other_rules_find_the_same_integrals",
    ),
    Mutant(
        "tails as they are", "model_selection/pareto_smoothing.py",
        "                w += smooth - raw\n", "                smooth = raw\n",
        f"{LOO}::test_numbers_are_those_of_arviz[400-1.0-heavy tails]",
    ),
    Mutant(
        "efficiency of chains ignored", "model_selection/leave_one_out.py",
        "return float(min(1.0, found))", "return 1.0",
        f"{LOO}::test_chains_that_mix_slowly_have_longer_tails",
    ),
    Mutant(
        "a difference with the errors of both models", "model_selection/comparison.py",
        "[standard_error(d, weight) for d in off]", "[one.se for one in loos]",
        f"{LOO}::test_differences_by_hand",
    ),
    # -- equal rows
    Mutant(
        "rows of the same key are merged unseen", "engine/equal_rows.py",
        "if not _are_equal(X, labels, first[of_row]):", "if False:",
        "test_equal_rows.py::test_rows_that_a_key_does_not_tell_apart",
    ),
    Mutant(
        "the label is no part of the key", "engine/equal_rows.py",
        "return of_columns + (labels * v).sum(axis=1)", "return of_columns",
        "test_equal_rows.py::test_equal_rows_are_merged_into_the_same_rows_in_any_order[asarray]",
    ),
    # -- batches
    Mutant(
        "quadratics without a slope", "engine/memory.py",
        "return self.gradient + self.hessian @ (theta - self.origin)",
        "return self.hessian @ (theta - self.origin)",
        f"{BATCHES}::test_a_quadratic_likelihood_is_its_own_quadratic",
    ),
    Mutant(
        "earlier rows forgotten", "recipe/closed_form.py",
        "past = [] if target.memory is None else [target.memory.R]", "past = []",
        f"{BATCHES}::test_batches_of_linear_regression_are_all_rows[2-default]",
    ),
    Mutant(
        "quadratics that are never far away", "estimators/_online.py",
        "moved = max(square / D, square - D)", "moved = 0.0",
        f"{BATCHES}::test_rows_in_the_order_of_y_are_told",
    ),
    Mutant(
        "priors that change after a fit have no effect", "estimators/_changed.py",
        "np.where(changed[:, None], asked, past.prior)", "past.prior.copy()",
        f"{BATCHES}::test_priors_of_three_classes_that_have_changed_after_a_fit",
    ),
    Mutant(
        "a default prior of an intercept is taken for fixed", "estimators/_changed.py",
        "b = Normal(scale=unit) if default", "b = Normal(scale=10.0) if default",
        f"{BATCHES}::test_priors_that_would_follow_from_the_rows_of_a_fit_are_refused",
    ),
    Mutant(
        "a wider prior does not widen what quadratics leave out", "estimators/_online.py",
        "most = np.inf if has_other_prior", "most = 1.0 if has_other_prior",
        f"{BATCHES}::test_a_wider_prior_after_a_narrow_one_is_told",
    ),
    Mutant(
        "the lower end of a shortest interval without its weight", "posterior/shortest.py",
        "np.r_[0.0, share[:-1]] if closed", "share if closed",
        "test_posterior.py::test_a_draw_with_most_of_the_weight_is_the_shortest_interval",
    ),
    Mutant(
        "small counts are added up without their dispersion",
        "models/mixture_quantiles.py",
        "factor = (1.0 + (k - 1.0) * dispersions[g]) / k",
        "factor = 1.0 / k",
        "test_mixture_quantiles.py::test_stated_error_for_overdispersed_counts[0.5-0.2-0.0-0.3]",
    ),
    Mutant(
        "warm starts are used even where they are bad",
        "geometry/mode.py",
        "return bool(np.isfinite(theta).all() and values[0] < values[1])",
        "return True",
        "test_warm_start.py::test_a_start_that_is_worse_than_none_is_not_used",
    ),
    # -- levels
    Mutant(
        "paths with the times of a Gaussian", "multilevel/method.py",
        "(slowness * time for time in (self.shift, self.window))", "(self.shift, self.window)",
        f"{CONFIRMATION}::test_times_follow_the_width",
    ),
    Mutant(
        "estimates that no draws confirm", "multilevel/method.py",
        "confirmation.check(found, integrand)", "pass",
        f"{CONFIRMATION}::test_an_estimate_must_be_the_mean_of_the_draws",
    ),
    Mutant(
        "estimates in one mode of several", "multilevel/confirmation.py",
        "if len(modes) > 1 or not modes.complete:", "if not modes.complete:",
        f"{CONFIRMATION}::test_two_modes_are_refused",
    ),
    Mutant(
        "effective draws of pieces of a chain", "importance/sample.py",
        "series = phi[: len(phi) // N_SERIES * N_SERIES].reshape(N_SERIES, -1, phi.shape[1])",
        "series = phi.reshape(-1, 8, phi.shape[1])",
        f"{IMPORTANCE}::test_effective_draws_of_short_chains_count_what_reaches_beyond_one",
    ),
    Mutant(
        "coarse noise of half the sum", "multilevel/double_step.py",
        "ROOT_HALF * (noises[0, j]", "0.5 * (noises[0, j]", f"{LEVELS}[antithetic-2]",
    ),
    Mutant(
        "both coarse paths on the first batch", "multilevel/double_step.py",
        "rows[2 + k],", "rows[2],", f"{LEVELS}[antithetic-2]",
    ),
    Mutant(
        "fine path too short before the coarse one", "multilevel/hierarchy.py",
        "2 * half * self.shift", "half * self.shift", f"{LEVELS}[plain-1]",
    ),
    Mutant(
        "coarse rows drawn with replacement", "multilevel/couplings.py",
        "rows[2, k], rows[b, j] = rows[b, j], rows[2, k]", "rows[2, k] = rows[b, j]",
        "test_multilevel_paths.py::test_plain_coupling_keeps_the_law_of_independent_rows",
    ),
    Mutant(
        "bias without its standard error", "multilevel/giles.py",
        "np.abs(means[1:]) + errors[1:]", "np.abs(means[1:])",
        "test_multilevel.py::test_remaining_bias_is_the_tail_of_means_that_halve",
    ),
    Mutant(
        "chances of levels that do not add up", "multilevel/truncation.py",
        "RATIO ** (level - 1.0)", "RATIO**level",
        "test_multilevel.py::test_chances_of_levels_are_those_of_the_geometric_law",
    ),
    # -- row densities
    Mutant(
        "determinant of a batch forgotten", "densities/ica.py",
        "slopes[j] = t * x[j] - inverse[j, i]", "slopes[j] = t * x[j]",
        "test_row_densities.py::test_values_and_gradients_of_rows[sources]",
    ),
    Mutant(
        "inverse not transposed", "densities/ica.py",
        "slopes[j] = t * x[j] - inverse[j, i]", "slopes[j] = t * x[j] - inverse[i, j]",
        "test_row_densities.py::test_values_and_gradients_of_rows[sources]",
    ),
    Mutant(
        "Jacobian of a precision forgotten", "densities/mixture_density.py",
        "out[at] -= 0.5 * r[k] * (1.0 - ", "out[at] -= 0.5 * r[k] * (0.0 - ",
        "test_row_densities.py::test_values_and_gradients_of_rows[diag]",
    ),
    Mutant(
        "modes behind barriers not looked for", "geometry/modes.py",
        "return bool((np.diff(values) < -SLIGHT).any())", "return False",
        "test_modes.py::test_a_search_that_ends_early_is_incomplete_only_if_there_may_be_others",
    ),
    Mutant(
        "signs of sources forgotten in sums", "densities/ica.py",
        "flat[k] = t if flat[k] > 0.0 else -t", "flat[k] = t",
        "test_row_densities.py::test_values_and_gradients_of_rows[sources]",
    ),
    Mutant(
        "weights forgotten in sums", "densities/ica.py",
        "weighted_out[k, j] = weight * x_out[k, j]", "weighted_out[k, j] = x_out[k, j]",
        "test_row_densities.py::test_sums_and_kernels_of_rows_agree[5000-2]",
    ),
    Mutant(
        "sums whose prior has no gradient", "engine/metropolis.py",
        "    prior_gradient(prior, theta, g)\n", "",
        "test_walls.py::test_chains_follow_a_naive_statement",
    ),
    Mutant(
        "order and signs of the first mode only", "densities/ica_modes.py",
        "found[np.argmax(log_p, axis=0), np.arange(len(W))]", "found[0]",
        "test_ica_modes.py::test_independent_draws_weigh_modes_between_which_chains_do_not_cross",
    ),
    Mutant(
        "no search for other unmixing matrices", "densities/ica_modes.py",
        "FEWEST, MOST = 8, 20", "FEWEST, MOST = 1, 1",
        "test_ica_modes.py::test_the_lowest_minimum_is_found_from_another_one",
    ),
    Mutant(
        "determinants that do not bend", "densities/ica.py",
        "H += total * np.einsum", "H += 0.0 * np.einsum",
        "test_row_densities.py::test_hessian_by_differences[sources]",
    ),
    Mutant(
        "gradients that are not pulled back", "densities/independent.py",
        "return preconditioning.pull_back(self.frame.F, self._both(phi)[1].T).T",
        "return self._both(phi)[1]",
        "test_independent_densities.py::test_a_wrong_width_costs_efficiency_only[narrow]",
    ),
    Mutant(
        "poor weights kept where chains are cheap", "densities/independent.py",
        "return seconds <= EXACT_SECONDS and (poor or tails)", "return False",
        "test_independent_densities.py::test_chains_are_preferred_where_weights_are_poor_and_chains"
        "_take_little_time",
    ),
    Mutant(
        "a Hessian without the covariance of slopes", "densities/mixture_derivatives.py",
        "H += mean.T @ (weight[:, None] * mean)", "H += 0.0",
        "test_row_densities.py::test_products_of_matrices_and_kernels_agree[full]",
    ),
    Mutant(
        "means and triangles that move apart", "densities/mixture_derivatives.py",
        " + A[:, columns] * sums.m[rows]", "",
        "test_row_densities.py::test_products_of_matrices_and_kernels_agree[tied]",
    ),
    Mutant(
        "logarithms that do not bend", "densities/mixture_derivatives.py",
        "bends = np.where(same, 0.25 * entries, 0.0)", "bends = np.zeros(len(entries))",
        "test_row_densities.py::test_products_of_matrices_and_kernels_agree[spherical]",
    ),
    Mutant(
        "one degree of freedom for all columns", "densities/mixture.py",
        "((self.df - j) / 2.0, 0.5) if i == j", "(self.df / 2.0, 0.5) if i == j",
        "test_gaussian_mixture.py::test_the_prior_of_a_precision_is_a_wishart_law",
    ),
    Mutant(
        "labels left as they are", "densities/relabel.py",
        "linear_sum_assignment(cost.T)[1] for cost", "np.arange(K) for cost",
        "test_gaussian_mixture.py::test_labels_are_aligned",
    ),
    Mutant(
        "a positive parameter without its factor", "custom/row_law.py",
        "*= -theta[j] if positive[j] else -1.0", "*= -1.0",
        "test_custom_density.py::test_kernels_are_derivatives_of_the_function[given]",
    ),
    Mutant(
        "differences of a wrong order", "custom/derivatives.py",
        "(8.0 * near - far) / (12.0 * h)", "(8.0 * near + far) / (12.0 * h)",
        "test_custom_density.py::test_kernels_are_derivatives_of_the_function[differences]",
    ),
    Mutant(
        "a wrong derivative accepted", "custom/derivatives.py",
        "        if wrong.any():\n", "        if False:\n",
        "test_custom_density.py::test_a_wrong_derivative_is_refused",
    ),
    # -- learned scales
    Mutant(
        "determinant of collapsed coordinates", "shrinkage/collapse.py",
        "at @ self.V.T, -0.5 * np.log(P)", "at @ self.V.T, 0.5 * np.log(P)",
        f"{COLLAPSE}::test_the_determinant_is_that_of_the_map[one]",
    ),
    Mutant(
        "path without the change of its widths", "shrinkage/path.py",
        " + (a * z - 1.0) * grown", "",
        f"{COLLAPSE}::test_derivatives_of_a_path[0.0]",
    ),
    Mutant(
        "determinant of coordinates along a path", "shrinkage/path.py",
        "log_r.sum(axis=1)", "0.5 * log_r.sum(axis=1)",
        f"{COLLAPSE}::test_derivatives_of_a_path[4.0]",
    ),
    Mutant(
        "moves of a scale without their determinant", "shrinkage/alternating.py",
        "self.value - value + self.n_moved @ steps", "self.value - value",
        "test_alternating.py::test_chains_have_the_law_of_a_grid[False]",
    ),
    Mutant(
        "the potential of where chains were", "shrinkage/alternating.py",
        "self.value + change, -change", "self.value, -change",
        "test_alternating.py::test_potentials_of_chains_are_those_of_where_they_are",
    ),
    Mutant(
        "derivative of a Cholesky factor", "shrinkage/collapse.py",
        "        left -= 0.5 * own\n", "",
        f"{COLLAPSE}::test_gradients_are_pulled_back_by_the_derivative_of_the_map[columns]",
    ),
    Mutant(
        "normal prior without its constant", "shrinkage/potential.py",
        " + s * own.scales.counts", "",
        f"{COLLAPSE}::test_potentials_have_their_gradients[blocks]",
    ),
    Mutant(
        "a degree of freedom of the intercept", "shrinkage/quadrature.py",
        "target.total_weight - intercept", "target.total_weight",
        "test_quadrature.py::test_draws_have_the_law_of_a_grid[half_cauchy-True]",
    ),
    Mutant(
        "horseshoe without its slab", "shrinkage/local_scales.py", " + self.slab**-2", "", SWEEPS
    ),
    Mutant(
        "slice of twice the exponent", "shrinkage/local_scales.py",
        "m = 0.5 * np.square(beta", "m = np.square(beta", SWEEPS,
    ),
    Mutant(
        "shift of scales to one side", "shrinkage/local_scales.py",
        "self.log_lambda - a[:, None]", "self.log_lambda + a[:, None]", SWEEPS,
    ),
    Mutant(
        "the row along the intercept without its spread", "shrinkage/normal_rows.py",
        "(seen + known - 1.0)", "(seen - 1.0)",
        "test_normal_rows.py::test_its_slopes_are_those_of_differences[tall-normal-FewColumns]",
    ),
    Mutant(
        "columns of rows that keep the intercept", "shrinkage/normal_rows.py",
        "return G - np.outer(self.along, self.along), b", "return G, b",
        "test_normal_rows.py::test_the_marginal_law_is_that_of_a_dense_matrix[tall-flat-FewColumns]",
    ),
    Mutant(
        "an inverse whose halves have the wrong sign between them", "shrinkage/normal_rows.py",
        "linalg.blas.dtrmm(-1.0,", "linalg.blas.dtrmm(1.0,",
        "test_normal_rows.py::"
        "test_matrices_of_any_size_are_inverted_by_halves_of_at_most_64_rows[FewColumns]",
    ),
    Mutant(
        "draws of many columns without their noise", "shrinkage/normal_rows.py",
        "np.sqrt(noise) * rng.standard_normal", "0.0 * rng.standard_normal",
        "test_normal_rows.py::"
        "test_draws_have_the_mean_and_covariance_of_the_posterior[wide-flat-FewRows]",
    ),
    Mutant(
        "scales that move with the global one for nothing", "shrinkage/collapsed_scales.py",
        " - g @ self.kappa", "",
        "test_collapsed_scales.py::test_gradients_are_those_of_differences[known]",
    ),
    Mutant(
        "the slab's part of the prior of scales", "shrinkage/collapsed_scales.py",
        "own = 2.0 * (1.0 - slab) * of_scales - slab", "own = 2.0 * (1.0 - slab) * of_scales",
        "test_collapsed_scales.py::test_gradients_are_those_of_differences[known]",
    ),
    Mutant(
        "latent variables with twice the tilt of their tail", "kernels/polya_gamma.py",
        "rate, beyond = math.pi**2 / 8.0 + 0.5 * z * z", "rate, beyond = math.pi**2 / 8.0 + z * z",
        "test_augmented.py::test_polya_gamma_draws_have_their_laplace_transform[3.3-1]",
    ),
    Mutant(
        "proposals judged by the likelihood alone", "shrinkage/approximated.py",
        " + self.normal.values(new) - self.normal.values(self.x)", "",
        "test_approximated.py::test_normal_rows_accept_every_proposal",
    ),
    Mutant(
        "sections of scales without what moves the mode", "shrinkage/collapse.py",
        "np.square(within + c * growth)", "np.square(within)",
        "test_collapse.py::test_sections_are_those_of_the_marginal[blocks]",
    ),
    Mutant(
        "proposals that are never accepted kept", "shrinkage/horseshoe.py",
        "if own.suits:", "if True:",
        "test_horseshoe.py::test_latent_variables_take_over_where_proposals_are_not_accepted"
        "[logistic]",
    ),
    Mutant(
        "an expansion where no likelihood is finite", "shrinkage/approximated.py",
        "if np.isfinite(self._value(mean[None])[0]):", "if True:",
        "test_approximated.py::test_means_of_the_warm_up_may_have_no_likelihood",
    ),
    Mutant(
        "scales of proposals that were rejected", "shrinkage/approximated.py",
        "np.where(moved, local.log_tau, before[1])", "local.log_tau",
        "test_approximated.py::test_scales_stay_where_a_proposal_is_rejected",
    ),
    Mutant(
        "other parameters far from their mean given coefficients", "shrinkage/approximated.py",
        "x[n:] + step + B @ x[:n]", "x[n:] + step - B @ x[:n]",
        "test_approximated.py::test_the_normal_likelihood_is_the_quadratic[1]",
    ),
    Mutant(
        "logistic rows seen at twice their place", "shrinkage/augmented.py",
        "self.weight * (self.y - 0.5) / omega", "2.0 * self.weight * (self.y - 0.5) / omega",
        "test_augmented.py::test_a_flat_intercept_and_whole_rows",
    ),
    Mutant(
        "rows drawn with replacement where a batch has all", "densities/fit.py",
        "if n >= N or isinstance(gradient, Full) else", "if isinstance(gradient, Full) else",
        "test_custom_density.py::test_batches_of_all_rows_are_all_rows",
    ),
    Mutant(
        "gradients chosen by the number of steps alone", "densities/fit.py",
        "found.append((seconds * max(", "found.append((max(",
        "test_custom_density.py::test_rows_of_steps_are_those_that_take_the_least_time",
    ),
    Mutant(
        "derivatives that are not compared at draws", "densities/fit.py",
        "    check_derivatives(target, outcome.draws)\n", "",
        "test_custom_density.py::test_derivatives_that_are_wrong_only_where_the_posterior_is",
    ),
    Mutant(
        "derivatives that are not compared at the mode", "recipe/choose.py",
        "    target.model.check_derivatives(target, centre.theta)\n", "",
        "test_custom_regressor.py::test_derivatives_that_are_wrong_only_at_the_mode",
    ),
    Mutant(
        "moments of effects whose parts have one mean", "groups/effect_moments.py",
        " + np.square(off) * (self.n * other.n / n)", "",
        "test_effect_moments.py::test_parts_of_any_size_have_the_moments_of_all",
    ),
]  # fmt: skip


def located(folder, test):
    """The address of a test for pytest: its file has that name in one of the folders of tests."""
    name, _, item = test.partition("::")
    (path,) = (folder / "tests").rglob(name)
    return f"{path}::{item}" if item else path


def run(folder, tests):
    """Exit code of pytest on some tests, with the package in a folder."""
    env = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(folder)}
    # The plugin of Hypothesis takes a second to import, and its tests do not need it.
    plugins = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    command = [sys.executable, "-m", "pytest", "-x", "-q", *plugins]
    command += [str(located(folder, test)) for test in tests]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False).returncode


def files_of(chosen):
    """The files with the tests of some mutants: for each its tests, each of them once."""
    files = {}
    for mutant in chosen:
        files.setdefault(mutant.test.partition("::")[0], {})[mutant.test] = None
    return {file: list(tests) for file, tests in files.items()}


def pass_without_bugs(tests):
    """Whether tests pass on the package as it is, all in one process."""
    with tempfile.TemporaryDirectory() as name:
        return run(copied(Path(name)), tests) == PASSED


def copied(folder):
    """A copy of the package, its tests, and the examples on which some of them stand.

    With the byte code of all files, which Python makes again of the one that is changed.
    """
    for name in ("skbayes_sg", "tests", "examples", "pyproject.toml"):
        source, ignore = ROOT / name, shutil.ignore_patterns("results")
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignore)
        else:
            shutil.copy(source, folder / name)
    return folder


def planted(mutant, folder):
    """Plant a bug in a copy."""
    path = folder / "skbayes_sg" / mutant.file
    source = path.read_text(encoding="utf-8")
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: not found once in {mutant.file}: {mutant.old!r}")
    path.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")


def is_killed(mutant):
    """Whether the mutant's test fails on it; that it passes without is `pass_without_bugs`."""
    with tempfile.TemporaryDirectory() as name:
        folder = copied(Path(name))
        planted(mutant, folder)
        return run(folder, [mutant.test]) == FAILED


def main(names):
    """Try all mutants, or those named; returns how many survived or have no test."""
    chosen = [m for m in MUTANTS if not names or m.name in names]
    files = files_of(chosen)
    broken = [file for file, tests in files.items() if not pass_without_bugs(tests)]
    for file in broken:
        print(f"{file}: its tests do not pass without a bug")
    killed = 0
    for mutant in chosen:
        dead = is_killed(mutant)
        killed += dead
        print(f"{'killed' if dead else 'SURVIVED':9}{mutant.name:52}{mutant.test}", flush=True)
    print(f"mutants killed {killed}/{len(chosen)}")
    return len(chosen) - killed + len(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
