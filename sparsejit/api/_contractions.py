"""Orders of products at run time: which variant a call takes, by extents and stored counts.

In: a function with chains of products; at a call, its numbers. Out: the orders to compute them in.
Numbers are rounded to powers of two and each answer is remembered, so that a call looks it up; a
program has five different answers at most, and then takes the best of these.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import field

from sparsejit._dataclasses import dataclass
from sparsejit.ir.contraction import chains_of
from sparsejit.ir.contraction_cost import Estimates
from sparsejit.ir.contraction_order import ContractionOrder, contraction_variant, variant_cost
from sparsejit.ir.tensor import TensorFunc

__all__ = ["Contractions"]

_MOST_VARIANTS = 5
_MOST_REMEMBERED = 1024

Orders = tuple[ContractionOrder, ...]


@dataclass(slots=True, eq=False)
class Contractions:
    """The orders that calls of one program have taken; ``is_open``: there is something to choose.

    >>> from sparsejit.ir.build import TensorBuilder
    >>> Contractions.of_program(TensorBuilder("f").finish(), True).is_open
    False
    """

    is_open: bool
    known: list[Orders] = field(default_factory=list)
    answers: dict[Estimates, Orders] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def of_program(func: TensorFunc, may_reorder: bool) -> Contractions:
        """Return the state of a new program; ``may_reorder`` says whether orders may change."""
        return Contractions(may_reorder and bool(chains_of(func)))

    def of(self, func: TensorFunc, extents: Sequence[int], stored: Sequence[int]) -> Orders:
        """Return the orders for a call: the value of each extent, what each parameter stores."""
        numbers = Estimates(tuple(extents), tuple(stored)).bucketed
        found = self.answers.get(numbers)
        if found is not None:
            return found
        with self.lock:
            made = contraction_variant(func, numbers)
            if made not in self.known:
                if len(self.known) < _MOST_VARIANTS:
                    self.known.append(made)
                else:
                    made = min(self.known, key=lambda known: variant_cost(func, known, numbers))
            if len(self.answers) >= _MOST_REMEMBERED:
                self.answers.clear()
            self.answers[numbers] = made
        return made
