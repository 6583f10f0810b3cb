"""Kernels of collapsed coordinates: what is done for each level, with q effects a level.

P_l = H_l + Ω = R Rᵀ, m_l = P_l⁻¹ (t_l - S_l β), u_l = m_l + R⁻ᵀ ζ_l. Arrays `work` are scratch, of
shape (3, q, q). There are no views of the arrays of levels: each would count references.
"""

import math

from .._base.jit import inlined, inner
from ..kernels.triangular import solve, solve_transposed

__all__ = ["place_effects", "propose_effects", "pull_back", "triangular", "white_effects"]


@inner
def triangular(A):
    """A ← its lower Cholesky factor; return the sum of the logarithms of the diagonal."""
    total = 0.0
    for i in range(A.shape[0]):
        for j in range(i + 1):
            value = A[i, j]
            for k in range(j):
                value -= A[i, k] * A[j, k]
            A[i, j] = value / A[j, j] if j < i else math.sqrt(value)
        total += math.log(A[i, i])
    return total


@inlined
def _factor(H, level, omega, R_out):
    """R_out ← the lower Cholesky factor R of H_l + Ω; return log |R|."""
    total = 0.0
    for i in range(omega.shape[0]):
        for j in range(i + 1):
            value = H[level, i, j] + omega[i, j]
            for k in range(j):
                value -= R_out[i, k] * R_out[j, k]
            if i == j:
                R_out[i, i] = math.sqrt(max(value, 1e-300))
                total += math.log(R_out[i, i])
            else:
                R_out[i, j] = value / R_out[j, j]
    return total


@inlined
def _mean(R, t, S, level, beta, m_out):
    """m_out ← P_l⁻¹ (t_l - S_l β)."""
    for i in range(t.shape[1]):
        value = t[level, i]
        for j in range(beta.shape[0]):
            value -= S[level, i, j] * beta[j]
        m_out[i] = value
    solve(R, m_out)
    solve_transposed(R, m_out)


@inlined
def _place_one(H, S, t, omega, beta, zeta, m_out, u_out):
    """`place_effects` for one effect per level (q = 1), in loops that are vectorised."""
    total = 0.0
    for level in range(H.shape[0]):
        P, drift = H[level, 0, 0] + omega, t[level, 0]
        for j in range(beta.shape[0]):
            drift -= S[level, 0, j] * beta[j]
        m_out[level, 0] = drift / P
        u_out[level, 0] = m_out[level, 0] + zeta[level, 0] / math.sqrt(P)
    for level in range(H.shape[0]):
        total += math.log(H[level, 0, 0] + omega)
    return 0.5 * total


@inner
def place_effects(H, S, t, omega, beta, zeta, work, m_out, u_out):
    """m_out, u_out ← m_l and u_l of all levels, given β and ζ; return ½ Σ log |P_l|."""
    if omega.shape[0] == 1:
        return _place_one(H, S, t, omega[0, 0], beta, zeta, m_out, u_out)
    R, m, u, total = work[0], work[1, 0], work[2, 0], 0.0
    for level in range(H.shape[0]):
        total += _factor(H, level, omega, R)
        _mean(R, t, S, level, beta, m)
        for i in range(m.shape[0]):
            u[i] = zeta[level, i]
        solve_transposed(R, u)
        for i in range(m.shape[0]):
            m_out[level, i], u_out[level, i] = m[i], m[i] + u[i]
    return total


@inner
def white_effects(H, S, t, omega, beta, u, work, zeta_out):
    """zeta_out ← ζ_l = Rᵀ (u_l - m_l) of all levels: the inverse of `place_effects`."""
    R, off, q = work[0], work[1, 0], u.shape[1]
    for level in range(H.shape[0]):
        _factor(H, level, omega, R)
        _mean(R, t, S, level, beta, off)
        for i in range(q):
            off[i] = u[level, i] - off[i]
        for i in range(q):
            zeta_out[level, i] = 0.0
            for k in range(i, q):
                zeta_out[level, i] += R[k, i] * off[k]


@inlined
def _add_middle(R, a, zeta, level, X, M_out):
    """M_out += R⁻ᵀ (½ I - B) R⁻¹, with B as in `pull_back`; `X` is scratch."""
    q = a.shape[0]
    for i in range(q):
        for j in range(q):
            X[i, j] = -zeta[level, i] * a[j] if i > j else 0.0
        X[i, i] = 0.5 - 0.5 * zeta[level, i] * a[i]
    for j in range(q):  # R⁻ᵀ X, by columns
        for i in range(q - 1, -1, -1):
            for k in range(i + 1, q):
                X[i, j] -= R[k, i] * X[k, j]
            X[i, j] /= R[i, i]
    for i in range(q):  # X R⁻¹, by rows
        for j in range(q - 1, -1, -1):
            for k in range(j + 1, q):
                X[i, j] -= X[i, k] * R[k, j]
            X[i, j] /= R[j, j]
            M_out[i, j] += X[i, j]


