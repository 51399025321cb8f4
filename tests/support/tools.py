"""Where the tools of the extra `mlir` are; they are files inside packages, not on the path."""

import importlib.util
import shutil
from pathlib import Path

__all__ = ["find_mlir_tool"]

PACKAGES = ("mlir", "llvm")


def find_mlir_tool(name: str) -> Path | None:
    """The program `name` (`mlir-opt`, `FileCheck`) of the installed extra, else of the path."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            program = Path(folder, "bin", name)
            if program.is_file():
                return program
    found = shutil.which(name)
    return Path(found) if found else None
