"""The intermediate representations: data only, no lowering.

Reading order: ``types``, ``ops``, ``scalar``, ``tensor``, ``loops``, ``facts``; then ``build``,
``walk``, ``verify`` and the printers ``printing``, ``loop_printing``, ``mlir``.
"""