@inlined
def _pull_one(H, S, omega, m, u, zeta, G, g_out, M_out):
    """`pull_back` for one effect per level (q = 1)."""
    total = 0.0
    for level in range(H.shape[0]):
        inverse, effect = 1.0 / (H[level, 0, 0] + omega), u[level, 0]
        b = (G[level, 0] + omega * effect) * inverse
        own = effect * effect + inverse - b * (2.0 * m[level, 0])
        total += 0.5 * (own - b * zeta[level, 0] * math.sqrt(inverse))
        for j in range(g_out.shape[0]):
            g_out[j] -= b * S[level, 0, j]
    M_out[0, 0] += total


@inner
def pull_back(H, S, omega, m, u, zeta, G, work, g_out, M_out):
    """Add the derivatives of U in β and Ω, through the effects and through log |P_l|.

    G_l are the derivatives of the loss Σ w_i ℓ_i of the rows in u_l.

    g_out += ∂U/∂β, and M_out += M so that dU = Σ_ij M_ij dΩ_ij. With a = R⁻¹(G_l + Ω u_l) and
    B the lower triangle of ζ aᵀ with half of its diagonal,

        M = Σ_l ½ u uᵀ + ½ P⁻¹ - R⁻ᵀ a mᵀ - R⁻ᵀ B R⁻¹,      up to its antisymmetric part.
    """
    if omega.shape[0] == 1:
        _pull_one(H, S, omega[0, 0], m, u, zeta, G, g_out, M_out)
        return
    R, X, a, b, q = work[0], work[2], work[1, 0], work[2, 0], u.shape[1]
    for level in range(H.shape[0]):
        _factor(H, level, omega, R)
        for i in range(q):
            a[i] = G[level, i]
            for j in range(q):
                a[i] += omega[i, j] * u[level, j]
        solve(R, a)
        for i in range(q):
            b[i] = a[i]
        solve_transposed(R, b)
        for i in range(q):
            for j in range(g_out.shape[0]):
                g_out[j] -= b[i] * S[level, i, j]
        for i in range(q):
            for j in range(q):
                M_out[i, j] += 0.5 * u[level, i] * u[level, j] - b[i] * m[level, j]
        _add_middle(R, a, zeta, level, X, M_out)


@inlined
def _log_mixture(near, far, share):
    """log (share e^near + (1 - share) e^far)."""
    top = max(near, far)
    return top + math.log(share * math.exp(near - top) + (1.0 - share) * math.exp(far - top))


@inlined
def _log_density(R, omega, off, log_R, log_C, share, wider, broad):
    """Log density of a proposal whose distance from m is `off`, up to a constant."""
    q, near, far = off.shape[0], 0.0, 0.0
    for i in range(q):
        white, pulled = 0.0, 0.0
        for k in range(i, q):
            white += R[k, i] * off[k]
        for k in range(q):
            pulled += omega[i, k] * off[k]
        near += white * white
        far += off[i] * pulled
    near = log_R - q * math.log(wider) - 0.5 * near / (wider * wider)
    far = -log_C - q * math.log(broad) - 0.5 * far / (broad * broad)
    return _log_mixture(near, far, share)


@inner
def propose_effects(H, S, t, omega, C, beta, u, uniform, normal, law, work, proposed_out, gain_out):
    """Propose effects for all levels, narrow about m_l or as broad as the prior.

    gain_out ← log (prior / proposal density) at the new effects less that at the old ones. ``law``
    has the share of the narrow proposals, and the widths of narrow and broad ones.
    """
    R, m, off, q, log_C = work[0], work[1, 0], work[2, 0], u.shape[1], 0.0
    share, wider, broad = law
    for i in range(q):
        log_C += math.log(max(C[i, i], 1e-300))
    for level in range(H.shape[0]):
        log_R = _factor(H, level, omega, R)
        _mean(R, t, S, level, beta, m)
        for i in range(q):
            off[i] = u[level, i] - m[i]
        gain = _log_density(R, omega, off, log_R, log_C, share, wider, broad)
        for i in range(q):
            off[i] = wider * normal[level, i] if uniform[level] < share else 0.0
        solve_transposed(R, off)
        if uniform[level] >= share:
            for i in range(q):
                for k in range(i + 1):
                    off[i] += broad * C[i, k] * normal[level, k]
        gain -= _log_density(R, omega, off, log_R, log_C, share, wider, broad)
        for i in range(q):
            proposed_out[level, i] = m[i] + off[i]
        for i in range(q):
            for k in range(q):
                new = proposed_out[level, i] * proposed_out[level, k]
                gain += 0.5 * omega[i, k] * (u[level, i] * u[level, k] - new)
        gain_out[level] = gain
