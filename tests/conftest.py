"""What all tests share: the rotation of the samples, in the header of the run."""

from tests.sampling import VARIABLE, rotation


def pytest_configure():
    rotation()  # before workers of pytest-xdist start, so that all of them have the same


def pytest_report_header():
    return f"rotation of samples: {rotation()} ({VARIABLE}={rotation()} selects the same ones)"
