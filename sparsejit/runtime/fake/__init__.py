"""A strict fake device: it computes right results, and only for programs that a device would run.

Host and device memory are different address spaces, work runs late, memory is poisoned, and what a
real device would let pass and answer with wrong numbers is a ``MisuseError`` here. Any call can be
made to fail.
"""

from sparsejit.runtime.fake.arrays import FakeArray, to_fake
from sparsejit.runtime.fake.injection import Injection
from sparsejit.runtime.fake.memory import MisuseError
from sparsejit.runtime.fake.runtime import FakeRuntime

__all__ = ["FakeArray", "FakeRuntime", "Injection", "MisuseError", "to_fake"]
