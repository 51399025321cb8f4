"""The Python of docs/tutorial.md runs as it stands, block after block, in one module."""

from pathlib import Path

import pytest

from tests.pages import run_blocks


def test_the_python_blocks_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARSEJIT_TARGET", "interpreter")
    _, count = run_blocks("docs/tutorial.md", tmp_path)
    assert count > 15
    printed = capsys.readouterr().out
    assert "tutorial.py:" in printed  # errors and explanations name lines of the page
    assert "func @by_arrays" in printed
