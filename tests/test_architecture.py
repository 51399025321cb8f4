"""The shape of the package: who imports whom, how large files are, which names are public.

The import contracts stand in `setup.cfg`. A contract that nothing can break proves nothing, so each
of them is also run on a copy of the tree into which a forbidden import was written.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sparsejit"
STAGE = "sparsejit.sparsify_and_bufferize"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_FILE_LINES = 430
MAX_FUNCTION_LINES = 80
SUPPRESSION = re.compile(
    r"(?:# type: ignore|# noqa)(?:\[[^]]*\]|: [A-Z0-9, ]+)?\s*$|except Exception[^#]*$"
)

each_module = pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix()
)


@dataclass(frozen=True, slots=True)
class Violation:
    """An import that a contract forbids: the module or package to write it in, and its target."""

    place: str
    target: str
    contract: str

    def write(self, tree: Path) -> None:
        """Append the import to the module, or to a new module of the package, in this tree."""
        module = Path(*self.importer(tree).split(".")).with_suffix(".py")
        with (tree / module).open("a", encoding="utf-8") as file:
            file.write(f"\nimport {self.target}\n")

    def importer(self, tree: Path) -> str:
        is_package = (tree / self.place.replace(".", "/")).is_dir()
        return f"{self.place}.seeded" if is_package else self.place


VIOLATIONS = (
    Violation("sparsejit.formats", "sparsejit.trace", "layered"),
    Violation("sparsejit.ir", "sparsejit.tensors", "layered"),
    Violation("sparsejit.passes", STAGE, "layered"),
    Violation("sparsejit.runtime", "sparsejit.backends", "layered"),
    Violation("sparsejit.debug", "sparsejit.errors", "layered"),
    Violation("sparsejit.api", "sparsejit.__main__", "layered"),
    Violation("sparsejit.io", "sparsejit.api", "layered"),
    Violation("sparsejit.pipeline", f"{STAGE}._one_shot_analysis", "stage's modules"),
    Violation("tests", f"{STAGE}._copy_insertion", "stage's modules"),
    Violation("tests.support", f"{STAGE}._library_kernels", "stage's modules"),
    Violation("sparsejit.backends", "sparsejit.tensors", "Backends"),
    Violation("sparsejit.backends", STAGE, "Backends"),
    Violation("sparsejit.pipeline", "sparsejit.runtime", "The pipeline"),
)


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts on this tree, which shadows the installed package."""
    program = "from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=tree,
        env={**os.environ, "COLUMNS": "200", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_import_contracts_hold() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def contracts_broken_by_seeds(tmp_path_factory: pytest.TempPathFactory) -> str:
    tree = tmp_path_factory.mktemp("seeded")
    for name in ("sparsejit", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "setup.cfg", tree)
    for violation in VIOLATIONS:
        violation.write(tree)
    done = lint_imports(tree)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("violation", VIOLATIONS, ids=lambda seed: f"{seed.place}-{seed.target}")
def test_a_forbidden_import_breaks_a_contract(
    contracts_broken_by_seeds: str, violation: Violation
) -> None:
    importer = violation.importer(ROOT)
    arrow = rf"{re.escape(importer)} -> {re.escape(violation.target)} \(l\.\d+\)"
    reports = re.split(r"\n(?=[^\n]+\n-+\n)", contracts_broken_by_seeds.partition("Broken")[2])
    report = next(text for text in reports if violation.contract in text.partition("\n")[0])
    assert re.search(arrow, report), report


def test_the_stage_has_one_door() -> None:
    stage = PACKAGE / "sparsify_and_bufferize"
    assert all(path.name.startswith("_") for path in stage.rglob("*.py"))
    tree = parse(stage / "__init__.py")
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert defined & set(listed_names(tree) or ()) == {"sparsify_and_bufferize"}


@each_module
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_FILE_LINES
    long = {
        node.name: length
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        if (length := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
    }
    assert long == {}


@each_module
def test_public_names_are_listed_in_order(path: Path) -> None:
    tree = parse(path)
    names = listed_names(tree)
    assert names is None or names == sorted(set(names), key=isort_key)
    if path.name.startswith("_"):
        return
    assert names is not None, "every public module starts with its list of public names, __all__"
    public = {name for name in defined_names(tree) if not name.startswith("_")}
    assert public <= set(names), "a function or class without underscore is public: list it"


@each_module
def test_no_banned_names_and_no_unfinished_business(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    names = [*defined_names(ast.parse(text), deep=True), path.stem]
    assert [name for name in names if re.search("Manager|Helper|Utils|^_?get_", name)] == []
    assert re.findall("TODO|FIXME|XXX|HACK|raise NotImplementedError", text) == []
    lines = text.splitlines()
    unexplained = [
        line
        for above, line in zip(["", *lines], lines, strict=False)
        if SUPPRESSION.search(line) and not above.lstrip().startswith("#")
    ]
    assert unexplained == [], "each of these wants a reason behind it or in the line above"


@each_module
def test_every_module_says_what_it_is_for(path: Path) -> None:
    docstring = ast.get_docstring(parse(path))
    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":", "?"))


@each_module
def test_private_modules_are_imported_by_their_own_package_only(path: Path) -> None:
    for module in imported_modules(parse(path)):
        package, _, name = module.rpartition(".")
        if name.startswith("_") and not name.startswith("__") and package != "sparsejit":
            home = ROOT / package.replace(".", "/")
            assert home in path.parents, f"{module} is private to {package}"


def test_importing_sparsejit_loads_no_compiler_and_no_device_library() -> None:
    heavy = ("numba", "llvmlite", "cupy", "torch", "sparse", "pytest")
    program = f"import sys, sparsejit; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_system_page_tells_every_files_job_once() -> None:
    page = (ROOT / "docs" / "system.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (.*) \|$", page, flags=re.MULTILINE)
    expected = [
        (path.relative_to(PACKAGE).as_posix(), first_line.replace("``", "`"))
        for path in MODULES
        for first_line in (ast.get_docstring(parse(path)) or "").splitlines()[:1]
    ]
    assert sorted(rows) == sorted(expected)


@pytest.mark.parametrize("name", ["run", "test"])
def test_the_readme_has_one_line_commands_that_ci_runs(name: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"^<!-- ci: {name} -->\n```console\n(.*?)^```$", readme, re.M | re.S)
    assert [block.count("\n") for block in blocks] == [1]
    assert f"readme_command {name}" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_extras_named_anywhere_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    assert extras == {"cuda12", "cuda13", "mlir", "test", "dev"}
    texts = [*MODULES, ROOT / "README.md", ROOT / ".ci" / "run", *(ROOT / "docs").rglob("*.md")]
    for path in texts:
        for named in re.findall(
            r"(?:sparsejit|\.)\[([\w,]+)\]\"", path.read_text(encoding="utf-8")
        ):
            assert set(named.split(",")) <= extras, f"{path.name} names the extras {named}"


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def listed_names(tree: ast.Module) -> list[str] | None:
    """The value of `__all__`, or None."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
            ):
                return [str(name) for name in ast.literal_eval(value)]
    return None


def defined_names(tree: ast.Module, *, deep: bool = False) -> Iterator[str]:
    """The functions and classes of a module, with `deep` also those inside others."""
    for node in ast.walk(tree) if deep else tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """Full names of imported modules; of `from package import name` also `package.name`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)


def isort_key(name: str) -> tuple[int, list[tuple[int, str, int]]]:
    """Constants, then classes, then the rest, numbers inside names by value: ruff's order."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    parts = re.findall(r"\d+|\D+", name)
    return kind, [(0, "", int(p)) if p.isdigit() else (1, p, 0) for p in parts]
