"""Storage formats: a map from dimensions to levels, and a type for each level.

What enters is MLIR's notation, for example ``(i, j) -> (i : dense, j : compressed)``; what leaves
is a ``Format``, compared by structure. A *dimension* belongs to the tensor, a *level* to its
storage; levels count from 0, outermost first.
"""

from sparsejit.formats._format import Format as Format
from sparsejit.formats._levels import Level as Level
from sparsejit.formats._levels import LevelKind as LevelKind
from sparsejit.formats._levels import LevelType as LevelType
from sparsejit.formats._named import BSR as BSR
from sparsejit.formats._named import COO as COO
from sparsejit.formats._named import CSC as CSC
from sparsejit.formats._named import CSF as CSF
from sparsejit.formats._named import CSR as CSR
from sparsejit.formats._named import DCSC as DCSC
from sparsejit.formats._named import DCSR as DCSR
from sparsejit.formats._named import DIA as DIA
from sparsejit.formats._named import ELL as ELL
from sparsejit.formats._named import NV24 as NV24
from sparsejit.formats._named import Batched as Batched
from sparsejit.formats._named import Dense as Dense
from sparsejit.formats._named import SparseVector as SparseVector

__all__ = [
    "BSR",
    "COO",
    "CSC",
    "CSF",
    "CSR",
    "DCSC",
    "DCSR",
    "DIA",
    "ELL",
    "NV24",
    "Batched",
    "Dense",
    "Format",
    "Level",
    "LevelKind",
    "LevelType",
    "SparseVector",
]
