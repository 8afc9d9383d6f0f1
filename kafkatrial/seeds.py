"""Random seeds of commands without `--seed`."""

import secrets

_SEED_BITS = 32


def generate_seed() -> int:
    """Return a random seed, short enough to be typed again."""
    return secrets.randbits(_SEED_BITS)
