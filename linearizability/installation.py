"""Installation of optional dependencies (extras) from a checkout, because kafkatrial is not on PyPI."""


def install_hint(extra: str) -> str:
    """Return the end of an error message: how to install an extra of `pyproject.toml`."""
    return f"run `make install` in a checkout of kafkatrial, or `pip install 'PATH[{extra}]'` with the checkout's path"
