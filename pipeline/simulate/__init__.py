"""A made-up music world with known truth, written as dumps in the platforms' own forms."""
