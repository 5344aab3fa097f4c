"""Commands of the simulations."""
