"""The kinetic energy of momenta of unit mass."""

from .._base.jit import inner

__all__ = ["kinetic_energy"]


@inner
def kinetic_energy(p):
    """Return the kinetic energy ½ |p|² of momenta p of unit mass."""
    total = 0.0
    for j in range(p.shape[0]):
        total += 0.5 * p[j] * p[j]
    return total
