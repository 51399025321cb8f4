"""The Python of docs/gpu.md runs as it stands, on the fake device."""

from pathlib import Path

import numpy as np
import pytest

from sparsejit.runtime.fake import FakeRuntime
from sparsejit.runtime.opening import use_runtime
from tests.pages import run_blocks


def test_the_python_blocks_run_in_order(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with use_runtime(FakeRuntime()):
        scope, count = run_blocks("docs/gpu.md", tmp_path)
        assert (scope["plan"](np.ones(800)) == scope["A"] @ np.ones(800)).all()
    assert count == 2
    assert "A_vals is mapped: it is read once, in order" in capsys.readouterr().out
