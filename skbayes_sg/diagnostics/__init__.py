"""Evidence on draws: convergence."""
