"""``BoundMethod``: a compiled function that is an attribute of a class, with the object.

In: a function and the object it is called on. Out: a callable that looks like the function. What
the object holds is read anew at every call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparsejit.api._plan import Plan

if TYPE_CHECKING:
    from sparsejit.api._function import CacheInfo, CompiledFunction
    from sparsejit.api._lowered import Lowered

__all__ = ["BoundMethod"]


class BoundMethod:
    """A compiled function with the object that it is called on."""

    __slots__ = ("__func__", "__self__")

    def __init__(self, function: CompiledFunction, obj: object) -> None:
        self.__func__ = function
        self.__self__ = obj

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """``CompiledFunction.lower`` for this object."""
        return self.__func__.lower(self.__self__, *args, **kwargs)

    def explain(self, /, *args: Any, **kwargs: Any) -> str:
        """``CompiledFunction.explain`` for this object."""
        if args or kwargs:
            return self.__func__.explain(self.__self__, *args, **kwargs)
        return self.__func__.explain()

    def bind(self, /, **fixed: Any) -> Plan:
        """``CompiledFunction.bind``, with this object fixed too; its attributes are read anew."""
        return self.__func__.bind(**{self.__func__.parameters[0]: self.__self__}, **fixed)

    def cache_info(self) -> CacheInfo:
        """``CompiledFunction.cache_info``."""
        return self.__func__.cache_info()

    def __repr__(self) -> str:
        return f"<bound {self.__func__!r} of {self.__self__!r}>"
