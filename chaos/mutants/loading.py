"""Import hook of this process that replaces one module by its mutant. No file is changed."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

from chaos.mutants.mutations import Mutant, source_of


class _MutantLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, mutant: Mutant, path: str) -> None:
        super().__init__(mutant.module, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """Compile the mutant, without any cache."""
        source = Path(self.path).read_text()
        code: CodeType = compile(source_of(self._mutant, source), self.path, "exec")
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the mutant's module; None for all other modules."""
        if fullname != self._mutant.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        return importlib.util.spec_from_loader(fullname, _MutantLoader(self._mutant, spec.origin))


def install(mutant: Mutant) -> None:
    """Make the first import of the mutant's module load the mutant. Raises `RuntimeError` if it was imported before."""
    if mutant.module in sys.modules:
        raise RuntimeError(f"{mutant.module} is imported already")
    sys.meta_path.insert(0, _Finder(mutant))
