"""The Python of README.md runs as it stands, block after block, as a reader would paste it."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_python_blocks_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    text = README.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL))
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        # Blank lines in front, so that the lines of an error are the lines of the file.
        source = "\n" * text.count("\n", 0, block.start(1)) + block[1]
        exec(compile(source, str(README), "exec"), names)
    printed = capsys.readouterr().out
    assert "sampled product" in printed
    assert "func @spmv" in printed
    assert "linalg.generic" in printed
