"""The Python of docs/tutorial.md runs as it stands, block after block, in one module."""

import re
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"


def test_the_python_blocks_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARSEJIT_TARGET", "interpreter")
    text = TUTORIAL.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL))
    assert len(blocks) == text.count("```python\n") > 15
    # A file, because user functions are read from their source; its lines are those of the page.
    program = ""
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        program += "\n" * (line - program.count("\n")) + block[1]
    path = tmp_path / "tutorial.py"
    path.write_text(program, encoding="utf-8")
    exec(compile(program, str(path), "exec"), {"__name__": "tutorial"})
    printed = capsys.readouterr().out
    assert "tutorial.py:" in printed  # errors and explanations name lines of the page
    assert "func @by_arrays" in printed
