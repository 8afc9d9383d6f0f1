"""`python -m reference_broker.server`: one broker as a process of its own."""

import sys

# kio registers Hypothesis strategies wherever Hypothesis is installed. A broker has no use for it, and it costs 0.28 s
# and 9 MB; this must come before the first import of kio.
sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]  # None makes `import hypothesis` fail

from reference_broker.server.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
