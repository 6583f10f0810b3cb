"""The loops that run chains, and the posterior that they run on."""
