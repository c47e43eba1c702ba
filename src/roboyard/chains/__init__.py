"""Serial chains of joints, from descriptions: where the joints put the links, how the tip moves, what that takes."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.chains.building import build_chain
    from roboyard.chains.chain import Chain
    from roboyard.chains.dynamics import ChainDynamics, Payload
    from roboyard.chains.rows import ChainArrays

__all__ = ["Chain", "ChainArrays", "ChainDynamics", "Payload", "build_chain"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "building": ("build_chain",),
    "chain": ("Chain",),
    "dynamics": ("ChainDynamics", "Payload"),
    "rows": ("ChainArrays",),
})  # fmt: skip
