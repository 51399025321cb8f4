"""The forms that expressions of drawn programs take: a template each, with the shapes of its holes.

A hole is a word of letters, one an axis; the same letter is the same extent. ``!`` asks for a name
with a known pattern. ``result`` is a word too, or "?" where the form is drawn without a shape in
mind. Forms that are not ``exact`` give results that are compared with a tolerance and not used.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BINARY", "FORMS", "SEMIRINGS", "UNARY", "Form"]


@dataclass(frozen=True, slots=True)
class Form:
    """One template."""

    template: str
    holes: tuple[str, ...]
    result: str = "?"
    exact: bool = True


SEMIRINGS = (
    "plus_times", "min_plus", "max_plus", "max_times", "min_max", "or_and", "plus_pair", "any_pair",
)  # fmt: skip

UNARY = (
    "(-{0})", "np.abs({0})", "np.sign({0})", "np.minimum(np.maximum({0}, 0), 8)", "({0} // 2)",
    "np.maximum({0}, 0)", "np.where({0} > 1, {0}, 0)", "(2 * {0})", "np.clip({0}, 0, 3)",
    "({0} % 3)", "({0} + 1)", "({0} > 1)", "({0} ** 2)", "({0} / 2)", "np.conj({0})",
    "(np.real({0}) * 1)",
    "(np.imag({0}) * 1)", "({0}).astype(np.float32)", "({0}).astype(np.int16)", "np.square({0})",
    "({0} == 0)", "np.logical_not({0})", "({0}).copy()",
)  # fmt: skip
BINARY = (
    "({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} * {1})", "np.maximum({0}, {1})",
    "np.minimum({0}, {1})", "np.where({0} > {1}, {0}, {1})", "({0} < {1})", "({0} != {1})",
    "np.logical_and({0}, {1})", "({0} + {1})", "np.logical_or({0}, {1})",
)  # fmt: skip

_SAME = (
    Form("sj.where_stored({0}, {1})", ("*!", "*"), "*"),
    Form("sj.where_stored({0}, {1}, fill_value=2)", ("*!", "*"), "*"),
    Form("({0} * {1})", ("*!", "*"), "*"),
    Form("({0} + {1} + {2})", ("*!", "*!", "*!"), "*"),
    Form("({0} * ({1} + {2}))", ("*!", "*", "*"), "*"),
    Form("sj.unary({0}, present=clipped)", ("*!",), "*"),
    Form("sj.unary({0}, present=alternating)", ("*!",), "*"),
    Form("sj.unary({0}, present=folded)", ("*!",), "*"),
    Form("sj.unary({0}, absent=constant)", ("*!",), "*"),
    Form("sj.unary({0}, present='identity', absent=constant)", ("*!",), "*"),
    Form("sj.binary({0}, {1}, overlap=difference)", ("*!", "*!"), "*"),
    Form("sj.binary({0}, {1}, overlap=smaller, left='identity')", ("*!", "*!"), "*"),
    Form("sj.binary({0}, {1}, left=folded, right=clipped)", ("*!", "*!"), "*"),
    Form("sj.binary({0}, {1}, overlap=plus, left='identity', right='identity')", ("*!", "*!"), "*"),
    Form("sj.select({0}, is_large)", ("*!",), "*"),
    Form("sj.select({0}, is_off_first)", ("*!",), "*"),
    Form("sj.where({0} > 0, {1}, {0})", ("*", "*"), "*"),
    Form("sj.maximum({0}, sj.minimum({1}, 3))", ("*", "*"), "*"),
)
_MATRICES = (
    Form("({0} @ {1})", ("mk", "kn"), "mn"),
    Form("({0} @ {1})", ("mk!", "kn!"), "mn"),
    Form("({0} @ {1} @ {2})", ("mk!", "kl!", "ln"), "mn"),
    Form("({0} @ {1} @ {2} @ {3})", ("mk", "kl", "lp", "pn"), "mn"),
    Form("({0} * ({1} @ {2}))", ("mn!", "mk", "kn"), "mn"),
    Form("sj.where_stored({0}, {1} @ {2})", ("mn!", "mk", "kn"), "mn"),
    Form("np.dot({0}, {1})", ("mk", "kn"), "mn"),
    Form("np.tensordot({0}, {1}, axes=1)", ("mk", "kn"), "mn"),
    Form("np.tensordot({0}, {1}, axes=([1, 2], [0, 1]))", ("mkl", "kln"), "mn"),
    Form("{0}.T", ("nm",), "mn"),
    Form("({0}[:, None] * {1})", ("m", "n"), "mn"),
    Form("np.outer({0}, {1})", ("m", "n"), "mn"),
    Form("{0}.sum(axis=2)", ("mnk",), "mn"),
    Form("{0}.max(axis=0)", ("kmn",), "mn"),
    Form("np.min({0}, axis=1)", ("mkn",), "mn"),
    Form("({0} + {1}[:, None])", ("mn", "m"), "mn"),
    Form("({0} - {0}.T)", ("mm!",), "mm"),
    Form("({0} @ {0})", ("mm!",), "mm"),
    Form("({0} @ {0}.T)", ("mk!",), "mm"),
    Form("sj.reduce(plus, {0}, identity=0, axis=2)", ("mnk!",), "mn"),
)
_VECTORS = (
    Form("({0} @ {1})", ("mk", "k"), "m"),
    Form("({0} @ {1})", ("k", "km"), "m"),
    Form("({0} @ {1} @ {2})", ("mk!", "kl!", "l"), "m"),
    Form("np.dot({0}, {1})", ("mk", "k"), "m"),
    Form("{0}.sum(axis=0)", ("km",), "m"),
    Form("{0}.sum(axis=1)", ("mk",), "m"),
    Form("{0}.sum(axis=(0, 2))", ("kml",), "m"),
    Form("{0}.min(axis=1)", ("mk",), "m"),
    Form("{0}.max(axis=0)", ("km",), "m"),
    Form("{0}.max(axis=1)", ("mk",), "m"),
    Form("{0}.prod(axis=1)", ("mk",), "m"),
    Form("np.any({0} > 1, axis=0)", ("km",), "m"),
    Form("({0} > 0).all(axis=1)", ("mk",), "m"),
    Form("np.argmin({0}, axis=1)", ("mk",), "m"),
    Form("{0}.argmax(axis=0)", ("km",), "m"),
    Form("np.diagonal({0})", ("mm",), "m"),
    Form("sj.reduce(plus, {0}, identity=0, axis=1)", ("mk!",), "m"),
    Form("sj.reduce(smaller, {0}, identity=9, axis=0)", ("km!",), "m"),
    Form("sj.reduce(larger_size, {0}, identity=0, axis=1)", ("mk!",), "m"),
    Form("sj.sum({0}, axis=1)", ("mk",), "m"),
    Form("sj.min({0}, axis=0)", ("km",), "m"),
)
_NUMBERS = (
    Form("{0}.sum()", ("*",), ""),
    Form("np.sum({0})", ("*",), ""),
    Form("{0}.max()", ("*",), ""),
    Form("np.min({0})", ("*",), ""),
    Form("({0} != 0).any()", ("*",), ""),
    Form("np.all({0} < 3)", ("*",), ""),
    Form("{0}.argmax()", ("*",), ""),
    Form("{0}.argmin()", ("*",), ""),
    Form("np.trace({0})", ("mm",), ""),
    Form("({0} @ {1})", ("m", "m"), ""),
)
_FREE = (
    Form("np.concatenate([{0}, {1}])", ("mn", "kn")),
    Form("np.concatenate([{0}, {1}], axis=1)", ("mn!", "mk!")),
    Form("np.concatenate([{0}, {1}, {0}])", ("m", "k")),
    Form("np.stack([{0}, {1}])", ("mn!", "mn")),
    Form("np.stack([{0}, {1}], axis=1)", ("m", "m")),
    Form("np.pad({0}, 1)", ("mn",)),
    Form("np.pad({0}, ((1, 0), (0, 2)))", ("mn!",)),
    Form("np.pad({0}, 1, constant_values=2)", ("m",)),
    Form("{0}.reshape(-1)", ("mn",)),
    Form("np.reshape({0}, ({0}.shape[1], {0}.shape[0]))", ("mn",)),
    Form("{0}.reshape({0}.shape[0], -1)", ("mnk",)),
    Form("np.expand_dims({0}, 0)", ("mn",)),
    Form("{0}[None, :, None]", ("m",)),
    Form("np.squeeze({0}[:1], axis=0)", ("mn",)),
    Form("np.diagonal({0}, 1)", ("mn",)),
    Form("np.transpose({0}, (2, 0, 1))", ("mnk",)),
    Form("(np.broadcast_to({0}, (2, {0}.shape[0])) * 1)", ("m",)),
    Form("{0}[::2]", ("mn!",)),
    Form("{0}[1:, ::-1]", ("mn!",)),
    Form("{0}[:, 1::2]", ("mn!",)),
    Form("{0}[:, 0]", ("mnk!",)),
    Form("{0}.max(axis=1, keepdims=True)", ("mn",)),
    Form("({0} - {0}.min(axis=0, keepdims=True))", ("mn",)),
    Form("({0}[:, None] + {1}[None, :, None])", ("mk", "n")),
    Form("np.vstack([{0}, {1}])", ("mn", "kn")),
)
_INEXACT = (
    Form("sj.softmax({0}, axis=1)", ("mn!",), exact=False),
    Form("sj.softmax({0}, axis=0)", ("mn!",), exact=False),
    Form("(sj.softmax({0}, axis=1) @ {1})", ("mn!", "nk"), exact=False),
    Form("(sj.softmax({0} * ({1} @ {2}), axis=1) @ {3})", ("mn!", "mk", "kn", "nl"), exact=False),
    Form("{0}.mean(axis=0)", ("mn",), exact=False),
    Form("np.mean({0}, axis=1)", ("mn",), exact=False),
    Form("{0}.mean()", ("*",), exact=False),
    Form("np.exp(np.minimum({0}, 2))", ("*",), exact=False),
    Form("np.cos({0})", ("*!",), exact=False),
    Form("np.tanh({0})", ("*!",), exact=False),
    Form("({0} / 3)", ("*!",), exact=False),
    Form("({0} / {1})", ("*!", "*"), exact=False),
    Form("({0} / (1 + np.abs({1})))", ("*!", "*"), exact=False),
    Form("({0} // {1})", ("*!", "*"), exact=False),
    Form("(np.exp(np.minimum({0}, 2)) + {1})", ("*!", "*"), exact=False),
    Form("({0} @ ({1} / 3))", ("mk", "kn"), exact=False),
)

FORMS = {
    "same": _SAME,
    "matrix": _MATRICES,
    "vector": _VECTORS,
    "number": _NUMBERS,
    "free": _FREE,
    "inexact": _INEXACT,
}
"""The forms by where they are drawn; ``*`` stands for any shape, the same one everywhere."""
