"""docs/options.md: its Python runs, and it names every argument and every variable there is."""

import inspect
import re
from pathlib import Path

import pytest

import sparsejit as sj
from sparsejit.api._options import PARALLELIZATIONS, TARGETS, Transfer
from sparsejit.debug import TEXT_LEVELS
from tests.pages import ROOT, run_blocks

TEXT = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")


def test_the_python_blocks_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("SPARSEJIT_TARGET", "SPARSEJIT_CPU_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(tmp_path / "cache"))
    _, count = run_blocks("docs/options.md", tmp_path)
    assert count == 10
    printed = capsys.readouterr().out
    assert "coordinates[1][0] is 1000, outside 0 .. 199" in printed
    assert 'library="only", and residual has operations that no library kernel does' in printed


def test_every_argument_has_a_row_with_its_default() -> None:
    parameters = inspect.signature(sj.sparse_jit).parameters
    rows = dict(re.findall(r"^\| \[`(\w+)`\]\(#[\w-]+\) \| `(.+?)` \|", TEXT, flags=re.MULTILINE))
    defaults = {name: p.default for name, p in parameters.items() if name != "fn"}
    assert {name: eval(text) for name, text in rows.items()} == defaults


def test_every_section_that_a_row_links_to_is_there() -> None:
    sections = re.findall(r"^## (.+)$", TEXT, flags=re.MULTILINE)
    anchors = {section.lower().replace("`", "").replace(" ", "-") for section in sections}
    assert set(re.findall(r"\]\(#([\w-]+)\)", TEXT)) <= anchors


def test_every_choice_is_named() -> None:
    choices = (*PARALLELIZATIONS, *TARGETS, *(member.value for member in Transfer))
    assert [choice for choice in choices if f'`"{choice}"`' not in TEXT] == []
    assert [level for level in TEXT_LEVELS if f"`{level}`" not in TEXT] == []


def test_every_variable_of_the_environment_has_a_row() -> None:
    files = (ROOT / "sparsejit").rglob("*.py")
    used = {
        name
        for path in files
        for name in re.findall(r'"(SPARSEJIT_[A-Z_]+)"', path.read_text(encoding="utf-8"))
    }
    rows = set(re.findall(r"^\| `(SPARSEJIT_[A-Z_]+)` \|", TEXT, flags=re.MULTILINE))
    assert rows == used
